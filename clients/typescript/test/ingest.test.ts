import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ActivityEvent,
  IngestQueue,
  type IngestQueueOptions,
  MAX_EVENTS,
  NetworkError,
  type NotStored,
  type QueuedEvent,
} from "rapport-client";
import {
  api,
  AT_ONCE,
  baseUrl,
  collectGarbage,
  createAccount,
  cuttingProxy,
  fakeService,
  ingestKey,
  problem,
  recordingFetch,
  sentJson,
  silence,
  unique,
  until,
  usage,
} from "./support.js";

const NEVER_MS = 3_600_000;

/** A queue that sends only full batches and what is flushed, and what it reported. */
function queueWith(options: Partial<IngestQueueOptions> = {}) {
  const reports: { event: QueuedEvent; why: NotStored }[] = [];
  const onNotStored = (event: QueuedEvent, why: NotStored) => void reports.push({ event, why });
  const defaults = { baseUrl, ingestKey, onNotStored, flushAfterMs: NEVER_MS, retry: AT_ONCE };
  return { queue: new IngestQueue({ ...defaults, ...options }), reports };
}

function used(imported_id: string, feature = "app.export"): ActivityEvent {
  return { kind: "feature_used", imported_id, feature };
}

async function sentEvents(request: Request | undefined): Promise<QueuedEvent[]> {
  assert(request);
  return ((await sentJson(request)) as { events: QueuedEvent[] }).events;
}

test("full batches go out by themselves, and the rest when the queue is closed", async () => {
  const { fetch, requests } = recordingFetch();
  const { queue, reports } = queueWith({ fetch });
  const account = await createAccount();
  for (let count = 0; count < 2 * MAX_EVENTS + 7; count++) assert(queue.add(used(account.imported_id)));
  await until("two batches are stored", () => queue.pending === 7);
  assert.equal(await usage(account.id, "app.export"), 2 * MAX_EVENTS);
  await queue.close();
  assert.equal(queue.pending, 0);
  assert.equal(await usage(account.id, "app.export"), 2 * MAX_EVENTS + 7);
  assert.deepEqual(reports, []);

  assert.deepEqual(requests.map(({ headers }) => headers.get("Content-Encoding")), ["gzip", "gzip", "gzip"]);
  const events = (await Promise.all(requests.map(sentEvents))).flat();
  assert.equal(new Set(events.map(({ event_id }) => event_id)).size, 2 * MAX_EVENTS + 7);
});

test("events that wait are sent after a time", async () => {
  const { queue } = queueWith({ flushAfterMs: 10 });
  const account = await createAccount();
  for (const round of [1, 2, 3]) {
    queue.add(used(account.imported_id));
    await until("the event is sent", () => queue.pending === 0);
    assert.equal(await usage(account.id, "app.export"), round);
  }
});

test("events that arrive while others are sent are sent too", async () => {
  const { queue, reports } = queueWith({ flushAfterMs: 1, batchSize: 3 });
  const account = await createAccount();
  for (let count = 0; count < 50; count++) {
    queue.add(used(account.imported_id));
    await new Promise((resolve) => setTimeout(resolve, count % 3));
  }
  await until("all are sent", () => queue.pending === 0);
  assert.equal(await usage(account.id, "app.export"), 50);
  assert.deepEqual(reports, []);
});

test("lost responses lead to repetitions, and every event counts once", async (t) => {
  const proxy = await cuttingProxy(t, 3);
  const { queue, reports } = queueWith({ baseUrl: proxy.url, batchSize: 10 });
  const account = await createAccount();
  for (let count = 0; count < 25; count++) queue.add(used(account.imported_id));
  await queue.close();
  assert.equal(proxy.cuts(), 3);
  assert.equal(await usage(account.id, "app.export"), 25);
  assert.deepEqual(reports, []);
});

test("events keep their order", async () => {
  const { queue } = queueWith({ batchSize: 2 });
  const { id, imported_id } = await createAccount();
  for (const kind of ["trial_started", "churned", "trial_started", "became_customer", "churned"] as const) {
    queue.add({ kind, imported_id });
  }
  await queue.close();
  const { data } = await api.GET("/api/accounts/{id}/history/", { params: { path: { id } } });
  const stages = data?.items.map(({ to }) => to).reverse();
  assert.deepEqual(stages, ["prospect", "in_trial", "lost", "in_trial", "customer", "lost"]);
});

