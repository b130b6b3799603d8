// What pages gain with JavaScript; reading works without it: copy buttons, and parts that follow the disk and plans.
"use strict";

// -- copying --------------------------------------------------------------------------------------------------------

function showCopyButtons() {
  for (const button of document.querySelectorAll("button[data-copy][hidden]")) button.hidden = false;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  navigator.clipboard.writeText(source.textContent).then(() => {
    const before = [...button.childNodes];
    button.replaceChildren("Copied");
    setTimeout(() => { button.replaceChildren(...before); }, 1500);
  });
});

// -- following ------------------------------------------------------------------------------------------------------
// An element with data-live is loaded again when its event comes. Only a tab that somebody sees listens: a browser
// opens few connections to one host, and those of hidden tabs would leave none for the others.

let events = null;

function tell(name) { document.body.dispatchEvent(new CustomEvent(name)); }

function follow() {
  const isWanted = !document.hidden && document.querySelector("[data-live]") !== null;
  if (isWanted && !events) {
    events = new EventSource("/changes/events");
    events.addEventListener("library", () => tell("library-changed"));
    events.addEventListener("plans", () => tell("plans-changed"));
  } else if (!isWanted && events) {
    events.close();
    events = null;
  }
}

document.addEventListener("visibilitychange", () => {
  follow();
  if (events) { tell("library-changed"); tell("plans-changed"); }  // what happened while nobody looked
});
document.addEventListener("htmx:afterSettle", () => { showCopyButtons(); follow(); });
window.addEventListener("pagehide", () => { if (events) { events.close(); events = null; } });
window.addEventListener("pageshow", follow);
showCopyButtons();
follow();
