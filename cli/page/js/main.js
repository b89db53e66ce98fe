// Lets this tab in, and shows the view that the address names.

import { get } from "./api.js";
import { fill, h, heading, name, problem } from "./dom.js";
import { enter } from "./session.js";
import { watch } from "./switch.js";

// What each address shows, loaded when it is first looked at.
const VIEWS = [
  [/^#\/units$/, () => import("./units.js"), "#/units"],
  [/^#\/units\/([^/]+)$/, () => import("./unit.js"), "#/units"],
  [/^#\/events$/, () => import("./events.js"), "#/events"],
  [/^#\/events\/([^/]+)$/, () => import("./event.js"), "#/events"],
  [/^#\/calendar$/, () => import("./calendar.js"), "#/calendar"],
  [/^#\/runs$/, () => import("./runs.js"), "#/runs"],
  [/^#\/runs\/([^/]+)$/, () => import("./run.js"), "#/runs"],
  [/^#\/runs\/([^/]+)\/report$/, () => import("./report.js"), "#/runs"],
];

const main = document.getElementById("main");
let leave = new AbortController();

async function show(first = false) {
  const [pattern, load, of] = VIEWS.find(([pattern]) => pattern.test(location.hash)) ?? [];
  if (!pattern) {
    location.replace("#/units");
    return;
  }
  const open = document.querySelector("dialog[open]");
  if (open && !open.querySelector("[aria-busy]")) open.close(); // what it asks is about a view that is left
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  for (const view of document.querySelectorAll("#views a")) {
    if (view.getAttribute("href") === of) view.setAttribute("aria-current", "page");
    else view.removeAttribute("aria-current");
  }
  if (!first) fill(document.getElementById("flash"));
  try {
    const parameters = pattern.exec(location.hash).slice(1).map(decodeURIComponent);
    const view = await load();
    if (signal.aborted) return;
    await view.show(fill(main), signal, ...parameters);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    fill(main, heading("This did not work"), problem(error, () => show()));
  }
  if (signal.aborted) return;
  document.title = `${main.querySelector("h1")?.textContent ?? "Troop"} · Troop`;
  const busy = main.querySelector(":focus") || document.querySelector("dialog[open]"); // somebody did not wait for the rest
  if (!first && !busy) main.querySelector("h1")?.focus({ preventScroll: true });
}

function locked(message) {
  if (document.body.classList.contains("locked")) return;
  leave.abort();
  document.body.classList.add("locked");
  fill(
    main,
    heading("Open the link once more"),
    h("p", {}, message ?? "This tab does not know the token that every request needs."),
    h("p", {}, "Press Enter in the terminal where ", h("code", {}, "troop ui"), " runs, or start it again: it makes a new link, good for one browser, once."),
  );
  main.querySelector("h1").focus();
}

async function start() {
  let token;
  try {
    token = await enter();
  } catch (error) {
    locked(error.message);
    return;
  }
  if (!token) {
    locked();
    return;
  }
  addEventListener("hashchange", () => show());
  addEventListener("troop-locked", () => locked("`troop ui` was started anew, and has another token now."));
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the part of the address after # names a view
    main.focus();
  });
  if (!/\/report$/.test(location.hash)) watch();
  get("ui/about").then(about, () => {});
  await show(true);
}

function about({ deployment, account, region, local }) {
  const where = local ? "on this machine" : `${account} · ${region}`;
  fill(document.getElementById("where"), h("strong", {}, name(deployment)), " ", h("span", { class: "muted" }, where));
}

start();
