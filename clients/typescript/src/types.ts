// Names for the generated types that the hand-written modules use.
import type { components, webhooks } from "./schema.js";

type Schemas = components["schemas"];

export type Account = Schemas["Account"];
export type Problem = Schemas["Problem"];

export type UpsertReply = Schemas["UpsertReply"];
export type UpsertBatchReply = Schemas["UpsertBatchReply"];
export type UpsertResult = Schemas["UpsertResult"];
/** What an upsert says about an account. */
export type UpsertAccount = Omit<Schemas["UpsertRequest"], "project">;
/** What an upsert may do to the name and the status of an existing account. */
export type UpsertPolicies = Pick<Schemas["UpsertBatchRequest"], "name_policy" | "status_policy">;

export type ActivityEvent = Schemas["ActivityEvent"];
export type RejectedEvent = Schemas["RejectedEvent"];

/** Everything that a webhook can be sent. `type` says which event it is; ignore those that you don't know. */
export type WebhookEvent = webhooks[keyof webhooks]["post"]["requestBody"]["content"]["application/json"];
