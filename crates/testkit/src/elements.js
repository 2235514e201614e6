// Finds the elements that a script is about.
const [[kind, what], given] = arguments;

function controlOf(element) {
  return element.tagName === "LABEL" ? element.control : element;
}

function find() {
  if (!kind.endsWith("saying")) return [...document.querySelectorAll(what)];
  const said = (element) => element.textContent.trim().replace(/[ \t\r\n]+/g, " ");
  const says = (element) => said(element) === what || element.getAttribute("aria-label") === what;
  return [...document.querySelectorAll("a, button, summary, label")].filter(says);
}

function isShown(element) {
  const shows = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  return shows && [...element.getClientRects()].some((box) => box.width > 0 && box.height > 0);
}

const shown = find().find(isShown);
const target = shown && kind.startsWith("control") ? controlOf(shown) : shown;
