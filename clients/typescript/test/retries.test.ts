import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, createClient, NetworkError, Upserter } from "rapport-client";
import { backoffMs, retryAfterMs, retryPolicy } from "../dist/retry.js";
import {
  api,
  AT_ONCE,
  baseUrl,
  collectGarbage,
  cuttingProxy,
  fakeService,
  findAccounts,
  json,
  problem,
  project,
  recordingFetch,
  silence,
  token,
  unique,
  until,
} from "./support.js";

const busy = problem(503, "busy");

function upserterAt(baseUrl: string, retry = {}): Upserter {
  return new Upserter({ baseUrl, token, project, retry: { ...AT_ONCE, ...retry } });
}

/** Returns what an upsert throws. */
function failure(upserter: Upserter): Promise<unknown> {
  return upserter.upsert({ imported_id: "crm-1" }).then(
    () => assert.fail("the upsert succeeded"),
    (error: unknown) => error,
  );
}

test("the service's own 429 is waited for", async () => {
  const { data } = await api.POST("/api/tokens/", { body: { name: unique("slow"), role: "admin", rate_limit: 1 } });
  assert(data);
  const { fetch, requests } = recordingFetch();
  const upserter = new Upserter({ baseUrl, token: data.token, project, fetch });
  const imported_id = unique("limited");
  const replies = [];
  for (const seats of [1, 2, 3]) replies.push(await upserter.upsert({ imported_id, custom_fields: { seats } }));
  assert.deepEqual(replies.map(({ created }) => created), [true, false, false]);
  assert.equal(replies[2]?.account.custom_fields["seats"], 3);
  assert(requests.length > replies.length, "no request was repeated");
});

test("a request is repeated after 503, but not before Retry-After", async (t) => {
  const reply = { created: true };
  const service = await fakeService(t, problem(503, "unavailable", { "Retry-After": "1" }), busy, json(reply));
  assert.deepEqual(await upserterAt(service.url).upsert({ imported_id: "crm-1" }), reply);
  const [first, second, third] = service.received;
  assert(first && second && third && service.received.length === 3);
  assert(second.at - first.at >= 1000, `repeated after ${second.at - first.at} ms`);
});

test("502 and 504 of a proxy are temporary, 500 is not", async (t) => {
  const failing = await fakeService(t, problem(502, "x"), problem(504, "x"), problem(500, "internal_error"));
  const error = await failure(upserterAt(failing.url));
  assert(error instanceof ApiError && error.status === 500 && error.code === "internal_error");
  assert.equal(failing.received.length, 3);
});

test("after the last attempt the error is reported", async (t) => {
  const service = await fakeService(t, problem(503, "busy", { "X-Request-Id": "req-1" }));
  const error = await failure(upserterAt(service.url, { attempts: 3 }));
  assert(error instanceof ApiError);
  assert.deepEqual([error.status, error.code, error.requestId], [503, "busy", "req-1"]);
  assert.equal(service.received.length, 3);
});

test("a Retry-After that is too long is not waited for", async (t) => {
  const service = await fakeService(t, problem(429, "rate_limited", { "Retry-After": "3600" }));
  await assert.rejects(upserterAt(service.url).upsert({ imported_id: "crm-1" }), { status: 429 });
  assert.equal(service.received.length, 1);
});

test("a response without a problem document is an error too", async (t) => {
  const service = await fakeService(t, (response) => response.writeHead(403).end("<h1>Forbidden</h1>"));
  const error = await failure(upserterAt(service.url));
  assert(error instanceof ApiError);
  assert.deepEqual([error.status, error.problem, error.code], [403, undefined, undefined]);
});

test("connections that break are network errors", async (t) => {
  const service = await fakeService(t, (response) => response.destroy());
  const error = await failure(upserterAt(service.url, { attempts: 3 }));
  assert(error instanceof NetworkError && error.attempts === 3, String(error));
  assert.equal(service.received.length, 3);
});

test("a body that breaks off is a reason to repeat the request", async (t) => {
  const halfAReply = { "Content-Type": "application/json", "Content-Length": "1000" };
  const service = await fakeService(
    t,
    (response) => response.writeHead(200, halfAReply).write('{"created":', () => response.destroy()),
    json({ created: false }),
  );
  assert.deepEqual(await upserterAt(service.url).upsert({ imported_id: "crm-1" }), { created: false });
});

