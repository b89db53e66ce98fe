// What views of benchmarks share: how a run is shown in a row, and the choice of two runs to compare.

import { address } from "./address.js";
import { fill, h, link, name } from "./dom.js";
import { duration, milliseconds, moment, money, short, who } from "./format.js";

export const elapsed = (run) => duration(Math.max(0, (run.ended_at ? new Date(run.ended_at) : new Date()) - new Date(run.at)) / 1000);

export const runAddress = (run) => `#/runs/${encodeURIComponent(run)}`;
export const benchmarkAddress = (benchmark) => `#/benchmarks/${encodeURIComponent(benchmark)}`;
export const startAddress = (benchmark = "", run = {}) => address("#/start", { benchmark, size: run.size ?? "", again: run.run ?? "" });

export const newTab = () => [h("span", { class: "unseen" }, " (opens in a new tab)"), h("span", { "aria-hidden": "true" }, " ↗")];

/** A link that opens the report in a new tab. */
export const report = (run, text = "Report", look = null) => h("a", { class: look, href: `${runAddress(run)}/report`, target: "_blank", rel: "noopener" }, text, newTab());

/** When a run started and by whom; opens the run. */
export const started = (run) => [link(runAddress(run.run), moment(run.at)), h("small", { class: "source", title: run.requested_by }, "by ", name(who(run.requested_by)))];

/** A link that looks like a button: the main action of a view. */
export const primary = (to, ...text) => h("a", { class: "button primary", href: to }, text);

/** A value of a figure of `troop bench history`, with its unit. */
export function figureText(value, figure) {
  if (value === null || value === undefined) return null;
  if (figure === "throughput") return `${short(value)}/s`;
  if (figure === "cost") return short(value);
  return figure === "errors" ? `${short(value * 100)} %` : milliseconds(value);
}

/** The change from `before` to `now`, such as "+2.1 %"; null if it is unknown. */
export function changeText(now, before) {
  if (now === null || !before) return null;
  const percent = (now / before - 1) * 100;
  return Math.abs(percent) < 0.05 ? "no change" : `${percent > 0 ? "+" : "\u2212"}${short(Math.abs(percent))} %`;
}

/** What runs of a month cost: the amount, and what it leaves out or expects. */
export function monthCost(bill) {
  if (!bill) return null;
  const notes = [bill.is_expected && "open runs as expected", bill.is_partial && "without items of unknown price"].filter(Boolean);
  return [money(bill.amount, bill.currency), notes.length > 0 && h("small", { class: "source" }, notes.join(", "))];
}

const MONTH = new Intl.DateTimeFormat("en", { month: "long", timeZone: "UTC" });
export const monthName = (month) => MONTH.format(new Date(`${month}-01T00:00:00Z`));

/** When a schedule starts runs, in words: "every 6 hours". */
export function plan({ expression, time_zone: zone }) {
  const [, kind, inner] = /^(\w+)\((.*)\)$/.exec(expression) ?? [];
  if (kind === "rate") return `every ${inner.replace(/^1 /, "")}`;
  const where = zone === "UTC" ? "" : ` ${zone}`;
  return kind === "at" ? `once, ${inner.replace("T", " ")}${where}` : `cron ${inner ?? expression}${where}`;
}

/**
 * The choice of two runs that have ended, and the button that compares them; the older run is the baseline. The button
 * is always there, so a choice moves nothing.
 */
export function comparing() {
  const chosen = new Set();
  const button = h("a", { class: "button", target: "_blank", rel: "noopener", role: "link" });
  const note = h("span", { class: "muted", role: "status" });
  const column = {
    label: "Compare",
    cell: (run) => run.ended_at && h("input", { type: "checkbox", "aria-label": `Compare ${run.run}`, checked: chosen.has(run.run), onchange: (event) => choose(run.run, event.target.checked) }),
  };
  draw();

  function choose(run, is) {
    if (is) chosen.add(run);
    else chosen.delete(run);
    draw();
  }

  function draw() {
    const [a, b] = [...chosen].sort(); // ids begin with the time
    const ready = chosen.size === 2;
    if (ready) button.setAttribute("href", address("#/comparison", { a, b }));
    else button.removeAttribute("href");
    button.setAttribute("aria-disabled", String(!ready));
    fill(button, "Compare", newTab());
    fill(note, ready ? `${b} with ${a}` : ["Select two runs", "Select a second run"][chosen.size] ?? "Select only two runs");
  }
  return { element: h("div", { class: "compare" }, button, note), column };
}
