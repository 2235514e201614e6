import { type Client, connect, type ConnectionOptions } from "./client.js";
import { ApiError, expectData } from "./errors.js";
import { MAX_BODY_BYTES, MAX_EVENTS } from "./limits.js";
import type { ActivityEvent, RejectedEvent } from "./types.js";

export interface IngestQueueOptions extends ConnectionOptions {
  /** The company's ingest key. */
  ingestKey: string;
  /** Called once for every event that was added but isn't stored. It must not throw. */
  onNotStored: (event: QueuedEvent, why: NotStored) => void;
  /** As many events are sent at once, at most 100, which is also the default. */
  batchSize?: number;
  /** How long an event waits for others. A second by default. */
  flushAfterMs?: number;
  /** How many events may wait or be on their way. 10,000 by default. */
  maxPending?: number;
}

/** An event as it is sent: with an id, which makes it safe to send again, and with its time. */
export type QueuedEvent = ActivityEvent & { event_id: string; occurred_at: string };

/** Why an event isn't stored. */
export type NotStored =
  /** The event is invalid. Sending it again is of no use. */
  | ({ reason: "rejected" } & Omit<RejectedEvent, "index">)
  /** No account has its id. Import the account first, then the event can be sent again. */
  | { reason: "unmatched" }
  /** Its request was refused, or no response came after all attempts. It may be stored; adding it again is safe. */
  | { reason: "failed"; error: unknown }
  /** The queue was full, or closed. The event was never sent. */
  | { reason: "dropped" };

interface Pending {
  event: QueuedEvent;
  json: string;
  bytes: number;
}

/** Room for what surrounds the events in the body of a request. */
const ENVELOPE_BYTES = 64;

/**
 * Sends client activity in batches, in the order in which it was added, one request at a time.
 *
 * Every event gets an `event_id`, so a request can be repeated without counting an event twice.
 */
export class IngestQueue {
  readonly #client: Client;
  readonly #onNotStored: IngestQueueOptions["onNotStored"];
  readonly #batchSize: number;
  readonly #flushAfterMs: number;
  readonly #maxPending: number;
  readonly #stop = new AbortController();
  readonly #encoder = new TextEncoder();

  #waiting: Pending[] = [];
  /** How many of the waiting events are due now. The others wait until there are enough of them for a batch. */
  #due = 0;
  #added = 0;
  #settled = 0;
  #isClosed = false;
  #isSending = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #observers: { isDone: () => boolean; resolve: () => void }[] = [];

  constructor(options: IngestQueueOptions) {
    const { batchSize = MAX_EVENTS, flushAfterMs = 1000, maxPending = 10_000 } = options;
    if (!(batchSize >= 1 && batchSize <= MAX_EVENTS)) {
      throw new RangeError(`batchSize must be from 1 to ${MAX_EVENTS}, not ${batchSize}`);
    }
    if (!(maxPending >= 1)) throw new RangeError(`maxPending must be at least 1, not ${maxPending}`);
    if (!(flushAfterMs >= 0)) throw new RangeError(`flushAfterMs must be at least 0, not ${flushAfterMs}`);
    this.#client = connect(options, { isRepeatable: () => true, gzip: true });
    this.#onNotStored = options.onNotStored;
    this.#batchSize = batchSize;
    this.#flushAfterMs = flushAfterMs;
    this.#maxPending = maxPending;
  }

  /** How many events wait or are on their way. */
  get pending(): number {
    return this.#added - this.#settled;
  }

  /**
   * Adds an event, and returns at once. If the queue is full or closed, the event is dropped: it goes to `onNotStored`,
   * and the result is false. Events that are already in the queue are never dropped for new ones.
   */
  add(event: ActivityEvent): boolean {
    const { event_id, occurred_at } = event;
    const queued: QueuedEvent = {
      ...event,
      event_id: event_id ?? crypto.randomUUID(),
      occurred_at: occurred_at ?? new Date().toISOString(),
    };
    // What is sent is the event as it is now, whatever the caller does with its parts later.
    const json = JSON.stringify(queued);
    if (this.#isClosed || this.pending >= this.#maxPending) {
      this.#onNotStored(queued, { reason: "dropped" });
      return false;
    }
    this.#waiting.push({ event: queued, json, bytes: this.#encoder.encode(json).length + 1 });
    this.#added += 1;
    this.#wake();
    return true;
  }

