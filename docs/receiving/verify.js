const crypto = require("node:crypto");

function isGenuine(secret, signature, body) {
  const expected = "sha256=" + crypto.createHmac("sha256", secret).update(body).digest("hex");
  const [a, b] = [Buffer.from(expected), Buffer.from(signature)];
  return a.length === b.length && crypto.timingSafeEqual(a, b);
}

const body = require("node:fs").readFileSync(0);
process.exit(isGenuine(process.env.WEBHOOK_SECRET, process.argv[2], body) ? 0 : 1);
