import createOpenapiClient, { type Client as OpenapiClient } from "openapi-fetch";
import type { RetryOptions } from "./retry.js";
import type { paths } from "./schema.js";
import { type Fetch, transport, type TransportOptions } from "./transport.js";

/** Every operation of the API, typed: `client.GET("/api/accounts/")`. */
export type Client = OpenapiClient<paths>;

export interface ConnectionOptions {
  /** Where the service is, such as `https://crm.acme.example`. */
  baseUrl: string;
  /** How requests that are safe to repeat are repeated. */
  retry?: RetryOptions;
  /** Sends the requests instead of the global `fetch`. */
  fetch?: Fetch;
}

/** An API token (`rap_…`), or for ingest the company's ingest key (`rik_…`). */
export type Credential = { token: string } | { ingestKey: string };

/** Returns a client that repeats GET requests, and those with an `Idempotency-Key`. */
export function createClient(options: ConnectionOptions & Credential): Client {
  const isRepeatable = ({ method, headers }: Request) =>
    method === "GET" || method === "HEAD" || headers.has("Idempotency-Key");
  return connect(options, { isRepeatable, gzip: false });
}

export function connect(
  options: ConnectionOptions & Credential,
  how: Pick<TransportOptions, "isRepeatable" | "gzip">,
): Client {
  return createOpenapiClient<paths>({
    baseUrl: options.baseUrl,
    headers: credentialHeaders(options),
    fetch: transport({ fetch: options.fetch, retry: options.retry, ...how }),
    // The service never redirects, and nobody else should get the credential.
    redirect: "manual",
  });
}

function credentialHeaders(credential: Credential): Record<string, string> {
  return "token" in credential
    ? { Authorization: `Bearer ${credential.token}` }
    : { "X-Service-Ingest-Key": credential.ingestKey };
}
