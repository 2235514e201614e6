import type { Problem } from "./types.js";

/** The service refused a request, or failed. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    /** The status of the response. */
    readonly status: number,
    /** The problem document, unless something in front of the service answered. */
    readonly problem: Problem | undefined,
    /** The response's `X-Request-Id`, for questions to whoever runs the service. */
    readonly requestId: string | undefined,
  ) {
    super(problem ? `${status} ${problem.code}: ${describe(problem)}` : `the response has the status ${status}`);
  }

  /** The problem's code. Treat a code that you don't know by its status. */
  get code(): Problem["code"] | undefined {
    return this.problem?.code;
  }
}

/** No complete response arrived. The service may or may not have received the request. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";

  constructor(
    /** How often the request was sent. */
    readonly attempts: number,
    cause: unknown,
  ) {
    super(`no response after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${reason(cause)}`, { cause });
  }
}

/** Returns the body of a successful response, and throws an `ApiError` for any other. */
export function expectData<Data>(reply: { data?: Data; error?: unknown; response: Response }): Data {
  const { data, error, response } = reply;
  if (response.ok && data !== undefined) return data;
  const requestId = response.headers.get("X-Request-Id") ?? undefined;
  throw new ApiError(response.status, isProblem(error) ? error : undefined, requestId);
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "code" in body && typeof body.code === "string";
}

function describe(problem: Problem): string {
  const fields = problem.errors?.map(({ pointer, detail }) => `${pointer}: ${detail}`) ?? [];
  return [problem.detail, ...fields].join("; ");
}

/** The innermost message: `fetch` itself only says that it failed. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reason(error.cause) : error.message || error.name;
}
