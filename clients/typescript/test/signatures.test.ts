import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import {
  HeaderError,
  PayloadError,
  SignatureError,
  TimestampError,
  VerificationError,
  type VerifierOptions,
  WebhookVerifier,
} from "rapport-client/signatures";
import { Webhook } from "standardwebhooks";

const SECRET = "whs_0123456789abcdef";
const OTHER = "whs_fedcba9876543210";
const NOW = 1_790_000_000;
const BODY = '{"id":"evt_1","type":"account.created","data":{"account":{"name":"Ōkubo & Søn"}}}';

function forLibraries(secret: string): string {
  return `whsec_${Buffer.from(secret).toString("base64")}`;
}

function verifier(secrets: string | string[] = SECRET, options: VerifierOptions = {}): WebhookVerifier {
  return new WebhookVerifier(secrets, { now: () => NOW * 1000, ...options });
}

/** The headers of Standard Webhooks, made without the code under test. */
function standard({ secret = SECRET, id = "evt_1", timestamp = `${NOW}`, body = BODY } = {}) {
  const digest = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${digest}` };
}

function service(secret = SECRET, body = BODY) {
  return { "x-service-signature": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}` };
}

test("a genuine request gives its event", async () => {
  const event = await verifier().verify(BODY, standard());
  assert(event.type === "account.created");
  assert.deepEqual([event.id, event.data.account.name], ["evt_1", "Ōkubo & Søn"]);
  assert.deepEqual(await verifier().verifyServiceSignature(BODY, service()), event);
});

test("the body may be text or bytes, and the headers those of fetch or of Node.js", async () => {
  const headers = standard();
  const shouting = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  for (const body of [BODY, Buffer.from(BODY), new TextEncoder().encode(BODY)]) {
    for (const form of [headers, new Headers(headers), shouting, lists]) await verifier().verify(body, form);
  }
});

test("the published library's signatures verify, with either form of the secret", async () => {
  const date = new Date(NOW * 1000);
  const signature = new Webhook(forLibraries(SECRET)).sign("evt_1", date, BODY);
  const headers = { ...standard(), "webhook-signature": signature };
  for (const secret of [SECRET, forLibraries(SECRET)]) {
    await verifier(secret).verify(BODY, headers);
    await verifier(secret).verifyServiceSignature(BODY, service());
  }
});

test("during a rotation any of the secrets, and any of the signatures, will do", async () => {
  const both = verifier([OTHER, forLibraries(SECRET)]);
  for (const secret of [SECRET, OTHER]) {
    await both.verify(BODY, standard({ secret }));
    await both.verifyServiceSignature(BODY, service(secret));
  }
  const [old, current] = [standard({ secret: OTHER }), standard()];
  const signatures = ["v1a,asymmetric", old["webhook-signature"], current["webhook-signature"]].join(" ");
  await verifier().verify(BODY, { ...current, "webhook-signature": signatures });
});

test("requests that aren't genuine are refused, each with its own error", async () => {
  const headers = standard();
  const signed = (signature: string) => ({ ...headers, "webhook-signature": signature });
  const signature = headers["webhook-signature"];
  const without = (name: string) => Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
  const cases: [string, string, Record<string, string>, new (...parameters: never[]) => VerificationError][] = [
    ["changed body", BODY.replace("created", "deleted"), headers, SignatureError],
    ["changed id", BODY, { ...headers, "webhook-id": "evt_2" }, SignatureError],
    ["changed time", BODY, { ...headers, "webhook-timestamp": `${NOW + 1}` }, SignatureError],
    ["another secret", BODY, standard({ secret: OTHER }), SignatureError],
    ["beginning of a signature", BODY, signed(signature.slice(0, 20)), SignatureError],
    ["empty signature", BODY, signed("v1,"), SignatureError],
    ["another version", BODY, signed(signature.replace("v1,", "v2,")), HeaderError],
    ["no id", BODY, without("webhook-id"), HeaderError],
    ["no time", BODY, without("webhook-timestamp"), HeaderError],
    ["no signature", BODY, without("webhook-signature"), HeaderError],
    ["only the other signature", BODY, service(), HeaderError],
    ["no number", BODY, standard({ timestamp: "yesterday" }), HeaderError],
    ["an exponent", BODY, standard({ timestamp: "179e7" }), HeaderError],
    ["too old", BODY, standard({ timestamp: `${NOW - 301}` }), TimestampError],
    ["too new", BODY, standard({ timestamp: `${NOW + 301}` }), TimestampError],
    ["not JSON", "hello", standard({ body: "hello" }), PayloadError],
    ["no event", "[1]", standard({ body: "[1]" }), PayloadError],
  ];
  for (const [what, body, headers, kind] of cases) {
    const error = await verifier().verify(body, headers).catch((error: unknown) => error);
    assert(error instanceof kind && error instanceof VerificationError, `${what}: ${error}`);
    assert.equal(error.name, kind.name);
  }
});

test("X-Service-Signature is refused if it isn't right", async () => {
  const cases: [string, Record<string, string>, new (...parameters: never[]) => VerificationError][] = [
    ["another secret", service(OTHER), SignatureError],
    ["another body", service(SECRET, "{}"), SignatureError],
    ["missing", {}, HeaderError],
    ["capital letters", { "x-service-signature": service()["x-service-signature"].toUpperCase() }, HeaderError],
    ["too short", { "x-service-signature": service()["x-service-signature"].slice(0, -1) }, HeaderError],
    ["only the other signature", standard(), HeaderError],
  ];
  for (const [what, headers, kind] of cases) {
    const error = await verifier().verifyServiceSignature(BODY, headers).catch((error: unknown) => error);
    assert(error instanceof kind, `${what}: ${error}`);
  }
});

test("errors say what is wrong", async () => {
  const { "webhook-id": _, ...headers } = standard();
  await assert.rejects(verifier().verify(BODY, headers), { header: "webhook-id", message: "webhook-id is missing" });
  await assert.rejects(verifier().verify(BODY, { ...headers, "webhook-id": ["a", "b"] }), /more than once/);
  await assert.rejects(verifier().verify(BODY, standard({ timestamp: `${NOW - 3600}` })), {
    ageSeconds: 3600,
    message: "the request is 3600 seconds old; at most 300 are allowed",
  });
  await assert.rejects(verifier().verify(BODY, standard({ timestamp: `${NOW + 3600}` })), /3600 seconds in the future/);
});

test("the tolerance can be set", async () => {
  const old = standard({ timestamp: `${NOW - 60}` });
  await verifier(SECRET, { toleranceSeconds: 60 }).verify(BODY, old);
  await assert.rejects(verifier(SECRET, { toleranceSeconds: 59 }).verify(BODY, old), TimestampError);
});

test("a body that was parsed is a mistake of the program", async () => {
  const parsed = JSON.parse(BODY) as string;
  await assert.rejects(verifier().verify(parsed, standard()), TypeError);
  await assert.rejects(verifier().verifyServiceSignature(parsed, service()), TypeError);
});

test("secrets and options that can't work are refused", () => {
  for (const secrets of ["", [], [SECRET, ""], "whsec_", "whsec_not base64!"]) {
    assert.throws(() => verifier(secrets), TypeError, JSON.stringify(secrets));
  }
  for (const toleranceSeconds of [-1, NaN]) assert.throws(() => verifier(SECRET, { toleranceSeconds }), RangeError);
});