test("an event is sent as it was when it was added, with an id and its time", async () => {
  const { fetch, requests } = recordingFetch();
  const { queue } = queueWith({ fetch });
  const account = await createAccount();
  const before = Date.now();
  const metadata = { plan: "team" };
  const event: ActivityEvent = { kind: "app_opened", imported_id: account.imported_id, metadata };
  queue.add(event);
  const own = { event_id: unique("own"), occurred_at: "2026-01-05T09:00:00Z" };
  queue.add({ ...event, ...own });
  metadata.plan = "changed later";
  await queue.close();
  const [stamped, kept] = await sentEvents(requests[0]);
  assert.deepEqual(stamped?.metadata, { plan: "team" });
  assert.match(stamped?.event_id ?? "", /^[0-9a-f-]{36}$/);
  const time = Date.parse(stamped?.occurred_at ?? "");
  assert(time >= before && time <= Date.now());
  assert.deepEqual({ event_id: kept?.event_id, occurred_at: kept?.occurred_at }, own);
  assert(!("event_id" in event), "the caller's event was changed");
});

test("an event_id that was accepted before is no error, and has no effect", async () => {
  const { queue, reports } = queueWith();
  const account = await createAccount();
  const event = { ...used(account.imported_id), event_id: unique("event") };
  for (const _ of [1, 2]) {
    queue.add(event);
    await queue.flush();
  }
  assert.equal(await usage(account.id, "app.export"), 1);
  assert.deepEqual(reports, []);
});

test("invalid events and those without an account are reported, the others stored", async () => {
  const { queue, reports } = queueWith();
  const account = await createAccount();
  queue.add({ ...used(account.imported_id), feature: null });
  queue.add(used(account.imported_id));
  queue.add(used("nobody"));
  await queue.flush();
  assert.equal(await usage(account.id, "app.export"), 1);
  const [rejected, unmatched] = reports;
  assert.equal(reports.length, 2);
  assert(rejected?.why.reason === "rejected");
  assert.deepEqual([rejected.why.field, rejected.why.code], ["feature", "required"]);
  assert.deepEqual([unmatched?.event.imported_id, unmatched?.why], ["nobody", { reason: "unmatched" }]);
});

test("a batch without a valid event reports each", async () => {
  const { queue, reports } = queueWith();
  const account = await createAccount();
  queue.add({ ...used(account.imported_id), feature: null });
  queue.add({ kind: "nonsense" as "custom", imported_id: account.imported_id });
  await queue.flush();
  assert.deepEqual(
    reports.map(({ why }) => [why.reason, why.reason === "rejected" && why.field]),
    [["rejected", "feature"], ["rejected", "kind"]],
  );
});

test("an event that makes a request unreadable doesn't spoil the others", async () => {
  const { queue, reports } = queueWith();
  const account = await createAccount();
  let deep: Record<string, unknown> = {};
  for (let level = 0; level < 500; level++) deep = { deep };
  const large = { text: "x".repeat(2_000_000) };
  for (const metadata of [undefined, deep, undefined, large, undefined]) {
    queue.add({ ...used(account.imported_id), ...(metadata && { metadata }) });
  }
  await queue.flush();
  assert.equal(await usage(account.id, "app.export"), 3);
  assert.deepEqual(reports.map(({ why }) => why.reason), ["failed", "failed"]);
  assert.deepEqual(reports.map(({ event }) => event.metadata), [deep, large]);
});

test("many large events go out in more requests", async () => {
  const { fetch, requests } = recordingFetch();
  const { queue, reports } = queueWith({ fetch });
  const account = await createAccount();
  // Too large for an event, but not for a request.
  const metadata = { text: "x".repeat(60_000) };
  for (let count = 0; count < 40; count++) queue.add({ ...used(account.imported_id), metadata });
  await queue.flush();
  assert.deepEqual((await Promise.all(requests.map(sentEvents))).map(({ length }) => length), [17, 17, 6]);
  assert.equal(reports.length, 40);
  assert(reports.every(({ why }) => why.reason === "rejected" && why.code === "too_large"));
});

