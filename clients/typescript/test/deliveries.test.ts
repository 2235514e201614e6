// Deliveries of the real service. They need a receiver with a certificate that the service trusts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { SignatureError, Upserter, WebhookVerifier } from "rapport-client";
import { api, baseUrl, project, token, unique, until } from "./support.js";

const { CERTIFICATE, KEY } = process.env;
const skip = CERTIFICATE && KEY ? false : "CERTIFICATE and KEY aren't set";

interface Delivery {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

test("the service's deliveries verify, also during a rotation", { skip }, async (t) => {
  const deliveries: Delivery[] = [];
  const certificate = { cert: readFileSync(CERTIFICATE ?? ""), key: readFileSync(KEY ?? "") };
  const server = createServer(certificate, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    deliveries.push({ headers: request.headers, body: Buffer.concat(chunks) });
    response.writeHead(204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `https://127.0.0.1:${port}/hooks`;
  const { data: webhook } = await api.POST("/api/webhooks/", { body: { url, events: ["account.created"] } });
  assert(webhook);
  const path = { id: webhook.id };
  t.after(async () => {
    await api.DELETE("/api/webhooks/{id}/", { params: { path } });
    server.close();
    server.closeAllConnections();
  });

  /** Returns the next delivery of this event. */
  let seen = 0;
  const next = async (isIt: (delivery: Delivery) => boolean): Promise<Delivery> => {
    let found: Delivery | undefined;
    await until("the delivery arrived", () => {
      found = deliveries.slice(seen).find(isIt);
      return found !== undefined;
    });
    assert(found);
    seen = deliveries.indexOf(found) + 1;
    return found;
  };

  // Both signatures of an event verify, with both forms of the secret.
  const imported_id = unique("ø");
  const upserter = new Upserter({ baseUrl, token, project });
  const { account } = await upserter.upsert({ imported_id, name: "Ōkubo & Søn" });
  const created = await next(({ body }) => body.includes(account.id));
  for (const secret of [webhook.secret, webhook.standard_secret]) {
    const verifier = new WebhookVerifier(secret);
    const event = await verifier.verify(created.body, created.headers);
    assert(event.type === "account.created");
    assert.deepEqual([event.data.account.imported_id, event.data.account.name], [imported_id, "Ōkubo & Søn"]);
    assert.equal(created.headers["webhook-id"], event.id);
    assert.deepEqual(await verifier.verifyServiceSignature(created.body, created.headers), event);
  }

  // After a rotation only the new secret verifies, and a receiver with both takes old and new deliveries.
  const { data: rotated } = await api.POST("/api/webhooks/{id}/rotate/", { params: { path } });
  assert(rotated);
  const { data: sent } = await api.POST("/api/webhooks/{id}/test/", { params: { path } });
  assert(sent);
  const tested = await next(({ headers }) => headers["webhook-id"] === sent.event_id);
  const both = new WebhookVerifier([webhook.secret, rotated.secret]);
  assert.equal((await both.verify(tested.body, tested.headers)).type, "webhook.test");
  await both.verify(created.body, created.headers);
  const old = new WebhookVerifier(webhook.secret);
  await assert.rejects(old.verify(tested.body, tested.headers), SignatureError);
  await assert.rejects(old.verifyServiceSignature(tested.body, tested.headers), SignatureError);
});
