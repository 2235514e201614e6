// Verifies that a delivery comes from the service. This module needs nothing but Web Crypto.
import type { WebhookEvent } from "./types.js";

export type { WebhookEvent } from "./types.js";

/** A request isn't a genuine delivery. Answer it with 400: after 401 the delivery wouldn't be retried. */
export class VerificationError extends Error {
  override readonly name: string = "VerificationError";
}

/** A header that the check needs is missing, or isn't what it should be. */
export class HeaderError extends VerificationError {
  override readonly name = "HeaderError";

  constructor(
    /** The header's name. */
    readonly header: string,
    problem: string,
  ) {
    super(`${header} ${problem}`);
  }
}

/** The timestamp is too far from the clock: somebody may be repeating a request that they recorded. */
export class TimestampError extends VerificationError {
  override readonly name = "TimestampError";

  constructor(
    /** How old the request is; negative if its time is in the future. */
    readonly ageSeconds: number,
    toleranceSeconds: number,
  ) {
    const [distance, place] = [Math.abs(ageSeconds), ageSeconds > 0 ? "old" : "in the future"];
    super(`the request is ${distance} seconds ${place}; at most ${toleranceSeconds} are allowed`);
  }
}

/** No secret gives a signature that the request has: another secret, or somebody changed the request. */
export class SignatureError extends VerificationError {
  override readonly name = "SignatureError";
}

/** The signature is right, but the body isn't an event. */
export class PayloadError extends VerificationError {
  override readonly name = "PayloadError";
}

/** The headers of a request: those of the Fetch API or of Node.js. */
export type RequestHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifierOptions {
  /** How far the timestamp may be from the clock, in either direction. 300 by default. */
  toleranceSeconds?: number;
  /** Returns the time in milliseconds since 1970, instead of `Date.now`. */
  now?: () => number;
}

const encoder = new TextEncoder();

/**
 * Verifies deliveries.
 *
 * A secret may have either form: as it was shown (`whs_…`) or the one for libraries (`whsec_…`). While you rotate one,
 * give both the old and the new secret: a signature of any of them is accepted.
 */
export class WebhookVerifier {
  readonly #keys: Promise<CryptoKey>[];
  readonly #toleranceSeconds: number;
  readonly #now: () => number;

  constructor(secrets: string | readonly string[], { toleranceSeconds = 300, now = Date.now }: VerifierOptions = {}) {
    const list = typeof secrets === "string" ? [secrets] : secrets;
    if (list.length === 0) throw new TypeError("there must be at least one secret");
    if (!(toleranceSeconds >= 0)) throw new RangeError(`toleranceSeconds must be at least 0, not ${toleranceSeconds}`);
    const bytes = list.map(secretBytes);
    this.#keys = bytes.map((secret) => importKey(secret));
    this.#toleranceSeconds = toleranceSeconds;
    this.#now = now;
  }

