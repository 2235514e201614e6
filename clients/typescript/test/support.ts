// What the tests share: the service that they talk to, and servers for what it can't do on command.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server as HttpServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from "node:net";
import type { TestContext } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gunzipSync } from "node:zlib";
import { type Account, createClient, type Fetch, type RetryOptions } from "rapport-client";

export function variable(name: string): string {
  const value = process.env[name];
  assert(value, `${name} is not set`);
  return value;
}

export const baseUrl = variable("RAPPORT_URL");
export const project = variable("RAPPORT_PROJECT");
export const token = variable("RAPPORT_TOKEN");
export const ingestKey = variable("RAPPORT_INGEST_KEY");
export const api = createClient({ baseUrl, token });

/** Repeats at once, so that tests don't wait. */
export const AT_ONCE: RetryOptions = { firstDelayMs: 0 };

/** Returns an id that no other test has. */
export function unique(name: string): string {
  return `${name}-${randomUUID()}`;
}

export async function createAccount(): Promise<{ id: string; imported_id: string }> {
  const imported_id = unique("account");
  const { data, error } = await api.POST("/api/accounts/", { body: { name: "Nordlys AS", imported_id } });
  assert(data, JSON.stringify(error));
  return { id: data.id, imported_id };
}

export async function findAccounts(imported_id: string): Promise<Account[]> {
  const { data, error } = await api.GET("/api/accounts/", { params: { query: { imported_id } } });
  assert(data, JSON.stringify(error));
  return data.items;
}

/** Returns how often a feature of an account was used. */
export async function usage(id: string, feature: string): Promise<number> {
  const { data, error } = await api.GET("/api/accounts/{id}/pulse/", { params: { path: { id } } });
  assert(data, JSON.stringify(error));
  return data.features.find((used) => used.feature === feature)?.count ?? 0;
}

/** Waits until a condition holds. The limit is for tests that hang. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const limit = Date.now() + 60_000;
  while (!(await holds())) {
    assert(Date.now() < limit, `after a minute: not ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Collects garbage: objects that only something pending was to reach may be gone after it. */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

/** A `fetch` that remembers the requests that it sends. */
export function recordingFetch(): { fetch: Fetch; requests: Request[] } {
  const requests: Request[] = [];
  const recording: Fetch = (request) => {
    requests.push(request.clone());
    return fetch(request);
  };
  return { fetch: recording, requests };
}

/** Returns the JSON that a recorded request has, decompressed. */
export async function sentJson(request: Request): Promise<unknown> {
  const body = Buffer.from(await request.arrayBuffer());
  return JSON.parse((request.headers.get("Content-Encoding") === "gzip" ? gunzipSync(body) : body).toString());
}

/** Forwards connections to the service, and cuts the first ones as soon as their response arrives. */
export async function cuttingProxy(t: TestContext, cuts: number): Promise<{ url: string; cuts: () => number }> {
  const service = new URL(baseUrl);
  let done = 0;
  const server = createTcpServer((client) => {
    const upstream = connect(Number(service.port), service.hostname);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
    client.pipe(upstream);
    upstream.on("data", (data) => {
      if (done >= cuts) return void client.write(data);
      done += 1;
      end();
    });
  });
  return { url: await listening(t, server), cuts: () => done };
}

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  /** In milliseconds, by a clock that only goes forward. */
  at: number;
}

type Answer = (response: ServerResponse) => void;

/** A server that gives these answers, and the last one to everything after them. */
export async function fakeService(t: TestContext, ...answers: Answer[]) {
  const received: Received[] = [];
  const server: HttpServer = createServer((request, response) => {
    request.resume().on("end", () => {
      received.push({ path: request.url ?? "", headers: request.headers, at: performance.now() });
      const answer = answers[Math.min(received.length, answers.length) - 1];
      assert(answer);
      answer(response);
    });
  });
  t.after(() => server.closeAllConnections());
  return { url: await listening(t, server), received };
}

/** Answers with a problem document. */
export function problem(status: number, code: string, headers: Record<string, string> = {}): Answer {
  const body = JSON.stringify({ type: `urn:rapport:problem:${code}`, title: code, status, detail: code, code });
  return (response) => response.writeHead(status, { "Content-Type": "application/problem+json", ...headers }).end(body);
}

/** Answers with JSON. */
export function json(body: unknown): Answer {
  return (response) => response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

/** Never answers. */
export const silence: Answer = () => {};

async function listening(t: TestContext, server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
