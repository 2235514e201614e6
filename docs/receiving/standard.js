const crypto = require("node:crypto");

const TOLERANCE_SECONDS = 300;

function isGenuine(secret, id, timestamp, signatures, body) {
  // Somebody may be repeating a request that they recorded.
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - timestamp) > TOLERANCE_SECONDS) return false;
  const hmac = crypto.createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body);
  const expected = Buffer.from("v1," + hmac.digest("base64"));
  return signatures.split(" ").some((signature) => {
    const received = Buffer.from(signature);
    return received.length === expected.length && crypto.timingSafeEqual(received, expected);
  });
}

const body = require("node:fs").readFileSync(0);
const [id, timestamp, signatures] = process.argv.slice(2);
process.exit(isGenuine(process.env.WEBHOOK_SECRET, id, timestamp, signatures, body) ? 0 : 1);