  /** Waits until there is room for another event. */
  async ready(): Promise<void> {
    await this.#until(() => this.pending < this.#maxPending);
  }

  /** Sends what waits, and returns when everything that was added before is stored or reported. */
  async flush(): Promise<void> {
    const target = this.#added;
    this.#due = this.#waiting.length;
    this.#wake();
    await this.#until(() => this.#settled >= target);
  }

  /**
   * Takes no more events, and sends those that it has. With `timeoutMs`, what isn't stored by then is reported to
   * `onNotStored` as failed.
   */
  async close({ timeoutMs }: { timeoutMs?: number } = {}): Promise<void> {
    this.#isClosed = true;
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => this.#stop.abort(new Error(`the queue was closed for ${timeoutMs} ms`)), timeoutMs);
    try {
      await this.flush();
    } finally {
      clearTimeout(timer);
    }
  }

  #isTime(): boolean {
    return this.#due > 0 || this.#waiting.length >= this.#batchSize;
  }

  #wake(): void {
    if (this.#isTime()) {
      void this.#work();
    } else if (this.#waiting.length > 0) {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        void this.flush();
      }, this.#flushAfterMs);
    }
  }

  /** Sends batches as long as it is time for one. */
  async #work(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.#isTime()) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      const batch = this.#take();
      this.#due = Math.max(0, this.#due - batch.length);
      await this.#send(batch);
      this.#settled += batch.length;
      this.#notify();
    }
    this.#isSending = false;
    this.#wake();
  }

  /** Takes the next events, as many as a request may have. */
  #take(): Pending[] {
    let bytes = ENVELOPE_BYTES;
    const isTooMuch = ({ bytes: size }: Pending, index: number) => {
      bytes += size;
      return index === this.#batchSize || (index > 0 && bytes > MAX_BODY_BYTES);
    };
    const end = this.#waiting.findIndex(isTooMuch);
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
  }

  async #send(batch: Pending[]): Promise<void> {
    try {
      const reply = await this.#client.POST("/api/pulse/ingest/", {
        body: { events: batch.map(({ event }) => event) },
        bodySerializer: () => `{"events":[${batch.map(({ json }) => json).join(",")}]}`,
        signal: this.#stop.signal,
      });
      const { rejected, unmatched_indexes = [] } = expectData(reply);
      this.#reject(batch, rejected);
      for (const index of unmatched_indexes) this.#report(batch[index], { reason: "unmatched" });
    } catch (error) {
      if (isUnreadable(error) && batch.length > 1) {
        // One event spoils the request for the others. Halving finds it.
        const half = Math.ceil(batch.length / 2);
        await this.#send(batch.slice(0, half));
        await this.#send(batch.slice(half));
      } else if (error instanceof ApiError && error.code === "all_rejected") {
        this.#reject(batch, error.problem?.rejected ?? []);
      } else {
        for (const pending of batch) this.#report(pending, { reason: "failed", error });
      }
    }
  }

  #reject(batch: Pending[], rejected: RejectedEvent[]): void {
    for (const { index, ...why } of rejected) this.#report(batch[index], { reason: "rejected", ...why });
  }

  #report(pending: Pending | undefined, why: NotStored): void {
    if (!pending) return;
    try {
      this.#onNotStored(pending.event, why);
    } catch (error) {
      // As with other event handlers, what one throws doesn't stop the rest, and isn't hidden either.
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  #until(isDone: () => boolean): Promise<void> {
    if (isDone()) return Promise.resolve();
    return new Promise((resolve) => this.#observers.push({ isDone, resolve }));
  }

  #notify(): void {
    const observers = this.#observers;
    this.#observers = observers.filter(({ isDone }) => !isDone());
    for (const { isDone, resolve } of observers) if (isDone()) resolve();
  }
}

/** Whether the service couldn't read the request as a whole: not JSON to it, too deep or too large. */
function isUnreadable(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 413);
}
