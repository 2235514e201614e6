// Hands the last argument what axe-core finds on the page, one line each. If the first argument is true, it opens
// everything that opens on the page, and looks there too.

const [opens, done] = arguments;
const found = [];
const CONTRAST = "color-contrast";
const STYLED = new Set(["class", "type", "role", "aria-selected"]);
const all = (selector) => [...document.querySelectorAll(selector)];

// Rules about structure take little time. Contrast is measured element by element and takes most of it, so of elements
// that are alike, such as the rows of a table, only the first and the last are measured.
async function lookAtPage() {
  const page = document.documentElement;
  await look(page, "", { rules: { [CONTRAST]: { enabled: false } } });
  await look({ include: [page], exclude: repeated(page) }, "", { runOnly: [CONTRAST] });
}

// What opens is the same on many pages. This window remembers what it has looked at.
async function lookAtOpen(opened, where) {
  const known = JSON.parse(sessionStorage.getItem("axe") ?? "[]");
  if (known.includes(opened.outerHTML)) return;
  sessionStorage.setItem("axe", JSON.stringify([...known, opened.outerHTML]));
  await look(opened, `${where} open: `, {});
}

async function look(within, where, options) {
  const { violations } = await axe.run(within, { resultTypes: ["violations"], ...options });
  for (const { id, help, nodes } of violations) for (const node of nodes) found.push(`${where}${id}: ${help} at ${node.html}`);
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

// Of menus that are alike, such as those in the rows of a table, one is enough; of folded text, such as the operations in
// the API documentation, one of each class.
function menus() {
  const closed = all("details:not([open])").filter((menu) => !menu.parentElement.closest("details") && menu.checkVisibility());
  const title = (menu) => (menu.matches(".menu") ? menu.firstElementChild.textContent : "");
  const kind = (menu) => `${menu.closest("table, ol, ul")?.className} ${menu.className} ${title(menu)}`;
  return [...Map.groupBy(closed, kind).values()].map(([first]) => first);
}

async function lookEverywhere() {
  await lookAtPage();
  if (!opens) return;
  for (const menu of menus()) {
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

lookEverywhere().then(() => done(found), (error) => done([`axe-core failed: ${error}`]));
