// A receiver that verifies deliveries with a library: npm install standardwebhooks
// WEBHOOK_SECRET is the secret in the form for libraries (whsec_…); CERTIFICATE and KEY are files in PEM format.
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { Webhook } from "standardwebhooks";

const { WEBHOOK_SECRET, CERTIFICATE, KEY, PORT = "9443" } = process.env;
const webhook = new Webhook(WEBHOOK_SECRET);
// Keep these in your database, together with what you do for an event, and delete them after 90 days.
const handled = new Set();

function receive(headers, body) {
  let event;
  try {
    // Checks the signature, and that the timestamp is at most five minutes off.
    event = webhook.verify(body, headers);
  } catch (error) {
    console.log("refused", error.message);
    // Not 401, which ends the delivery: after you have fixed the secret, a retry can succeed.
    return 400;
  }
  console.log(handled.has(event.id) ? "repeated" : "handled", event.id, event.type);
  handled.add(event.id);
  return 204;
}

const server = createServer({ cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) }, async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  response.writeHead(receive(request.headers, Buffer.concat(chunks)));
  response.end();
});
server.listen(Number(PORT), "127.0.0.1", () => {
  console.log(`Listening on https://127.0.0.1:${server.address().port}/`);
});
