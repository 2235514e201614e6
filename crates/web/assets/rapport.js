// Adds what HTML alone cannot do: the palette, keyboard shortcuts, copying, passkeys and live updates. Every page works
// without it, but there are no passkeys then. The files in js/ follow it in the same module.

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");

// Shows the controls that only work with this script.
function dress(within = document) {
  all("[data-copy], [data-palette]", within).forEach((button) => (button.hidden = false));
  if (window.PublicKeyCredential) all("form[data-passkey]", within).forEach((form) => (form.hidden = false));
  if (!/Mac|iP/.test(navigator.platform)) all("[data-palette] kbd", within).forEach((key) => (key.textContent = "Ctrl K"));
  // Show exact times in the viewer's zone.
  all("time[datetime]", within).forEach((time) => {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.title = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
  });
}

// Copying
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const text = source.value ?? source.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), 1500);
});

// Passkeys. The server sends a challenge for the form, the authenticator answers it, and the form takes the answer along.
const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const toText = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
async function askPasskey(form) {
  const fields = new URLSearchParams(new FormData(form));
  // The form itself is sent later, and only once.
  fields.delete("form");
  const answer = await fetch(form.dataset.passkey, { method: "POST", body: fields });
  const asked = await answer.json().catch(() => ({}));
  // The person has to prove who they are first: the server asks for that when it gets the form as it is.
  if (asked.code === "proof_required") return;
  const faults = asked.errors?.map((error) => `${error.pointer.slice(1)} ${error.detail}.`).join(" ");
  if (!asked.options) throw new Error(faults ?? asked.detail ?? "That didn’t work. Reload the page and try again.");
  const { publicKey } = asked.options;
  publicKey.challenge = toBytes(publicKey.challenge);
  for (const known of [...(publicKey.allowCredentials ?? []), ...(publicKey.excludeCredentials ?? [])]) known.id = toBytes(known.id);
  if (publicKey.user) publicKey.user.id = toBytes(publicKey.user.id);
  const made = publicKey.user ? await navigator.credentials.create({ publicKey }) : await navigator.credentials.get({ publicKey });
  const response = Object.fromEntries(["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"].filter((name) => made.response[name]).map((name) => [name, toText(made.response[name])]));
  form.elements.state.value = asked.state;
  form.elements.credential.value = JSON.stringify({ id: made.id, rawId: toText(made.rawId), type: made.type, response, clientExtensionResults: {} });
}
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.passkey) return;
  event.preventDefault();
  if (form.dataset.sent) return;
  form.dataset.sent = "yes";
  const fault = one("[data-passkey-fault]", form);
  fault.hidden = true;
  try {
    await askPasskey(form);
    form.submit();
  } catch (error) {
    const text = error.name === "NotAllowedError" ? "The passkey wasn’t used." : error.name === "InvalidStateError" ? "This device already has a passkey for you." : error.message;
    fault.textContent = text.charAt(0).toUpperCase() + text.slice(1);
    fault.hidden = false;
    delete form.dataset.sent;
  }
});

// Send a form only once. The server checks this as well.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => delete form.dataset.sent, 3000);
});

// Filters apply as soon as they are chosen. With the keyboard, other options are passed on the way, so Enter applies.
let keyed;
document.addEventListener("pointerdown", () => (keyed = undefined), true);
document.addEventListener("keydown", (event) => {
  if (!event.target.matches?.("form[data-apply] select")) return;
  keyed = event.target;
  if (event.key === "Enter") keyed.form.requestSubmit();
});
document.addEventListener("change", (event) => {
  const chosen = event.target;
  if (chosen !== keyed && chosen.matches?.("form[data-apply] :is(select, input[type=checkbox], input[type=radio], input[type=date])")) chosen.form.requestSubmit();
});

