/** How often a request that is safe to repeat is sent, and how long to wait in between. */
export interface RetryOptions {
  /** How often a request is sent at most, the first time included. 6 by default. */
  attempts?: number;
  /** The longest wait before the second attempt. It doubles with every further one. 500 by default. */
  firstDelayMs?: number;
  /** The longest wait that doubling leads to. 30 seconds by default. */
  maxDelayMs?: number;
  /** A longer `Retry-After` isn't waited for: the response is reported as an error instead. A minute by default. */
  maxRetryAfterMs?: number;
  /** How long an attempt may take. 30 seconds by default. */
  timeoutMs?: number;
}

export type RetryPolicy = Required<RetryOptions>;

const DEFAULTS: RetryPolicy = {
  attempts: 6,
  firstDelayMs: 500,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 60_000,
  timeoutMs: 30_000,
};

export function retryPolicy(options: RetryOptions = {}): RetryPolicy {
  const policy = { ...DEFAULTS, ...options };
  for (const [name, value] of Object.entries(policy)) {
    const least = name === "attempts" || name === "timeoutMs" ? 1 : 0;
    if (!(value >= least)) throw new RangeError(`retry.${name} must be at least ${least}, not ${value}`);
  }
  return policy;
}

/** Returns how long to wait after this attempt (1 for the first): at random, so that not all clients return at once. */
export function backoffMs(policy: RetryPolicy, attempt: number, random = Math.random()): number {
  const longest = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (attempt - 1));
  return (longest / 2) * (1 + random);
}

/** Returns how long `Retry-After` (seconds or a date) asks to wait; 0 if it isn't there or can't be read. */
export function retryAfterMs(headers: Headers, now = Date.now()): number {
  const value = headers.get("Retry-After")?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}

/** Whether the same request may succeed later. */
export function isTemporary({ status, headers }: Response): boolean {
  // 502 and 504 come from proxies. With 409, `Retry-After` says that the first request with this Idempotency-Key isn't
  // done yet.
  return [429, 502, 503, 504].includes(status) || (status === 409 && headers.has("Retry-After"));
}

/** Waits, unless the signal ends it: then it throws the signal's reason. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
