// All deployments of the file, a row for each, and the switcher in the header. Each has a page of its own: another address, another token.

import { change, get } from "./api.js";
import { badge, fill, flash, h, headline, link, loading, name, refreshButton, table } from "./dom.js";
import { loaded, loadedLine } from "./freshness.js";
import { count, kind, sentence, who, words } from "./format.js";

const EVERY = 60_000;
const OLD = 180_000; // milliseconds, after which the view is marked as old
const AT_ONCE = 3; // a browser has few connections, and one must be left to halt
const GRADE = { ok: ["healthy", "good"], warn: ["warns", "warn"], fail: ["fails", "bad"] };

/** Opens the page of a deployment in this tab, by a link that works once. */
async function open(label) {
  try {
    location.assign((await change("POST", "ui/deployments", { label })).url);
  } catch (error) {
    flash(`${label} cannot be opened: ${error.message}`);
  }
}

/** The switcher: the deployments of the file, and the one whose page this is. */
export function switcher({ label, deployments }) {
  const options = deployments.map((one) => h("option", { value: one, selected: one === label }, one));
  const choose = h("select", { "aria-label": "Deployment", onchange: () => { const to = choose.value; choose.value = label; open(to); } }, options);
  return choose;
}

const switchOf = ({ switch: now }) => {
  const [word, grade] = now.halted ? ["halted", "quiet"] : now.leashed ? ["leashed", "info"] : ["unleashed", "live"];
  const why = now.itself ? ["the deployment halted itself: ", name(now.itself.why)] : now.halted && [now.changed_by && ["by ", name(who(now.changed_by))], now.reason && [": ", name(now.reason)]];
  return [badge(word, grade), " ", why];
};

const part = ({ value, error }, content) => (error ? h("span", { class: "wrong small" }, sentence(error)) : value && content(value));
const healthOf = ({ health }) => part(health, ({ status, checks }) => [badge(...GRADE[status]), status !== "ok" && ` ${checks.filter((check) => check.status !== "ok").map((check) => words(check.name).replaceAll("-", " ")).join(", ")}`]);
const todayOf = ({ today }) => part(today, (value) => {
  const events = Object.values(value.by_status).reduce((sum, one) => sum + one, 0);
  return [`${count(events)}${value.limited ? "+" : ""} ${events === 1 ? "event" : "events"} `, Object.entries(value.by_verdict).map(([verdict, number]) => [badge(`${count(number)} ${words(verdict)}`, kind(verdict)), " "])];
});
const openOf = ({ benchmarks }) => part(benchmarks, ({ runs, fleets }) => `${count(runs.length)} ${runs.length === 1 ? "run" : "runs"}, ${count(fleets.length)} ${fleets.length === 1 ? "fleet" : "fleets"}`);

export async function show(main, signal) {
  const { label: current, deployments = [] } = await get("ui/about", {}, signal);
  if (!deployments.length) {
    fill(main, headline("Deployments"), h("p", {}, "This page shows one deployment. ", h("code", {}, "troop --all ui"), " shows all of a file."));
    return;
  }
  const age = loadedLine();
  const summary = h("p", { class: "muted", role: "status" });
  const list = h("div", {});
  const rows = new Map();
  let [timer, round] = [0, 0];
  const of = (content) => (label) => {
    const row = rows.get(label);
    return row && !row.error ? content(row) : null;
  };
  const columns = [
    { label: "Deployment", cell: (label) => (label === current ? link("#/overview", name(label)) : h("button", { type: "button", class: "small", onclick: () => open(label) }, label)) },
    { label: "Where", cell: of(({ about }) => (about.local ? "local AWS" : `${about.account} · ${about.region}`)) },
    { label: "Switch", wide: true, cell: (label) => (!rows.has(label) ? loading("it") : rows.get(label).error ? [badge("does not answer", "bad"), " ", sentence(rows.get(label).error)] : switchOf(rows.get(label))) },
    { label: "Health", cell: of(healthOf) },
    { label: "Today", cell: of(todayOf) },
    { label: "Open", cell: of(openOf) },
  ];
  fill(main, headline("Deployments", age, refreshButton(refresh)), summary, list, h("p", { class: "muted small" }, "Each deployment's IAM decides what you may see and do there. To halt all: ", h("code", {}, "troop --all halt"), "."));
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  function draw() {
    const silent = [...rows.values()].filter((row) => row.error).length;
    fill(summary, `${count(deployments.length)} deployments`, silent > 0 && `; ${count(silent)} ${silent === 1 ? "does" : "do"} not answer`, ".");
    const focused = list.contains(document.activeElement) && document.activeElement.textContent;
    fill(list, table("Deployments", columns, deployments));
    if (focused) [...list.querySelectorAll("a, button")].find((one) => one.textContent === focused)?.focus({ preventScroll: true });
  }

  async function refresh() {
    clearTimeout(timer);
    const [mine, at, waiting] = [++round, new Date(), [...deployments]];
    const work = async () => {
      while (waiting.length && mine === round && !signal.aborted) {
        const label = waiting.shift();
        const row = await get("ui/deployment", { label }, signal).catch((error) => ({ label, error: error.message }));
        if (mine !== round || signal.aborted) return;
        rows.set(label, row);
        draw();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (mine !== round || signal.aborted) return;
    loaded(age, at, OLD);
    if (!document.hidden) timer = setTimeout(refresh, EVERY);
  }

  draw();
  refresh();
}
