// Hands the last argument what axe-core finds on the page, one line each. If the first argument is true, it opens
// everything that opens on the page, and looks there too.

const [opens, done] = arguments;
const found = [];
const all = (selector) => [...document.querySelectorAll(selector)];

async function look(within, where) {
  const { violations } = await axe.run(within, { resultTypes: ["violations"] });
  for (const { id, help, nodes } of violations) for (const node of nodes) found.push(`${where}${id}: ${help} at ${node.html}`);
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
  await look(document, "");
  if (!opens) return;
  for (const menu of menus()) {
    menu.open = true;
    await look(menu, `${menu.firstElementChild.textContent.trim()} open: `);
    menu.open = false;
  }
  for (const dialog of all("dialog:not([open])")) {
    dialog.showModal();
    await look(dialog, `#${dialog.id} open: `);
    dialog.close();
  }
  for (const button of all("[popovertarget]").filter((button) => button.checkVisibility())) {
    button.popoverTargetElement.showPopover();
    await look(button.popoverTargetElement, `${button.textContent.trim()} open: `);
    button.popoverTargetElement.hidePopover();
  }
}

lookEverywhere().then(() => done(found), (error) => done([`axe-core failed: ${error}`]));