test("a full queue drops new events, and ready() waits for room", async (t) => {
  const service = await fakeService(t, silence);
  const { queue, reports } = queueWith({ baseUrl: service.url, maxPending: 3, retry: { attempts: 1, timeoutMs: 200 } });
  const added = ["a", "b", "c", "d"].map((imported_id) => queue.add(used(imported_id)));
  assert.deepEqual(added, [true, true, true, false]);
  assert.deepEqual(reports.map(({ event, why }) => [event.imported_id, why.reason]), [["d", "dropped"]]);
  assert.equal(queue.pending, 3);
  const flushed = queue.flush();
  await queue.ready();
  assert(queue.pending < 3);
  assert(queue.add(used("e")));
  await flushed;
  await queue.close();
});

test("a batch that can't be sent is reported with its ids, so that it can be added again", async (t) => {
  const service = await fakeService(t, (response) => response.destroy());
  const account = await createAccount();
  const unreachable = queueWith({ baseUrl: service.url, retry: { ...AT_ONCE, attempts: 3 } });
  for (let count = 0; count < 4; count++) unreachable.queue.add(used(account.imported_id));
  await unreachable.queue.flush();
  assert.equal(service.received.length, 3);
  assert.equal(unreachable.reports.length, 4);
  assert(unreachable.reports.every(({ why }) => why.reason === "failed" && why.error instanceof NetworkError));

  const { queue, reports } = queueWith();
  for (const { event } of unreachable.reports) queue.add(event);
  await queue.close();
  assert.equal(await usage(account.id, "app.export"), 4);
  assert.deepEqual(reports, []);
});

test("a wrong key fails at once", async () => {
  const { fetch, requests } = recordingFetch();
  const { queue, reports } = queueWith({ fetch, ingestKey: "rik_wrong" });
  queue.add(used("anybody"));
  await queue.flush();
  const why = reports[0]?.why;
  assert(why?.reason === "failed");
  assert.deepEqual([(why.error as { code?: unknown }).code, requests.length], ["unauthenticated", 1]);
});

test("flush returns when what was there is stored, even if more is added all the time", async () => {
  const { queue } = queueWith({ batchSize: 1 });
  const account = await createAccount();
  queue.add(used(account.imported_id, "first"));
  const adding = setInterval(() => queue.add(used(account.imported_id, "later")), 1);
  try {
    await queue.flush();
  } finally {
    clearInterval(adding);
  }
  assert.equal(await usage(account.id, "first"), 1);
  await queue.close();
});

test("a closed queue takes no events", async () => {
  const { queue, reports } = queueWith();
  await queue.close();
  assert.equal(queue.add(used("anybody")), false);
  assert.deepEqual(reports.map(({ why }) => why), [{ reason: "dropped" }]);
});

test("close with a limit reports what isn't stored by then", async (t) => {
  for (const answer of [silence, problem(503, "busy", { "Retry-After": "50" })]) {
    const service = await fakeService(t, answer);
    const { queue, reports } = queueWith({ baseUrl: service.url, batchSize: 2 });
    for (const imported_id of ["a", "b", "c"]) queue.add(used(imported_id));
    await until("a batch was sent", () => service.received.length === 1);
    collectGarbage();
    await queue.close({ timeoutMs: 50 });
    const notStored = reports.map(({ event, why }) => `${event.imported_id} ${why.reason}`);
    assert.deepEqual(notStored, ["a failed", "b failed", "c failed"]);
    assert.equal(queue.pending, 0);
  }
});

test("what can't be JSON is refused when it is added", () => {
  const { queue } = queueWith();
  assert.throws(() => queue.add({ ...used("anybody"), metadata: { count: 1n } }), TypeError);
  assert.equal(queue.pending, 0);
});

test("options that can't work are refused", () => {
  for (const options of [{ batchSize: 0 }, { batchSize: MAX_EVENTS + 1 }, { maxPending: 0 }, { flushAfterMs: -1 }]) {
    assert.throws(() => queueWith(options), RangeError, JSON.stringify(options));
  }
});
