// The board: moves a card without loading the page again, so that scroll position and focus stay.

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || !form.matches("form[data-move]")) return;
  event.preventDefault();
  move(form);
});
async function move(form) {
  const [card, menu] = [form.closest(".item"), form.closest("details.menu")];
  const keyed = document.activeElement?.matches(":focus-visible");
  const body = new URLSearchParams(new FormData(form));
  if (menu?.contains(document.activeElement)) one("summary", menu).focus({ preventScroll: true });
  if (menu) menu.open = false;
  card?.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.action, { method: "POST", body });
    const page = parse(await answer.text());
    // The session ended, and this is the login.
    if (answer.ok && !one(".board", page)) return location.assign(answer.url);
    if (one(".board", page)) settle(page, card, keyed);
    else tell(failure(one("main h1", page)?.textContent, one("main h1 + p", page)?.textContent));
  } catch {
    tell(failure("We couldn’t reach the server.", "Check your connection, then try again."));
  } finally {
    card?.removeAttribute("aria-busy");
    delete form.dataset.sent;
  }
}
// Shows the board as it is now. What was asked for before is older.
function settle(page, card, keyed) {
  latest += 1;
  renew(page);
  tell(one("#messages", page));
  // Somebody who uses the mouse sees what they did, and the page stays where it is.
  const now = card && document.getElementById(card.id);
  if (keyed && now?.contains(document.activeElement)) now.scrollIntoView({ block: "nearest", inline: "nearest" });
}
function failure(...sentences) {
  const text = document.createElement("span");
  text.className = "grow";
  text.textContent = sentences.filter(Boolean).join(" ");
  const flash = document.createElement("div");
  flash.className = "flash bad";
  flash.append(text);
  const messages = document.createElement("div");
  messages.append(flash);
  return messages;
}

// In the menu of a card, Enter moves it to the chosen stage.
document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (key === "Enter" && target.matches?.("form[data-move] select")) {
    event.preventDefault();
    target.form.requestSubmit();
  }
});

// Drag cards to another column. The form in each card does the same.
let dragged;
document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("[draggable=true]");
  if (!dragged) return;
  dragged.dataset.dragged = "yes";
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.id);
});
document.addEventListener("dragover", (event) => {
  const column = dragged && event.target.closest?.("[data-drop]");
  all(".over").forEach((other) => other !== column && other.classList.remove("over"));
  if (!column) return;
  event.preventDefault();
  column.classList.add("over");
});
document.addEventListener("drop", (event) => {
  const column = dragged && event.target.closest?.("[data-drop]");
  if (!column) return;
  event.preventDefault();
  const form = one("form[data-move]", dragged);
  if (form && dragged.closest("[data-drop]") !== column) {
    form.elements.status.value = column.dataset.drop;
    form.requestSubmit();
  }
});
document.addEventListener("dragend", () => {
  delete dragged?.dataset.dragged;
  dragged = undefined;
  all(".over").forEach((column) => column.classList.remove("over"));
});
