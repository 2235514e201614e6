// Messages about what was just done. They are announced, and disappear by themselves; errors stay.

const SECONDS = 8;
// Long enough to read it and to undo what was done.
const SECONDS_WITH_BUTTON = 20;
// Screen readers announce what changes in a region that is there already.
const said = document.createElement("div");
said.id = "said";
said.className = "sr";
document.body.append(said);
let fading;
function announce() {
  const flash = one("#messages .flash");
  clearInterval(fading);
  said.textContent = "";
  if (!flash) return;
  const isBad = flash.matches(".bad");
  said.role = isBad ? "alert" : "status";
  flash.removeAttribute("role");
  setTimeout(() => flash.isConnected && (said.textContent = one(".grow", flash).textContent), 100);
  let left = one("form, a", flash) ? SECONDS_WITH_BUTTON : SECONDS;
  flash.append(dismissal(flash));
  if (isBad) return;
  fading = setInterval(() => {
    if (document.hidden || flash.matches(":hover, :focus-within")) return;
    left -= 1;
    if (left <= 0) dismiss(flash);
  }, 1000);
}
function dismissal(flash) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn quiet small";
  button.ariaLabel = "Dismiss";
  button.textContent = "✕";
  button.addEventListener("click", () => dismiss(flash));
  return button;
}
function dismiss(flash) {
  clearInterval(fading);
  said.textContent = "";
  if (flash.contains(document.activeElement)) document.getElementById("content").focus({ preventScroll: true });
  flash.remove();
}
// Shows the messages of another page on this one.
function tell(messages) {
  replace(document.getElementById("messages"), messages);
  announce();
}
announce();