test("a service that doesn't answer is given up", async (t) => {
  const service = await fakeService(t, silence);
  const ended = failure(upserterAt(service.url, { attempts: 2, timeoutMs: 100 }));
  await until("the request arrived", () => service.received.length === 1);
  collectGarbage();
  const error = await ended;
  assert(error instanceof NetworkError, String(error));
  assert.match(error.message, /no response within 100 ms/);
  assert.equal(service.received.length, 2);
});

test("the caller's signal ends the waiting, and the request", async (t) => {
  const service = await fakeService(t, problem(503, "busy", { "Retry-After": "50" }), silence);
  const reason = new Error("not needed any more");
  for (const requests of [1, 2]) {
    const controller = new AbortController();
    const reply = upserterAt(service.url).upsert({ imported_id: "crm-1" }, { signal: controller.signal });
    const ended = assert.rejects(reply, reason);
    await until("the request arrived", () => service.received.length === requests);
    collectGarbage();
    controller.abort(reason);
    await ended;
    assert.equal(service.received.length, requests);
  }
  const signal = AbortSignal.abort(reason);
  await assert.rejects(upserterAt(service.url).upsert({ imported_id: "crm-1" }, { signal }), reason);
  assert.equal(service.received.length, 2);
});

test("a POST is repeated only with an Idempotency-Key, and then it is done once", async (t) => {
  const body = (imported_id: string) => ({ name: "Nordlys AS", imported_id });
  const [unsafe, safe] = [unique("unsafe"), unique("safe")];

  const proxy = await cuttingProxy(t, 2);
  const client = createClient({ baseUrl: proxy.url, token, retry: AT_ONCE });
  await assert.rejects(client.POST("/api/accounts/", { body: body(unsafe) }), TypeError);
  assert.equal(proxy.cuts(), 1);

  const headers = { "Idempotency-Key": crypto.randomUUID() };
  const { data, response } = await client.POST("/api/accounts/", { body: body(safe), headers });
  assert.equal(proxy.cuts(), 2);
  assert.equal(response.status, 201);
  assert.equal(response.headers.get("Idempotency-Replayed"), "true");
  assert.deepEqual((await findAccounts(safe)).map(({ id }) => id), [data?.id]);
});

test("GET requests are repeated", async (t) => {
  const proxy = await cuttingProxy(t, 1);
  const client = createClient({ baseUrl: proxy.url, token, retry: AT_ONCE });
  const { response } = await client.GET("/api/accounts/", { params: { query: { limit: 1 } } });
  assert.equal(response.status, 200);
  assert.equal(proxy.cuts(), 1);
});

test("a redirect is not followed, so the credential goes to nobody else", async (t) => {
  const other = await fakeService(t, json({}));
  const service = await fakeService(t, (response) => response.writeHead(307, { Location: other.url }).end());
  await assert.rejects(upserterAt(service.url).upsert({ imported_id: "crm-1" }), { name: "ApiError", status: 307 });
  assert.equal(other.received.length, 0);
});

test("waits double, are random, and end at the longest", () => {
  const policy = retryPolicy({ firstDelayMs: 100, maxDelayMs: 500 });
  const shortest = [1, 2, 3, 4, 5].map((attempt) => backoffMs(policy, attempt, 0));
  const longest = [1, 2, 3, 4, 5].map((attempt) => backoffMs(policy, attempt, 1));
  assert.deepEqual(shortest, [50, 100, 200, 250, 250]);
  assert.deepEqual(longest, [100, 200, 400, 500, 500]);
});

test("Retry-After is in seconds or a date", () => {
  const now = Date.parse("2026-01-05T09:00:00Z");
  for (const [value, wait] of [
    ["0", 0],
    ["12", 12_000],
    ["Mon, 05 Jan 2026 09:00:30 GMT", 30_000],
    ["Mon, 05 Jan 2026 08:00:00 GMT", 0],
    ["soon", 0],
  ] as const) {
    assert.equal(retryAfterMs(new Headers({ "Retry-After": value }), now), wait, value);
  }
  assert.equal(retryAfterMs(new Headers(), now), 0);
});

test("options that can't work are refused", () => {
  for (const retry of [{ attempts: 0 }, { timeoutMs: 0 }, { firstDelayMs: -1 }, { maxDelayMs: NaN }]) {
    assert.throws(() => createClient({ baseUrl, token, retry }), RangeError, JSON.stringify(retry));
  }
});