// Update counts while typing, from the page that the Count button would show.
let typed;
document.addEventListener("input", (event) => {
  const form = event.target.closest?.("form[data-preview]");
  if (!form) return;
  clearTimeout(typed);
  typed = setTimeout(async () => {
    const asked = new URLSearchParams(new FormData(form));
    const fresh = (await load(`${form.dataset.preview}?${asked}`))?.getElementById("counts");
    if (fresh && asked.toString() === new URLSearchParams(new FormData(form)).toString()) document.getElementById("counts").replaceChildren(...fresh.childNodes);
  }, 300);
});

// A click anywhere in a row opens it, except on what has a meaning of its own, and while text is selected.
const OWN = "a, button, input, select, textarea, label, summary, .sheet, .pick";
const rowAt = (event) => (event.target.closest?.(OWN) ? undefined : event.target.closest?.("tr[data-href]")?.dataset.href);
document.addEventListener("click", (event) => {
  const href = rowAt(event);
  if (!href || event.defaultPrevented || !getSelection().isCollapsed) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey) window.open(href, "_blank", "noopener");
  else location.href = href;
});
// The middle button opens a tab. Pressing it would start scrolling in some browsers.
document.addEventListener("mousedown", (event) => event.button === 1 && rowAt(event) && event.preventDefault());
document.addEventListener("auxclick", (event) => {
  const href = event.button === 1 && rowAt(event);
  if (href) window.open(href, "_blank", "noopener");
});

// One box ticks all rows. Without the script, the server reads it as all rows of the page.
document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.matches?.("input[data-all]")) all(`input[name=account][form="${box.getAttribute("form")}"]`).forEach((row) => (row.checked = box.checked));
  else if (box.matches?.("input[name=account]") && !box.checked) all("input[data-all]").forEach((whole) => (whole.checked = false));
  if (box.getAttribute?.("form") === "bulk") countPicked();
});
// The bar says how many rows are ticked.
function countPicked() {
  const picked = all("input[name=account][form=bulk]:checked").length;
  all("[data-picked]").forEach((place) => (place.textContent = `${picked} selected`));
}
countPicked();

// Menus close on Escape and on a click elsewhere.
document.addEventListener("click", (event) => {
  // A keyboard click on a link may lead within the page, so open menus stay open.
  if (event.detail > 0) all("details.menu[open]").forEach((menu) => menu.contains(event.target) || (menu.open = false));
});
document.addEventListener("toggle", (event) => {
  const menu = event.target;
  if (!menu.matches?.("details.menu") || !menu.open) return;
  all("details.menu[open]").forEach((other) => other !== menu && !other.contains(menu) && (other.open = false));
  one("[autofocus], .sheet input:not([type=hidden]), .sheet select, .sheet textarea, .sheet button", menu)?.focus();
}, true);

// The parts of a total show while its button has the focus.
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches?.("button.worth")) event.target.blur();
});

// After a refused form, focus the first invalid field.
one("[aria-invalid=true]")?.focus();

// Derive the project name from the company's until it is edited.
all("[data-slug-of]").forEach((field) => {
  const source = document.getElementById(field.dataset.slugOf);
  let touched = field.value !== "";
  field.addEventListener("input", () => (touched = true));
  source?.addEventListener("input", () => {
    if (!touched) field.value = source.value.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40);
  });
});

// Keyboard selection of rows and cards. The selected one is identified by its link, because live updates may move it.
let row;
const ROWS = "tr[data-href], .item";
const rows = () => all(ROWS).filter((item) => item.checkVisibility());
const addressOf = (item) => item.dataset.href ?? one("a", item).getAttribute("href");
// What has the focus was selected last, whichever way.
const chosen = () => document.activeElement?.closest(ROWS) ?? (row && rows().find((item) => addressOf(item) === row));
function mark() {
  all(ROWS).forEach((item) => item.classList.toggle("here", addressOf(item) === row));
}
function choose(item) {
  row = addressOf(item);
  mark();
}
function go(step) {
  const list = rows();
  if (list.length === 0) return;
  const next = list[Math.min(Math.max(list.indexOf(chosen()) + step, 0), list.length - 1)];
  choose(next);
  next.scrollIntoView({ block: "nearest", inline: "nearest" });
  // Enter opens the focused link, and Tab continues from there.
  one("a", next)?.focus({ preventScroll: true });
}
function act(key) {
  // The selected row takes precedence over the page.
  const target = (chosen() && one(`[data-key="${key}"]`, chosen())) ?? one(`[data-key="${key}"]`);
  if (!target) return false;
  const owner = target.closest(ROWS);
  if (owner) choose(owner);
  if (target.matches("summary")) target.parentElement.open = true;
  else if (target.matches("input, select, textarea")) target.focus();
  else target.click();
  return true;
}

