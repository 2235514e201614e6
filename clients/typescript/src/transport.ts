// How requests are sent: repeated where that is safe, and compressed where that is worth it.
import { NetworkError } from "./errors.js";
import { backoffMs, isTemporary, retryAfterMs, retryPolicy, sleep } from "./retry.js";
import type { RetryOptions, RetryPolicy } from "./retry.js";

/** Sends a request, as the global `fetch` does. */
export type Fetch = (request: Request) => Promise<Response>;

/** Smaller bodies aren't worth compressing. */
const GZIP_FROM_BYTES = 1024;

export interface TransportOptions {
  fetch?: Fetch | undefined;
  retry?: RetryOptions | undefined;
  /** Which requests may be sent more than once. The others go out as they are, once. */
  isRepeatable: (request: Request) => boolean;
  /** Whether to compress the bodies of requests that may be repeated. */
  gzip: boolean;
}

export function transport({ fetch, retry, isRepeatable, gzip }: TransportOptions): Fetch {
  const policy = retryPolicy(retry);
  const send: Fetch = fetch ?? ((request) => globalThis.fetch(request));
  return async (request) => {
    if (!isRepeatable(request)) return send(request);
    return repeat(send, await prepare(request, gzip), policy);
  };
}

/** A request with its body in memory, so that it can be sent again. */
interface Prepared {
  original: Request;
  init: RequestInit;
}

async function prepare(request: Request, gzip: boolean): Promise<Prepared> {
  if (request.method === "GET" || request.method === "HEAD") return { original: request, init: {} };
  const body = await request.arrayBuffer();
  if (!gzip || body.byteLength < GZIP_FROM_BYTES || typeof CompressionStream === "undefined") {
    return { original: request, init: { body } };
  }
  const headers = new Headers(request.headers);
  headers.set("Content-Encoding", "gzip");
  const stream = new Blob([body]).stream().pipeThrough(new CompressionStream("gzip"));
  return { original: request, init: { headers, body: await new Response(stream).arrayBuffer() } };
}

async function repeat(send: Fetch, request: Prepared, policy: RetryPolicy): Promise<Response> {
  const { signal } = request.original;
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt >= policy.attempts;
    let delay = backoffMs(policy, attempt);
    try {
      const response = await once(send, request, policy.timeoutMs);
      const after = retryAfterMs(response.headers);
      if (!isTemporary(response) || isLast || after > policy.maxRetryAfterMs) return response;
      await response.body?.cancel();
      // Never earlier than the service says, and not everybody at the same moment.
      if (after > 0) delay = Math.max(delay, after + Math.random() * policy.firstDelayMs);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (isLast) throw new NetworkError(attempt, error);
    }
    await sleep(delay, signal);
  }
}

async function once(send: Fetch, { original, init }: Prepared, timeoutMs: number): Promise<Response> {
  const controller = new AbortController();
  // Node.js can forget that a request follows a signal once it has collected the request. So `fetch` isn't relied upon
  // to notice the end.
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener("abort", () => reject(controller.signal.reason), { once: true });
  });
  const cancel = () => controller.abort(original.signal.reason);
  if (original.signal.aborted) cancel();
  original.signal.addEventListener("abort", cancel, { once: true });
  const timer = setTimeout(() => controller.abort(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
  try {
    return await Promise.race([complete(send, new Request(original, { ...init, signal: controller.signal })), ended]);
  } finally {
    clearTimeout(timer);
  }
}

async function complete(send: Fetch, request: Request): Promise<Response> {
  const response = await send(request);
  // A body that breaks off is a reason to repeat the request too. Only JSON is waited for: files may be large.
  if (isJson(response)) await response.clone().arrayBuffer();
  return response;
}

function isJson(response: Response): boolean {
  return /^application\/(problem\+)?json\b/.test(response.headers.get("Content-Type") ?? "");
}
