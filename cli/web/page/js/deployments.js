// All deployments of the file, a row for each, and the switcher in the header. Each has a page of its own: another address, another token.

import { change, get } from "./api.js";
import { badge, fill, flash, h, headline, line, link, name, refreshButton, table } from "./dom.js";
import { loaded, loadedLine } from "./freshness.js";
import { count, halter, kind, sentence, who, words } from "./format.js";

const EVERY = 60_000;
const OLD = 180_000; // milliseconds, after which the view is marked as old
const AT_ONCE = 16; // deployments in a request
const LONGEST = 60_000; // milliseconds in which a deployment is opened, or says why not
const GRADE = { ok: ["healthy", "good"], warn: ["warns", "warn"], fail: ["fails", "bad"] };

let opening = false;

/** Opens the page of a deployment in this tab, by a link that works once. */
async function open(label) {
  if (opening) return;
  opening = true;
  flash(`Opening ${label} …`, LONGEST);
  try {
    location.assign((await change("POST", "ui/deployments", { label })).url);
  } catch (error) {
    flash(`${label} cannot be opened: ${error.message}`);
  } finally {
    opening = false;
  }
}

/** The switcher: the deployments of the file, and the one whose page this is. Arrow keys choose without leaving it. */
export function switcher({ label, deployments }) {
  const options = deployments.map((one) => h("option", { value: one, selected: one === label }, one));
  const choose = h("select", { "aria-label": "Deployment" }, options);
  return [choose, h("button", { type: "button", class: "small", onclick: () => open(choose.value) }, "Open")];
}

const switchOf = ({ switch: now }) => {
  const [word, grade] = now.halted ? ["halted", "quiet"] : now.leashed ? ["leashed", "info"] : ["unleashed", "live"];
  const { by, reason } = halter(now);
  const why = now.itself ? ["the deployment halted itself: ", name(now.itself.why)] : now.halted && [by && ["by ", name(who(by))], reason && [": ", name(reason)]];
  return [badge(word, grade), " ", why, now.halt_id && h("span", { class: "muted small" }, " halt ", now.halt_id)];
};

const part = ({ value, error }, content) => (error ? h("span", { class: "wrong small" }, sentence(error)) : value && content(value));
const healthOf = ({ health }) => part(health, ({ status, checks }) => [badge(...(GRADE[status] ?? [words(status), "warn"])), status !== "ok" && ` ${checks.filter((check) => check.status !== "ok").map((check) => words(check.name).replaceAll("-", " ")).join(", ")}`]);
const todayOf = ({ today }) => part(today, (value) => {
  const events = Object.values(value.by_status).reduce((sum, one) => sum + one, 0);
  return [`${count(events)}${value.limited ? "+" : ""} ${events === 1 ? "event" : "events"} `, Object.entries(value.by_verdict).map(([verdict, number]) => [badge(`${count(number)} ${words(verdict)}`, kind(verdict)), " "])];
});
const openOf = ({ open }) => part(open, ({ runs, fleets }) => `${count(runs)} ${runs === 1 ? "run" : "runs"}, ${count(fleets)} ${fleets === 1 ? "fleet" : "fleets"}`);
const STRANGE = () => h("span", { class: "wrong small" }, "Another version's answer, which this page cannot show.");

export async function show(main, signal) {
  const { label: current, deployments = [] } = await get("ui/about", {}, signal);
  if (!deployments.length) {
    fill(main, headline("Deployments"), h("p", {}, "This page shows one deployment. ", h("code", {}, "troop --all ui"), " shows all of a file."));
    return;
  }
  const age = loadedLine();
  const summary = h("p", { class: "muted", role: "status" }, `${count(deployments.length)} deployments.`);
  const rows = new Map();
  const ends = h("div", {});
  let [timer, round] = [0, 0];
  const of = (content) => (label) => {
    const row = rows.get(label);
    try {
      return row && !row.error ? content(row) : null;
    } catch {
      return STRANGE();
    }
  };
  const failure = (label) => rows.get(label)?.error && [badge("does not answer", "bad"), " ", sentence(rows.get(label).error)];
  const columns = [
    { label: "Deployment", cell: (label) => (label === current ? link("#/overview", name(label)) : h("button", { type: "button", class: "small", onclick: () => open(label) }, label)) },
    { label: "Where", cell: of(({ about }) => (about.local ? "local AWS" : `${about.account} · ${about.region}`)) },
    { label: "Switch", wide: true, cell: (label) => (rows.has(label) ? failure(label) || of(switchOf)(label) : h("span", { class: "muted" }, "Loading …")) },
    { label: "Health", cell: of(healthOf) },
    { label: "Today", cell: of(todayOf) },
    { label: "Open", cell: of(openOf) },
  ];
  const list = table("Deployments", columns, deployments);
  const lines = new Map([...list.querySelectorAll("tbody tr")].map((one, index) => [deployments[index], one]));
  fill(main, headline("Deployments", age, refreshButton(refresh)), summary, list, ends, h("p", { class: "muted small" }, "Each deployment's IAM decides what you may see and do there. To halt all: ", h("code", {}, "troop --all halt"), "."));
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  /** Redraws a row, but not its first cell, which can have the focus. */
  function draw(label) {
    const [, ...cells] = lines.get(label).cells;
    const [, ...fresh] = line(columns, label).cells;
    for (const [index, cell] of cells.entries()) cell.replaceWith(fresh[index]);
  }

  /** Says once for each round what it has found. */
  function conclude() {
    const silent = [...rows.values()].filter((row) => row.error).length;
    const text = `${count(deployments.length)} deployments${silent ? `; ${count(silent)} ${silent === 1 ? "does" : "do"} not answer` : ""}.`;
    if (summary.textContent !== text) fill(summary, text);
    const halts = new Set([...rows.values()].map((row) => row.switch?.halt_id).filter(Boolean));
    fill(ends, [...halts].map((id) => h("p", { class: "muted small" }, "To resume what this halt stopped: ", h("code", {}, `troop resume --all --halt ${id}`))));
  }

  async function refresh() {
    clearTimeout(timer);
    const [mine, at] = [++round, new Date()];
    // Those that failed come last. Those that are not ready are asked for again after the others.
    let waiting = deployments.toSorted((one, other) => Boolean(rows.get(one)?.error) - Boolean(rows.get(other)?.error));
    while (waiting.length) {
      const labels = waiting.slice(0, AT_ONCE);
      const ready = await get("ui/deployments", { labels: labels.join("\n") }, signal).then((answer) => answer.rows, (error) => labels.map((label) => ({ label, error: error.message })));
      if (mine !== round || signal.aborted) return;
      for (const row of ready) {
        rows.set(row.label, row);
        draw(row.label);
      }
      const done = new Set(ready.map((row) => row.label));
      waiting = [...waiting.slice(AT_ONCE), ...labels.filter((label) => !done.has(label))];
    }
    conclude();
    loaded(age, at, OLD);
    if (!document.hidden) timer = setTimeout(refresh, EVERY);
  }

  refresh();
}