// The palette
const palette = document.getElementById("palette");
let asked = 0;
let finding;
let hits = [];
let picked = 0;
function show() {
  const list = document.getElementById("palette-hits");
  list.replaceChildren(...hits.map((hit, index) => {
    const item = document.createElement("li");
    item.id = `palette-${index}`;
    item.role = "option";
    item.ariaSelected = String(index === picked);
    const hint = document.createElement("span");
    hint.textContent = hit.hint;
    item.append(hit.title, hint);
    item.addEventListener("click", () => (location.href = hit.href));
    return item;
  }));
  one("input", palette).setAttribute("aria-activedescendant", hits.length ? `palette-${picked}` : "");
  one("[aria-selected=true]", list)?.scrollIntoView({ block: "nearest" });
}
async function find() {
  const mine = ++asked;
  const answer = await fetch(`/palette?q=${encodeURIComponent(one("input", palette).value)}`).catch(() => undefined);
  if (mine !== asked) return finding;
  if (!answer?.ok) return;
  hits = await answer.json();
  picked = 0;
  show();
}
if (palette) {
  const open = () => {
    one("input", palette).value = "";
    hits = [];
    show();
    palette.showModal();
    finding = find();
  };
  all("[data-palette]").forEach((button) => button.addEventListener("click", open));
  one("input", palette).addEventListener("input", () => (finding = find()));
  palette.addEventListener("keydown", async (event) => {
    const { key } = event;
    if (!["ArrowDown", "ArrowUp", "Enter"].includes(key)) return;
    event.preventDefault();
    // Wait for the current search, so that a fast typist does not get an old result.
    await finding;
    if (key === "Enter") {
      if (palette.open && hits[picked]) location.href = hits[picked].href;
      return;
    }
    picked = (picked + (key === "ArrowDown" ? 1 : hits.length - 1)) % Math.max(hits.length, 1);
    show();
  });
  palette.addEventListener("click", (event) => event.target === palette && palette.close());
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette.open ? palette.close() : open();
    }
  });
}

// Keys
const places = { d: "/", p: "/pipeline", a: "/accounts", c: "/clients" };
let going = 0;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    all("details.menu[open]").forEach((menu) => {
      menu.open = false;
      one("summary", menu).focus();
    });
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || one("dialog[open]")) return;
  const key = event.key;
  if (Date.now() - going < 1200 && places[key]) location.href = places[key];
  else if (key === "g") going = Date.now();
  else if (key === "?") document.getElementById("keys")?.showModal();
  else if (key === "j") go(1);
  else if (key === "k") go(-1);
  else if (key === "Enter" && chosen() && event.target === document.body) location.href = row;
  else if (key === "/") one("input[type=search]", document.getElementById("content"))?.focus();
  else if (!/^[a-z]$/.test(key) || !act(key)) return;
  if (key !== "Enter") event.preventDefault();
});