  /**
   * Verifies `webhook-signature` (Standard Webhooks), which covers the id, the time and the body, and returns the
   * event. Give it the body exactly as it arrived. It throws a `VerificationError` if the request isn't genuine.
   */
  async verify(body: string | Uint8Array, headers: RequestHeaders): Promise<WebhookEvent> {
    const bytes = bodyBytes(body);
    const id = requiredHeader(headers, "webhook-id");
    const timestamp = requiredHeader(headers, "webhook-timestamp");
    const signatures = requiredHeader(headers, "webhook-signature").split(" ");
    if (!/^\d{1,12}$/.test(timestamp)) throw new HeaderError("webhook-timestamp", "isn't in seconds since 1970");
    const age = Math.floor(this.#now() / 1000) - Number(timestamp);
    if (Math.abs(age) > this.#toleranceSeconds) throw new TimestampError(age, this.#toleranceSeconds);
    if (!signatures.some((signature) => signature.startsWith("v1,"))) {
      throw new HeaderError("webhook-signature", "has no signature of version v1");
    }
    const signed = concatenated(encoder.encode(`${id}.${timestamp}.`), bytes);
    await this.#expectOneOf(signatures, signed, (digest) => `v1,${toBase64(digest)}`);
    return eventOf(bytes);
  }

  /**
   * Verifies `X-Service-Signature`, which covers the body only, and returns the event. A request that somebody recorded
   * stays valid, so you must remember the ids of events. Prefer `verify`.
   */
  async verifyServiceSignature(body: string | Uint8Array, headers: RequestHeaders): Promise<WebhookEvent> {
    const bytes = bodyBytes(body);
    const signature = requiredHeader(headers, "x-service-signature");
    if (!/^sha256=[0-9a-f]{64}$/.test(signature)) {
      throw new HeaderError("x-service-signature", "isn't sha256= and 64 hexadecimal digits");
    }
    await this.#expectOneOf([signature], bytes, (digest) => `sha256=${toHex(digest)}`);
    return eventOf(bytes);
  }

  async #expectOneOf(signatures: string[], signed: Bytes, write: (digest: Bytes) => string): Promise<void> {
    let isGenuine = false;
    for (const key of this.#keys) {
      const expected = write(new Uint8Array(await crypto.subtle.sign("HMAC", await key, signed)));
      for (const signature of signatures) isGenuine = isEqual(expected, signature) || isGenuine;
    }
    if (!isGenuine) throw new SignatureError("no secret gives this signature");
  }
}

type Bytes = Uint8Array<ArrayBuffer>;

/** The bytes of the secret as it was shown, which are the key of both signatures. */
function secretBytes(secret: string): Bytes {
  const bytes = secret.startsWith("whsec_") ? fromBase64(secret.slice("whsec_".length)) : encoder.encode(secret);
  if (!bytes?.length) throw new TypeError("a secret must be whs_… as it was shown, or whsec_… and base64");
  return bytes;
}

function importKey(secret: Bytes): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

function bodyBytes(body: string | Uint8Array): Bytes {
  if (typeof body === "string") return encoder.encode(body);
  if (body instanceof Uint8Array) return new Uint8Array(body);
  throw new TypeError("the body must be a string or bytes, exactly as it arrived, not what was parsed from it");
}

function requiredHeader(headers: RequestHeaders, name: string): string {
  const value = headerValue(headers, name);
  if (value === undefined) throw new HeaderError(name, "is missing");
  if (typeof value !== "string") throw new HeaderError(name, "is there more than once");
  return value;
}

function headerValue(headers: RequestHeaders, name: string): string | readonly string[] | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const entry = Object.entries(headers).find(([key]) => key.toLowerCase() === name);
  const value = entry?.[1];
  return typeof value === "object" && value.length === 1 ? value[0] : value;
}

/** Compares in constant time. Only the length, which is known, can be told from how long it takes. */
function isEqual(expected: string, received: string): boolean {
  if (expected.length !== received.length) return false;
  let difference = 0;
  for (let index = 0; index < expected.length; index++) {
    difference |= expected.charCodeAt(index) ^ received.charCodeAt(index);
  }
  return difference === 0;
}

function eventOf(bytes: Bytes): WebhookEvent {
  let event: unknown;
  try {
    event = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new PayloadError("the body isn't JSON", { cause });
  }
  if (!isEvent(event)) throw new PayloadError("the body isn't an event: it has no id and type");
  return event;
}

function isEvent(value: unknown): value is WebhookEvent {
  if (typeof value !== "object" || value === null || !("id" in value) || !("type" in value)) return false;
  return typeof value.id === "string" && typeof value.type === "string";
}

function concatenated(first: Bytes, second: Bytes): Bytes {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function toHex(bytes: Bytes): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function toBase64(bytes: Bytes): string {
  return btoa(String.fromCharCode(...bytes));
}

function fromBase64(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
