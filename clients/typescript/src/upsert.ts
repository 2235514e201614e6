import { type Client, connect, type ConnectionOptions } from "./client.js";
import { ApiError, expectData } from "./errors.js";
import { MAX_ACCOUNTS, MAX_BODY_BYTES } from "./limits.js";
import type { Problem, UpsertAccount, UpsertBatchReply, UpsertPolicies, UpsertReply, UpsertResult } from "./types.js";

export interface UpserterOptions extends ConnectionOptions {
  /** An API token of the company. */
  token: string;
  /** The company's slug. */
  project: string;
}

export interface UpsertOptions {
  /** Ends the request, and the waiting for its repetition. */
  signal?: AbortSignal;
}

/** Room for what surrounds the accounts in the body of a batch: the project and the policies. */
const ENVELOPE_BYTES = 4096;

/**
 * Creates and changes accounts by their ids in your own system.
 *
 * An upsert is safe to repeat, so every request is repeated after 429, 503 and network errors.
 */
export class Upserter {
  readonly #client: Client;
  readonly #project: string;

  constructor(options: UpserterOptions) {
    this.#client = connect(options, { isRepeatable: () => true, gzip: true });
    this.#project = options.project;
  }

  /** Creates or changes an account. Throws an `ApiError` if it is refused. */
  async upsert(account: UpsertAccount, options: UpsertOptions = {}): Promise<UpsertReply> {
    const body = { ...account, project: this.#project };
    return expectData(await this.#client.POST("/api/accounts/upsert-by-imported-id/", { body, ...options }));
  }

  /**
   * Creates or changes up to 500 accounts with one request, and returns a result for each. One that is refused doesn't
   * affect the others. If this throws an `ApiError`, none of them was stored.
   */
  async upsertBatch(
    accounts: readonly UpsertAccount[],
    { signal, ...policies }: UpsertPolicies & UpsertOptions = {},
  ): Promise<UpsertBatchReply> {
    const body = { ...policies, project: this.#project, accounts: [...accounts] };
    const reply = await this.#client.POST("/api/accounts/upsert-batch/", { body, ...(signal && { signal }) });
    return expectData(reply);
  }

  /**
   * Creates or changes any number of accounts, in as few batches as possible, one after another. It yields a result
   * for each account, in order; `index` and the pointers count all accounts. If it throws, the accounts without a result
   * can be sent again.
   */
  async *upsertMany(
    accounts: Iterable<UpsertAccount> | AsyncIterable<UpsertAccount>,
    options: UpsertPolicies & UpsertOptions = {},
  ): AsyncGenerator<UpsertResult, void, undefined> {
    let first = 0;
    for await (const batch of inBatches(accounts)) {
      for (const result of await this.#results(batch, options)) yield moved(result, first);
      first += batch.length;
    }
  }

  async #results(batch: UpsertAccount[], options: UpsertPolicies & UpsertOptions): Promise<UpsertResult[]> {
    try {
      return (await this.upsertBatch(batch, options)).results;
    } catch (error) {
      // An account that fits into no request fails alone. It shouldn't end the rest.
      if (batch.length > 1 || !(error instanceof ApiError) || error.code !== "body_too_large") throw error;
      return [{ index: 0, status: error.status, error: error.problem ?? null }];
    }
  }
}

/** Collects accounts until a batch has as many, or as many bytes, as a request may have. */
async function* inBatches(accounts: Iterable<UpsertAccount> | AsyncIterable<UpsertAccount>) {
  const encoder = new TextEncoder();
  let batch: UpsertAccount[] = [];
  let bytes = ENVELOPE_BYTES;
  for await (const account of accounts) {
    const size = encoder.encode(JSON.stringify(account)).length + 1;
    if (batch.length === MAX_ACCOUNTS || (batch.length > 0 && bytes + size > MAX_BODY_BYTES)) {
      yield batch;
      batch = [];
      bytes = ENVELOPE_BYTES;
    }
    batch.push(account);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** The result with its position among all accounts, if those before its batch are this many. */
function moved(result: UpsertResult, first: number): UpsertResult {
  const index = first + result.index;
  return { ...result, index, ...(result.error && { error: withPointers(result.error, index) }) };
}

function withPointers(problem: Problem, index: number): Problem {
  const errors = problem.errors?.map((error) => ({
    ...error,
    pointer: error.pointer.replace(/^\/accounts\/\d+/, `/accounts/${index}`),
  }));
  return { ...problem, ...(errors && { errors }) };
}
