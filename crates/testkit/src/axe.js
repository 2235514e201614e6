// Hands the last argument what axe-core finds on the page, one line each. With `opens`, it opens everything that opens on
// the page, and looks there too. With `onlyColors`, it checks only what may change with the colors.

const [{ opens, onlyColors }, done] = arguments;
const found = [];
const CONTRAST = "color-contrast";
const OPTIONS = {
  resultTypes: ["violations"],
  // Nothing on our pages plays by itself.
  preload: false,
  ...(onlyColors && { runOnly: [CONTRAST, "link-in-text-block"] }),
};
const STYLED = new Set(["class", "type", "role", "aria-selected"]);
const all = (selector) => [...document.querySelectorAll(selector)];

async function lookEverywhere() {
  const [menus, folds] = opens ? closed() : [[], []];
  for (const fold of folds) fold.open = true;
  await lookAtPage();
  for (const fold of folds) fold.open = false;
  if (!opens) return;
  for (const menu of menus) {
    menu.open = true;
    await lookAtOpen(menu, menu.firstElementChild.textContent.trim());
    menu.open = false;
  }
  for (const dialog of all("dialog:not([open])")) {
    dialog.showModal();
    await lookAtOpen(dialog, `#${dialog.id}`);
    dialog.close();
  }
  for (const button of all("[popovertarget]").filter((button) => button.checkVisibility())) {
    button.popoverTargetElement.showPopover();
    await lookAtOpen(button.popoverTargetElement, button.textContent.trim());
    button.popoverTargetElement.hidePopover();
  }
}

// Contrast is measured element by element and takes most of the time. So of elements that are alike, such as the rows of a
// table, only the first and the last are measured.
async function lookAtPage() {
  const page = document.documentElement;
  const alike = repeated(page);
  if (onlyColors) return without(alike, () => look(page, ""));
  const unmeasured = alike.flatMap((element) => [element, ...element.querySelectorAll("*")]);
  axe.configure({ rules: [{ id: CONTRAST, selector: ":not([data-unmeasured])" }] });
  await marked(unmeasured, "data-unmeasured", () => look(page, ""));
}

// What opens is the same on many pages. This window remembers what it has looked at.
async function lookAtOpen(opened, where) {
  const store = `axe ${innerWidth} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
  const known = JSON.parse(sessionStorage.getItem(store) ?? "[]");
  if (known.includes(opened.outerHTML)) return;
  sessionStorage.setItem(store, JSON.stringify([...known, opened.outerHTML]));
  await without(beside(opened), () => look(opened, `${where} open: `));
}

async function look(within, where) {
  const { violations } = await axe.run(within, OPTIONS);
  for (const { id, help, nodes } of violations) for (const node of nodes) found.push(`${where}${id}: ${help} at ${node.html}`);
}

// Looks while some elements are hidden. At each look axe-core finds out where everything that shows is.
async function without(elements, look) {
  const sheet = new CSSStyleSheet();
  sheet.insertRule("[data-hidden] { display: none !important }");
  document.adoptedStyleSheets.push(sheet);
  await marked(elements, "data-hidden", look);
  document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
}

async function marked(elements, attribute, look) {
  for (const element of elements) element.setAttribute(attribute, "");
  await look();
  for (const element of elements) element.removeAttribute(attribute);
}

// Everything that neither contains an element nor is in it.
function beside(element) {
  const { parentElement } = element;
  if (!parentElement) return [];
  return [...[...parentElement.children].filter((child) => child !== element), ...beside(parentElement)];
}

// The elements between the first and the last of each group that looks alike and is in places that look alike.
function repeated(within) {
  const left = [];
  let level = [{ element: within, place: "" }];
  while (level.length > 0) {
    const below = level.flatMap(({ element, place }) => [...element.children].map((child) => ({ element: child, place: place + own(child) })));
    const groups = [...Map.groupBy(below, ({ element, place }) => place + inside(element)).values()];
    left.push(...groups.flatMap((group) => group.slice(1, -1).map(({ element }) => element)));
    level = groups.flatMap((group) => (group.length > 2 ? [group[0], group.at(-1)] : group));
  }
  return left;
}

// What the style of an element may depend on. The values of other attributes are addresses, names and texts.
function own(element) {
  const attributes = [...element.attributes].map(({ name, value }) => (STYLED.has(name) ? `${name}=${value}` : name));
  return `<${element.tagName} ${attributes.sort().join(" ")}>`;
}

function inside(element) {
  return [...element.children].map((child) => `${own(child)}${inside(child)}/`).join("");
}

// Menus, and text that is folded. Of menus that are alike, such as those in the rows of a table, one is enough; of folded
// text, such as the operations in the API documentation, one of each class.
function closed() {
  const outer = all("details:not([open])").filter((one) => !one.parentElement.closest("details") && one.checkVisibility());
  const isMenu = (one) => one.matches(".menu");
  const title = (one) => (isMenu(one) ? one.firstElementChild.textContent : "");
  const kind = (one) => `${one.closest("table, ol, ul")?.className} ${one.className} ${title(one)}`;
  const first = [...Map.groupBy(outer, kind).values()].map(([first]) => first);
  return [first.filter(isMenu), first.filter((one) => !isMenu(one))];
}

lookEverywhere().then(() => done(found), (error) => done([`axe-core failed: ${error}`]));
