// Admits this tab, and shows the view that the address names.

import { path, visited } from "./address.js";
import { UNREACHABLE, get } from "./api.js";
import { switcher } from "./deployments.js";
import { fill, h, heading, link, name, problem } from "./dom.js";
import { keepTime } from "./format.js";
import { listen } from "./keys.js";
import { enter } from "./session.js";
import { watch } from "./switch.js";

// Addresses, their modules (loaded on first use), their entry in the navigation, and their content for error messages.
const VIEWS = [
  [/^#\/deployments$/, () => import("./deployments.js"), "#/deployments", "the deployments"],
  [/^#\/overview$/, () => import("./overview.js"), "#/overview", "the overview"],
  [/^#\/units$/, () => import("./units.js"), "#/units", "the units"],
  [/^#\/units\/([^/]+)$/, () => import("./unit.js"), "#/units", "the unit"],
  [/^#\/units\/([^/]+)\/policy$/, () => import("./policy.js"), "#/units", "the policy"],
  [/^#\/events$/, () => import("./events.js"), "#/events", "the events"],
  [/^#\/events\/([^/]+)$/, () => import("./event.js"), "#/events", "the event"],
  [/^#\/changes$/, () => import("./changes.js"), "#/changes", "the changes"],
  [/^#\/risks$/, () => import("./risks.js"), "#/risks", "the risks"],
  [/^#\/calendar$/, () => import("./calendar.js"), "#/calendar", "the calendar"],
  [/^#\/benchmarks$/, () => import("./benchmarks.js"), "#/benchmarks", "the benchmarks"],
  [/^#\/benchmarks\/([^/]+)$/, () => import("./benchmark.js"), "#/benchmarks", "the benchmark"],
  [/^#\/start$/, () => import("./start.js"), "#/benchmarks", "the form"],
  [/^#\/comparison$/, () => import("./comparison.js"), "#/benchmarks", "the comparison"],
  [/^#\/runs\/([^/]+)$/, () => import("./run.js"), "#/benchmarks", "the run"],
  [/^#\/runs\/([^/]+)\/report$/, () => import("./report.js"), "#/benchmarks", "the report"],
];

const main = document.getElementById("main");
let leave = new AbortController();

async function show(first = false) {
  const [pattern, load, parent, content] = VIEWS.find(([pattern]) => pattern.test(path())) ?? [];
  if (!pattern) {
    location.replace("#/overview");
    return;
  }
  visited();
  const open = document.querySelector("dialog[open]");
  if (open && !open.querySelector("[aria-busy]")) open.close(); // it concerns the previous view
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  for (const view of document.querySelectorAll("#views a")) {
    if (view.getAttribute("href") === parent) view.setAttribute("aria-current", "page");
    else view.removeAttribute("aria-current");
  }
  if (!first) fill(document.getElementById("flash"));
  try {
    const parameters = pattern.exec(path()).slice(1).map(decodeURIComponent);
    const view = await load().catch((error) => {
      throw error instanceof TypeError ? new Error(UNREACHABLE) : error; // the module could not be fetched
    });
    if (signal.aborted) return;
    await view.show(fill(main), signal, ...parameters);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    fill(main, heading(`Cannot load ${content}`), problem(error, () => show()));
  }
  if (signal.aborted) return;
  document.title = `${main.querySelector("h1")?.textContent ?? "Troop"} · Troop`;
  const busy = main.querySelector(":focus") || document.querySelector("dialog[open]"); // the user has moved on meanwhile
  if (!first && !busy) main.querySelector("h1")?.focus({ preventScroll: true });
}

function locked(message) {
  if (document.body.classList.contains("locked")) return;
  leave.abort();
  document.body.classList.add("locked");
  fill(
    main,
    heading("Open a new link"),
    h("p", {}, message ?? "This tab has no access token."),
    h("p", {}, "Press Enter in the terminal where ", h("code", {}, "troop ui"), " runs, or start it again. It prints a new link, which works once, in one browser."),
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
  addEventListener("troop-locked", () => locked("`troop ui` was restarted, so this tab needs a new access token."));
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address's fragment names a view
    main.focus();
  });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  await get("ui/zone", { name: zone }).then(({ changes }) => keepTime(changes), () => {}); // otherwise times are in UTC, and say so
  listen(); // after the wait: a view that is shown closes the dialogs
  if (!/\/(report|comparison)$/.test(path())) watch();
  get("ui/about").then(about, () => {});
  await show(true);
}

function about({ deployment, account, region, local, label, deployments }) {
  const where = local ? "local AWS" : `${account} · ${region}`;
  fill(document.getElementById("where"), deployments ? switcher({ label, deployments }) : h("strong", {}, name(deployment)), " ", h("span", { class: "muted" }, where));
  if (!deployments) return;
  const all = link("#/deployments", "Deployments");
  if (path() === "#/deployments") all.setAttribute("aria-current", "page");
  document.getElementById("views").prepend(all);
}

start();
