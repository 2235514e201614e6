import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ApiError, MAX_ACCOUNTS, MAX_EVENTS, type UpsertAccount, Upserter } from "rapport-client";
import {
  AT_ONCE,
  baseUrl,
  cuttingProxy,
  findAccounts,
  project,
  recordingFetch,
  sentJson,
  token,
  unique,
  variable,
} from "./support.js";

const upserter = new Upserter({ baseUrl, token, project });

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
}

test("the limits are those of the document", () => {
  const { schemas } = JSON.parse(readFileSync(variable("RAPPORT_OPENAPI"), "utf8")).components;
  assert.equal(MAX_EVENTS, schemas.IngestRequest.properties.events.maxItems);
  assert.equal(MAX_ACCOUNTS, schemas.UpsertBatchRequest.properties.accounts.maxItems);
});

test("an upsert creates an account, and the same again changes nothing", async () => {
  const account: UpsertAccount = { imported_id: unique("crm"), name: "Fjell Energi", custom_fields: { seats: 12 } };
  const created = await upserter.upsert(account);
  assert(created.created);
  assert.equal(created.account.name, "Fjell Energi");
  const repeated = await upserter.upsert(account);
  assert.deepEqual([repeated.created, repeated.changed], [false, []]);
});

test("a refused upsert names the field, and is not repeated", async () => {
  const { fetch, requests } = recordingFetch();
  const recorded = new Upserter({ baseUrl, token, project, fetch });
  const upsert = recorded.upsert({ imported_id: unique("crm"), captured_value: "a lot" });
  const error = await upsert.catch((error: unknown) => error);
  assert(error instanceof ApiError);
  assert.deepEqual([error.status, error.code], [422, "invalid"]);
  assert.deepEqual(error.problem?.errors?.map(({ pointer }) => pointer), ["/captured_value"]);
  assert.match(error.message, /\/captured_value/);
  assert(error.requestId);
  assert.equal(requests.length, 1);
});

test("an upsert whose response got lost is repeated, and there is one account", async (t) => {
  const proxy = await cuttingProxy(t, 2);
  const imported_id = unique("crm");
  const upserter = new Upserter({ baseUrl: proxy.url, token, project, retry: AT_ONCE });
  const reply = await upserter.upsert({ imported_id, name: "Havn Logistikk" });
  assert.equal(proxy.cuts(), 2);
  assert(!reply.created, "the first request had created it");
  assert.deepEqual((await findAccounts(imported_id)).map(({ id }) => id), [reply.account.id]);
});

test("a batch has a result for each account, and its policies apply to all", async () => {
  const [known, fresh] = [unique("crm"), unique("crm")];
  await upserter.upsert({ imported_id: known, name: "Before", status: "customer" });
  const reply = await upserter.upsertBatch(
    [
      { imported_id: known, name: "After", status: "contacted" },
      { imported_id: fresh, status: "nonsense" as "lost" },
      { imported_id: fresh },
    ],
    { name_policy: "update", status_policy: "forward" },
  );
  assert.deepEqual([reply.received, reply.succeeded, reply.failed], [3, 2, 1]);
  assert.deepEqual(reply.results.map(({ status }) => status), [200, 422, 201]);
  const [renamed, refused] = reply.results;
  assert.deepEqual([renamed?.reply?.account.name, renamed?.reply?.account.status], ["After", "customer"]);
  assert.deepEqual(refused?.error?.errors?.map(({ pointer }) => pointer), ["/accounts/1/status"]);
});

test("a batch that is refused as a whole throws", async () => {
  await assert.rejects(upserter.upsertBatch([]), { name: "ApiError", status: 422 });
  const stranger = new Upserter({ baseUrl, token, project: "another-company" });
  const refused = stranger.upsertBatch([{ imported_id: unique("crm") }]);
  await assert.rejects(refused, { status: 403, code: "foreign_project" });
});

test("many accounts go out in full batches, compressed, with results in order", async () => {
  const { fetch, requests } = recordingFetch();
  const upserter = new Upserter({ baseUrl, token, project, fetch });
  const prefix = unique("crm");
  const last = MAX_ACCOUNTS + 1;
  async function* accounts(): AsyncGenerator<UpsertAccount> {
    for (let index = 0; index <= last; index++) {
      yield { imported_id: `${prefix}-${index}`, ...(index === last && { captured_value: "a lot" }) };
    }
  }
  const results = await collect(upserter.upsertMany(accounts()));
  assert.deepEqual(results.map(({ index }) => index), [...Array(last + 1).keys()]);
  assert(results.slice(0, last).every(({ status, reply }) => status === 201 && reply?.created));
  assert.equal(results[last - 1]?.reply?.account.imported_id, `${prefix}-${last - 1}`);
  const refused = results[last]?.error?.errors?.map(({ pointer }) => pointer);
  assert.deepEqual(refused, [`/accounts/${last}/captured_value`]);
  assert.equal(requests.length, 2);
  assert.equal(requests[0]?.headers.get("Content-Encoding"), "gzip");
});

test("large accounts go out in more batches, and one that is too large fails alone", async () => {
  const { fetch, requests } = recordingFetch();
  const upserter = new Upserter({ baseUrl, token, project, fetch });
  // Each character has two bytes.
  const account = (characters: number) => {
    return { imported_id: unique("crm"), custom_fields: { note: "ø".repeat(characters) } };
  };
  const sizes = [...Array<number>(20).fill(30_000), 600_000, 30_000];
  const results = await collect(upserter.upsertMany(sizes.map(account)));
  assert.deepEqual(results.map(({ status }) => status), sizes.map((size) => (size > 100_000 ? 413 : 201)));
  assert.equal(results[20]?.error?.code, "body_too_large");
  const batches = await Promise.all(requests.map(sentJson));
  assert.deepEqual(batches.map((batch) => (batch as { accounts: unknown[] }).accounts.length), [17, 3, 1, 1]);
});

test("no accounts need no request", async () => {
  const { fetch, requests } = recordingFetch();
  assert.deepEqual(await collect(new Upserter({ baseUrl, token, project, fetch }).upsertMany([])), []);
  assert.equal(requests.length, 0);
});
