// Returns what doesn't fit on the page as it is, and on everything that opens on it, one line each. A page fits if nothing
// on it scrolls sideways, except code and charts, and if every action can be reached.

const faults = new Set();
const root = document.documentElement;
const [width, height] = [root.clientWidth, root.clientHeight];
// Lengths are rounded to whole pixels where they are compared.
const slack = 1;

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const text = (element) => (element.getAttribute("aria-label") ?? element.textContent).replace(/\s+/g, " ").trim().slice(0, 40);
const name = (element) => `${element.tagName.toLowerCase()}${element.id && `#${element.id}`}.${element.className} "${text(element)}"`;
const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
const isOnlyHeard = (element) => element.closest(".sr, .skip") !== null || getComputedStyle(element).clipPath !== "none";
const mayScroll = (element) => element.closest("pre, svg, [role=img]") !== null;

function lookForScrolling(within, where) {
  if (root.scrollWidth > width + slack) faults.add(`${where}: the page scrolls sideways by ${root.scrollWidth - width}`);
  for (const element of [within, ...all("*", within)]) {
    const over = element.scrollWidth - element.clientWidth;
    if (over <= slack || element.clientWidth === 0 || !isShown(element) || isOnlyHeard(element) || mayScroll(element)) continue;
    const style = getComputedStyle(element);
    if (/auto|scroll/.test(style.overflowX)) faults.add(`${where}: ${name(element)} scrolls sideways by ${over}`);
    else if (/hidden|clip/.test(style.overflowX) && style.textOverflow !== "ellipsis" && !element.matches("input, select"))
      faults.add(`${where}: ${name(element)} cuts off ${over}`);
  }
}

function lookForActions(within, where) {
  for (const action of all("a[href], button, input:not([type=hidden]), select, textarea, summary", within)) {
    if (!isShown(action) || isOnlyHeard(action) || mayScroll(action)) continue;
    const { left, right } = action.getBoundingClientRect();
    if (left < -slack || right > width + slack) faults.add(`${where}: ${name(action)} is at ${Math.round(left)} to ${Math.round(right)}`);
  }
}

// What opens must be on the screen if it stays there, and on the page if it moves along with it.
function lookAtOpen(opened, where) {
  const { left, right, top, bottom } = opened.getBoundingClientRect();
  if (left < -slack || right > width + slack) faults.add(`${where}: it is at ${Math.round(left)} to ${Math.round(right)}`);
  const stays = getComputedStyle(opened).position === "fixed";
  const [above, below] = stays ? [top, height - bottom] : [top + scrollY, root.scrollHeight - bottom - scrollY];
  if (above < -slack || below < -slack) faults.add(`${where}: it is from ${Math.round(top)} to ${Math.round(bottom)} of ${height}`);
  lookForScrolling(opened, where);
  lookForActions(opened, where);
}

// The first and the last of those that are alike, such as the menus in the rows of a table.
function samples(elements) {
  const groups = Map.groupBy(elements, (element) => `${element.closest("table, .board, ol, ul")?.className} ${element.className} ${element.firstElementChild.textContent}`);
  return new Set([...groups.values()].flatMap((group) => [group[0], group.at(-1)]));
}

// A menu opens over the page.
function openMenus() {
  for (const menu of samples(all("details.menu:not([open])").filter(isShown))) {
    menu.open = true;
    lookAtOpen(menu.querySelector(":scope > .sheet") ?? menu, `page, ${text(menu.firstElementChild)} open`);
    menu.open = false;
  }
}

// Folded text opens within the page, so all of it can be open at once.
function unfold() {
  const folded = all("details:not(.menu):not([open])");
  for (const fold of folded) fold.open = true;
  lookForScrolling(document.body, "unfolded page");
  lookForActions(document.body, "unfolded page");
  openMenus();
  for (const fold of folded) fold.open = false;
}

lookForScrolling(document.body, "page");
lookForActions(document.body, "page");
unfold();
for (const dialog of all("dialog:not([open])")) {
  dialog.showModal();
  lookAtOpen(dialog, `#${dialog.id} open`);
  dialog.close();
}
for (const button of all("[popovertarget]").filter(isShown)) {
  button.popoverTargetElement.showPopover();
  lookAtOpen(button.popoverTargetElement, `${text(button)} open`);
  button.popoverTargetElement.hidePopover();
}
return [...faults];
