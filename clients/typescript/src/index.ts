export { type Client, type ConnectionOptions, createClient, type Credential } from "./client.js";
export { ApiError, NetworkError } from "./errors.js";
export { IngestQueue, type IngestQueueOptions, type NotStored, type QueuedEvent } from "./ingest.js";
export { MAX_ACCOUNTS, MAX_BODY_BYTES, MAX_EVENTS } from "./limits.js";
export type { RetryOptions } from "./retry.js";
export type { components, operations, paths, webhooks } from "./schema.js";
export * from "./signatures.js";
export type { Fetch } from "./transport.js";
export type {
  Account,
  ActivityEvent,
  Problem,
  RejectedEvent,
  UpsertAccount,
  UpsertBatchReply,
  UpsertPolicies,
  UpsertReply,
  UpsertResult,
} from "./types.js";
export { Upserter, type UpserterOptions, type UpsertOptions } from "./upsert.js";
