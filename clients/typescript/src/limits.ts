// The limits of the service. A test compares them with its OpenAPI document.

/** The most events that one ingest request may have. */
export const MAX_EVENTS = 100;
/** The most accounts that one batch of upserts may have. */
export const MAX_ACCOUNTS = 500;
/** The largest body of a request, before compression. */
export const MAX_BODY_BYTES = 1024 * 1024;
