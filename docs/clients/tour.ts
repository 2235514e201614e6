// A tour of the API with the package in clients/typescript, whose types are generated from /api/openapi.json.
// `./scripts/clients` compiles this program against the packed package and runs it on a fresh company.
import assert from "node:assert/strict";
import { type Account, createClient, IngestQueue, type Problem, type UpsertAccount, Upserter } from "rapport-client";

function variable(name: string): string {
  const value = process.env[name];
  assert(value, `${name} is not set`);
  return value;
}

const baseUrl = variable("RAPPORT_URL");
const project = variable("RAPPORT_PROJECT");

const token = variable("RAPPORT_TOKEN");
const ingestKey = variable("RAPPORT_INGEST_KEY");

const api = createClient({ baseUrl, token });
// Your product reports activity with the ingest key.
const product = createClient({ baseUrl, ingestKey });

/** Returns the body, if the response has this status. */
function expect<Data>(status: number, reply: { data?: Data; error?: unknown; response: Response }): Data {
  const { data, error, response } = reply;
  assert.equal(response.status, status, `${response.url}: ${JSON.stringify(error)}`);
  assert(data !== undefined, `${response.url}: no body`);
  return data;
}

/** Returns the problem document, if the response has this error status. */
function expectProblem(status: number, reply: { error?: Problem; response: Response }): Problem {
  const { error, response } = reply;
  assert.equal(response.status, status, response.url);
  assert(error !== undefined, `${response.url}: no problem document`);
  assert.equal(error.status, status);
  return error;
}

async function getAccount(id: string): Promise<Account> {
  return expect(200, await api.GET("/api/accounts/{id}/", { params: { path: { id } } }));
}

// Create an account and read it back.
const nordlys: Account = expect(
  201,
  await api.POST("/api/accounts/", {
    body: {
      name: "Nordlys Bank",
      imported_id: "crm-1",
      status: "contacted",
      captured_value: "48000",
      captured_value_currency: "EUR",
    },
  }),
);
assert.equal(nordlys.status, "contacted");
assert.deepEqual(await getAccount(nordlys.id), nordlys);

// Create a channel with a promo code.
const channel = expect(201, await api.POST("/api/channels/", { body: { name: "Spring fair" } }));
const code = expect(
  201,
  await api.POST("/api/channels/{id}/codes/", { params: { path: { id: channel.id } }, body: { code: "SPRING_26" } }),
);
assert.equal(code.code, "SPRING_26");

// Upsert by the id in your own system: the first call creates the account, and the same call again changes nothing.
const upserter = new Upserter({ baseUrl, token, project });
const record: UpsertAccount = {
  imported_id: "crm-2",
  name: "Fjell Energi",
  custom_fields: { plan: "team", seats: 12 },
  promo_code: "spring_26",
};
const created = await upserter.upsert(record);
assert(created.created && created.promo_code_matched);
assert.equal(created.account.custom_fields["seats"], 12);
assert.equal(created.account.channel?.id, channel.id);
const repeated = await upserter.upsert(record);
assert(!repeated.created);
assert.deepEqual(repeated.changed, []);
assert.equal(repeated.account.id, created.account.id);

// Upsert many accounts, in batches: each has a result, and one that is refused doesn't affect the others.
const results: number[] = [];
const records: UpsertAccount[] = [record, { imported_id: "crm-9", captured_value: "a lot" }];
for await (const result of upserter.upsertMany(records, { status_policy: "forward" })) results.push(result.status);
assert.deepEqual(results, [200, 422]);

// List the accounts, one to a page: send `next_cursor` until it is null.
const names: string[] = [];
let cursor: string | undefined;
do {
  const page = expect(200, await api.GET("/api/accounts/", { params: { query: { limit: 1, cursor } } }));
  names.push(...page.items.map((account) => account.name));
  cursor = page.next_cursor ?? undefined;
} while (cursor !== undefined);
assert.deepEqual(names.sort(), ["Fjell Energi", "Nordlys Bank"]);
const contacted = expect(
  200,
  await api.GET("/api/accounts/", { params: { query: { status: ["contacted", "customer"] } } }),
);
assert.deepEqual(contacted.items.map((account) => account.id), [nordlys.id]);