// Live updates: when something changes, load the page again and replace the regions that differ.
const busy = (region) => region.contains(document.activeElement) && typing(document.activeElement) || one("details.menu[open], dialog[open], input[form]:checked", region);
const parse = (text) => new DOMParser().parseFromString(text, "text/html");
// Only the newest page that was asked for is shown.
let latest = 0;
async function look() {
  if (document.hidden || one("[data-dragged]")) return;
  const mine = ++latest;
  const fresh = await load(location.href);
  if (fresh && mine === latest) renew(fresh);
}
// A page as it is now, or nothing if the server can't be reached or the session has ended.
async function load(address) {
  try {
    const answer = await fetch(address, { headers: { "X-Live": "1" } });
    // A preview of invalid input says what is wrong with it.
    if ((answer.ok || answer.status === 422) && !answer.redirected) return parse(await answer.text());
  } catch {
    // The next look may succeed.
  }
}
// The form id is different every time, so it does not count as a difference.
const plain = (region) => region.innerHTML.replace(/(name="form" value=")[^"]*/g, "$1").replace(/ title="[^"]*"| class="(here)?"| here(?=")/g, "");
function renew(fresh) {
  one("main").dataset.version = one("main", fresh)?.dataset.version ?? "";
  const held = document.activeElement;
  const card = held?.closest(".item");
  const place = card && all(".item", card.parentElement).indexOf(card);
  const column = card?.parentElement.id;
  all("[data-live]").forEach((region) => {
    const other = fresh.getElementById(region.id);
    if (!other || busy(region)) return;
    dress(other);
    reopen(region, other);
    if (plain(other) !== plain(region)) return replace(region, other);
    // A form that was sent is answered the same way if it is sent again, so the next one needs another id.
    const forms = all("input[name=form]", other);
    all("input[name=form]", region).forEach((input, index) => (input.value = forms[index].value));
  });
  mark();
  // The focus follows a card to another column; if that doesn't show it, the focus goes to the card in its place.
  if (!card || document.activeElement !== document.body) return;
  const left = all(".item", document.getElementById(column));
  const next = document.getElementById(card.id) ?? left[place] ?? left.at(-1);
  if (next) (one(held.matches("a") ? "a" : "summary", next) ?? one("a", next)).focus({ preventScroll: true });
}
// Keep details open or closed as the person left them.
function reopen(region, other) {
  const name = (box) => box.id || one("summary", box)?.textContent;
  all("details", region).forEach((box) => {
    const same = all("details", other).find((found) => name(found) === name(box));
    if (same) same.open = box.open;
  });
}
// Keep the focus on the same element if it still exists.
function replace(region, other) {
  const here = document.activeElement;
  const owner = (element) => element.closest(ROWS);
  const trace = (element) => [owner(element) && addressOf(owner(element)), element.tagName, element.id, element.getAttribute("href") ?? element.form?.getAttribute("action") ?? element.textContent, element.value].join();
  const alike = () => all("a, button, summary, [tabindex]", region).filter((element) => trace(element) === trace(here));
  const place = region.contains(here) ? alike().indexOf(here) : -1;
  region.replaceChildren(...other.childNodes);
  if (place >= 0) (alike()[place] ?? alike()[0])?.focus({ preventScroll: true });
}
if (one("[data-live]")) {
  const lookEvery = 15_000;
  let stream;
  let resting;
  const listen = () => {
    stream?.close();
    clearInterval(resting);
    resting = undefined;
    if (document.hidden) return;
    // If something has changed since this version was read, the stream says so immediately.
    stream = new EventSource(`/live?version=${one("main").dataset.version}`);
    stream.addEventListener("changed", look);
    // A session has few streams, and a newer page took this one's. Open it again only when the person returns to this
    // page, so that pages don't take it from each other in turn.
    stream.addEventListener("crowded", () => rest(look));
    // The browser reconnects by itself after a broken connection, but not after a refusal.
    stream.addEventListener("error", () => stream.readyState === EventSource.CLOSED && rest(listen));
  };
  // Without a stream, poll.
  const rest = (next) => {
    stream.close();
    clearInterval(resting);
    resting = setInterval(next, lookEvery);
  };
  listen();
  document.addEventListener("visibilitychange", async () => {
    await look();
    listen();
  });
  addEventListener("focus", () => resting && listen());
}

dress();
