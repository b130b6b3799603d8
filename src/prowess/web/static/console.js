// What pages gain with JavaScript; reading works without it: copy buttons, a picker, and parts that follow the disk.
"use strict";

// -- copying --------------------------------------------------------------------------------------------------------

function showCopyButtons() {
  if (!navigator.clipboard) return;  // browsers have none on an address of another machine without TLS
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

// -- picking from a list ----------------------------------------------------------------------------------------------
// A field narrows a list while somebody types, and two buttons tick the boxes that are left.

function showPickers() {
  for (const picker of document.querySelectorAll(".picker[hidden]")) picker.hidden = false;
}

document.addEventListener("input", (event) => {
  const list = document.getElementById(event.target.dataset.narrow);
  if (!list) return;
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const item of list.children) {
    const text = item.textContent.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-tick], button[data-untick]");
  if (!button) return;
  const list = document.getElementById(button.dataset.tick || button.dataset.untick);
  for (const box of list.querySelectorAll("li:not([hidden]) input[type=checkbox]")) box.checked = "tick" in button.dataset;
});

document.addEventListener("keydown", (event) => {
  // Enter in the field that narrows the list must not send the form around it.
  if (event.key === "Enter" && event.target.dataset.narrow) event.preventDefault();
});

// -- following ------------------------------------------------------------------------------------------------------
// An element with data-live is loaded again when its event comes. Only a tab that somebody sees listens: a browser
// opens few connections to one host, and those of hidden tabs would leave none for the others.

let events = null;
let unfolded = [];

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
// Most changes are about other skills. A part that would look the same is left alone, so that nobody loses their place
// in it, and otherwise what was unfolded stays unfolded.
function readPart(part) {
  const copy = part.cloneNode(true);
  for (const one of copy.querySelectorAll("details[open]")) one.removeAttribute("open");
  for (const one of copy.querySelectorAll("button[data-copy]")) one.hidden = true;
  return copy.innerHTML;
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target;
  if (event.detail.requestConfig.elt !== part || !part.matches("[data-live]") || !event.detail.shouldSwap) return;
  const page = new DOMParser().parseFromString(event.detail.serverResponse, "text/html");
  const ids = [part.id, ...(part.dataset.hxSelectOob || "").split(",").map((one) => one.slice(1))].filter(Boolean);
  const isSame = (id) => {
    const [now, next] = [document.getElementById(id), page.getElementById(id)];
    return now && next && readPart(now) === readPart(next);
  };
  if (ids.every(isSame)) event.detail.shouldSwap = false;
  else unfolded = [...part.querySelectorAll("details[open][id]")].map((one) => one.id);
});

document.addEventListener("htmx:afterSwap", () => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  unfolded = [];
});

// What is shown may be gone from the disk. It stays readable, and appears again when it comes back.
document.addEventListener("htmx:responseError", (event) => {
  const part = event.detail.elt;
  if (event.detail.xhr.status !== 404 || !part.matches("[data-live]") || part.querySelector("[data-gone]")) return;
  const note = document.createElement("p");
  note.className = "problem";
  note.setAttribute("role", "alert");
  note.dataset.gone = "";
  note.textContent = "This is no longer there. The page shows it as it last was.";
  part.prepend(note);
});
document.addEventListener("htmx:afterSettle", () => { showCopyButtons(); showPickers(); follow(); });
window.addEventListener("pagehide", () => { if (events) { events.close(); events = null; } });
window.addEventListener("pageshow", follow);
showCopyButtons();
showPickers();
follow();