// Report activity: the trial moves the account, and an event without an account is returned.
const reply = expect(
  200,
  await product.POST("/api/pulse/ingest/", {
    body: {
      events: [
        { kind: "trial_started", imported_id: "crm-1", event_id: "e-1" },
        { kind: "feature_used", imported_id: "crm-1", feature: "app.export", event_id: "e-2" },
        { kind: "app_opened", imported_id: "nobody" },
      ],
    },
  }),
);
assert.deepEqual([reply.received, reply.accepted, reply.unmatched.length, reply.rejected.length], [3, 2, 1, 0]);
assert.equal(reply.unmatched[0]?.["imported_id"], "nobody");
assert.equal((await getAccount(nordlys.id)).status, "in_trial");

// The queue does the same in the background: in batches, repeated if necessary, and every event counts once.
const lost: string[] = [];
const activity = new IngestQueue({ baseUrl, ingestKey, onNotStored: (_, why) => lost.push(why.reason) });
for (const imported_id of ["crm-1", "crm-1", "nobody"]) {
  activity.add({ kind: "feature_used", feature: "app.share", imported_id, metadata: { format: "pdf" } });
}
await activity.close();
assert.deepEqual(lost, ["unmatched"]);
const pulse = expect(200, await api.GET("/api/accounts/{id}/pulse/", { params: { path: { id: nordlys.id } } }));
assert.equal(pulse.features.find(({ feature }) => feature === "app.share")?.count, 2);

// Upload a CSV file. Its columns are recognized, and nothing is imported until you start the import.
const upload = expect(
  201,
  await api.POST("/api/imports/", {
    params: { query: { filename: "accounts.csv" } },
    headers: { "Content-Type": "text/csv" },
    body: "imported_id,name\ncrm-3,Havn Logistikk\n",
    bodySerializer: (file) => file,
  }),
);
assert.deepEqual(upload.columns.map((column) => column.name), ["imported_id", "name"]);

// Errors are problem documents. This one names the invalid field.
const problem = expectProblem(
  422,
  await api.POST("/api/accounts/", { body: { name: "Vestland", captured_value: "a lot" } }),
);
assert.equal(problem.code, "invalid");
assert.deepEqual(problem.errors?.map((error) => error.pointer), ["/captured_value"]);
const stranger = createClient({ baseUrl, token: "unknown" });
expectProblem(401, await stranger.GET("/api/accounts/"));

// Create, list and delete a webhook. Only the first response contains its secret.
const webhook = expect(
  201,
  await api.POST("/api/webhooks/", {
    body: { url: "https://receiver.invalid/hooks", events: ["account.status_changed"] },
  }),
);
assert(webhook.enabled && webhook.secret.startsWith("whs_"));
assert(webhook.standard_secret.startsWith("whsec_"));
const webhooks = expect(200, await api.GET("/api/webhooks/"));
assert.deepEqual(webhooks.items.map((listed) => listed.id), [webhook.id]);
assert.deepEqual(webhooks.items[0]?.events, ["account.status_changed"]);
const unhooked = await api.DELETE("/api/webhooks/{id}/", { params: { path: { id: webhook.id } } });
assert.equal(unhooked.response.status, 204);
assert.deepEqual(expect(200, await api.GET("/api/webhooks/")).items, []);

// Delete an account: it is gone.
const removed = await api.DELETE("/api/accounts/{id}/", { params: { path: { id: nordlys.id } } });
assert.equal(removed.response.status, 204);
expectProblem(404, await api.GET("/api/accounts/{id}/", { params: { path: { id: nordlys.id } } }));
