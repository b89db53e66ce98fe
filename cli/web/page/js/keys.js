// Keyboard shortcuts. None applies while the user types, or with Ctrl, Alt or Meta, which belong to the browser.

import { once } from "./dialogs.js";
import { h } from "./dom.js";

const GO_WAIT = 1_500; // milliseconds between "g" and the letter of a view
const VIEWS = { d: "#/deployments", o: "#/overview", u: "#/units", e: "#/events", h: "#/changes", r: "#/risks", c: "#/calendar", b: "#/benchmarks" };

const HELP = [
  ["/", "Go to the search field"],
  ["j, k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["g, then d o u e h r c b", "Deployments, Overview, Units, Events, Changes (history), Risks, Calendar, Benchmarks"],
  ["r", "Refresh the view"],
  ["Escape", "Leave the search field, close a dialog"],
  ["?", "This list"],
];

let going = 0; // when "g" was pressed

export function listen() {
  document.addEventListener("keydown", pressed);
}

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]") || document.body.classList.contains("locked")) return;
  if (event.target.closest?.("input:not([type=checkbox]), select, textarea, [contenteditable]")) {
    if (event.key === "Escape" && event.target.type === "search" && !event.target.value) event.target.blur();
    return;
  }
  const view = Date.now() - going < GO_WAIT && VIEWS[event.key];
  going = 0;
  const act = view ? () => (location.hash = view) : ACTIONS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

const ACTIONS = {
  "/": () => document.querySelector("main input[type=search]")?.focus(),
  "?": () => once(help),
  j: () => move(1),
  k: () => move(-1),
  g: () => (going = Date.now()),
  r: () => document.querySelector("main [data-refresh]")?.click(),
};

/** Focuses the link, or else the button, of the next or previous row; Enter then follows it. */
function move(step) {
  const links = [...document.querySelectorAll("main tbody tr")].map((row) => row.querySelector("a") ?? row.querySelector("button")).filter(Boolean);
  const row = document.activeElement?.closest("main tbody tr");
  const at = links.findIndex((one) => row?.contains(one));
  const to = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
  links[to]?.focus();
  links[to]?.scrollIntoView({ block: "nearest" });
}

function help() {
  return new Promise((resolve) => {
    const close = h("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Close");
    const dialog = h(
      "dialog",
      { "aria-labelledby": "dialog-title", onclose: () => { dialog.remove(); resolve(); } },
      h("h2", { id: "dialog-title" }, "Keyboard shortcuts"),
      h("dl", { class: "keys" }, HELP.map(([keys, what]) => h("div", {}, h("dt", {}, h("kbd", {}, keys)), h("dd", {}, what)))),
      h("div", { class: "buttons" }, close),
    );
    document.body.append(dialog);
    dialog.showModal();
    close.focus();
  });
}
