// The identity provider of the tests: npm's oidc-provider over https, which can be told to misbehave.
//
// Arguments: the directory with oidc-provider in node_modules, and a directory that holds cert.pem and key.pem. From the
// latter, `orders.json` is read at every request: the people, the addresses that a login may return to, and what is
// wrong with the next answers. All of it may be missing.
//
//   people      {login: {claims}}: who can log in; the login is the subject unless the claims say otherwise
//   silent      the login of a person who has a session here already, so that nobody asks for it
//   forgetful   forgets the session that a browser has here when it comes with a new login
//   redirects   the addresses that a login may return to
//   token       claims that replace those of the ID token; null removes one
//   lean        leaves the person's claims out of the ID token, so that they are only in the user info
//   userinfo    claims that replace those of the user info
//   key         the key that signs: `first`, `second`, or `unpublished`, which is never published
//   published   the keys that are published: `first` by default
//   algorithm   `none` or `HS256` instead of a signature with the key
//   metadata    members that replace those of the discovery document
//   answers     {path: {status, body, headers}}: answers instead of the provider's own
//   code        a code that is accepted more than once
import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, directory] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(join(modules, 'node_modules/oidc-provider/lib/index.js')));
const CLIENT = { id: 'rapport', secret: 'the-secret-of-the-client' };

const read = (name) => readFileSync(join(directory, name), 'utf8');
const orders = () => {
  try {
    return JSON.parse(read('orders.json'));
  } catch (error) {
    if (error.code === 'ENOENT') return {};
    throw error;
  }
};

const keys = Object.fromEntries(['first', 'second', 'unpublished'].map((kid) => {
  // As text, and then as keys of their own: Node 20 hangs if it exports a key while it collects what generated it.
  const [publicKeyEncoding, privateKeyEncoding] = ['spki', 'pkcs8'].map((type) => ({ type, format: 'pem' }));
  const made = generateKeyPairSync('rsa', { modulusLength: 2048, publicKeyEncoding, privateKeyEncoding });
  const [privateKey, publicKey] = [createPrivateKey(made.privateKey), createPublicKey(made.publicKey)];
  const common = { kid, use: 'sig', alg: 'RS256' };
  const own = { ...privateKey.export({ format: 'jwk' }), ...common };
  return [kid, { privateKey, own, shown: { ...publicKey.export({ format: 'jwk' }), ...common } }];
}));

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const without = (claims) => Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null));

// Signs the claims of an ID token anew, as ordered.
function signedAgain(token, { token: changes = {}, key = 'first', algorithm = 'RS256' }) {
  const claims = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
  const header = algorithm === 'RS256' ? { alg: algorithm, kid: key } : { alg: algorithm };
  const text = `${encoded(header)}.${encoded(without({ ...claims, ...changes }))}`;
  const signature = {
    RS256: () => sign('sha256', Buffer.from(text), keys[key].privateKey),
    HS256: () => createHmac('sha256', CLIENT.secret).update(text).digest(),
    none: () => Buffer.alloc(0),
  }[algorithm]();
  return `${text}.${signature.toString('base64url')}`;
}

function claimsOf(login) {
  return { sub: login, ...orders().people?.[login] };
}

const server = createServer({ cert: read('cert.pem'), key: read('key.pem') });
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `https://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: ['https://unused.test/'] }],
  jwks: { keys: [keys.first.own] },
  cookies: { keys: ['a key for cookies'] },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  // Many providers put the person's claims into the ID token too.
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  ttl: { AccessToken: 3600, AuthorizationCode: 600, Grant: 3600, IdToken: 3600, Interaction: 3600, Session: 3600 },
  findAccount: (_, id) => ({ accountId: id, claims: () => without(claimsOf(id)) }),
  // Nobody is asked whether the client may know who they are.
  loadExistingGrant: async ({ oidc }) => {
    const known = oidc.session.grantIdFor(oidc.client.clientId);
    if (known) return provider.Grant.find(known);
    const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope('openid email profile');
    await grant.save();
    return grant;
  },
});

const { redirectUriAllowed } = provider.Client.prototype;
provider.Client.prototype.redirectUriAllowed = function isAllowed(uri, ...rest) {
  return (orders().redirects ?? []).includes(uri) || redirectUriAllowed.call(this, uri, ...rest);
};

const { consume } = provider.AuthorizationCode.prototype;
provider.AuthorizationCode.prototype.consume = function use(...rest) {
  return orders().code === 'reusable' ? undefined : consume.apply(this, rest);
};

const page = (body) => `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Acme login</title></head>
<body><main><h1>Acme login</h1>${body}</main></body></html>`;

// The page that asks who somebody is.
async function interact(ctx) {
  const { uid } = await provider.interactionDetails(ctx.req, ctx.res);
  let login = orders().silent;
  if (ctx.method === 'POST') {
    const chunks = [];
    for await (const chunk of ctx.req) chunks.push(chunk);
    login = new URLSearchParams(Buffer.concat(chunks).toString()).get('login');
  }
  if (login === undefined) {
    ctx.type = 'html';
    ctx.body = page(`<form method="post" action="/interaction/${uid}">
      <label for="login">Your login</label> <input id="login" name="login" required>
      <button>Continue to Rapport</button></form>
      <form method="post" action="/interaction/${uid}"><input type="hidden" name="login" value="">
      <button>Cancel</button></form>`);
    return;
  }
  const result = login in (orders().people ?? {})
    ? { login: { accountId: login, remember: false } }
    : { error: 'access_denied', error_description: 'nobody you know' };
  ctx.respond = false;
  await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: false });
}

provider.use(async (ctx, next) => {
  const { answers = {}, metadata, published, userinfo, ...others } = orders();
  appendFileSync(join(directory, 'requests.jsonl'), `${JSON.stringify({ method: ctx.method, path: ctx.path })}\n`);
  const answer = answers[ctx.path];
  if (answer) {
    ctx.status = answer.status ?? 200;
    ctx.set(answer.headers ?? {});
    ctx.body = answer.body;
    return;
  }
  // Also on the way back from the question: otherwise another person has to confirm that the one before is logged out.
  if (others.forgetful && (ctx.path === '/auth' || ctx.path.startsWith('/auth/'))) {
    const kept = (ctx.headers.cookie ?? '').split('; ').filter((cookie) => !cookie.startsWith('_session'));
    ctx.req.headers.cookie = kept.join('; ');
  }
  if (ctx.path.startsWith('/interaction/')) {
    await interact(ctx);
    return;
  }
  await next();
  if (ctx.status !== 200) return;
  if (ctx.path === '/.well-known/openid-configuration' && metadata) ctx.body = { ...ctx.body, ...metadata };
  if (ctx.path === '/jwks') ctx.body = { keys: (published ?? ['first']).map((kid) => keys[kid].shown) };
  if (ctx.path === '/me' && userinfo) ctx.body = { ...ctx.body, ...userinfo };
  if (ctx.path === '/token' && ctx.body.id_token) {
    const lean = others.lean ? { email: null, email_verified: null, name: null } : {};
    const ordered = { ...others, token: { ...lean, ...others.token } };
    ctx.body = { ...ctx.body, id_token: signedAgain(ctx.body.id_token, ordered) };
  }
});

server.on('request', provider.callback());
console.log(JSON.stringify({ issuer, now: Date.now(), client_id: CLIENT.id, client_secret: CLIENT.secret }));
// The process that started it holds the other end: it ends with that process, however that ends.
process.stdin.resume().on('end', () => process.exit());
