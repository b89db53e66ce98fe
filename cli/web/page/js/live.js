// What a running benchmark does right now: figures of the last merge of its nodes' running summaries.

import { get } from "./api.js";
import { chart, table as folded } from "./charts.js";
import { facts, fill, h, name, table } from "./dom.js";
import { clock, count, duration, milliseconds, setting, short } from "./format.js";
import { stamp } from "./freshness.js";

const EVERY = 15_000;
const OLD = 45_000; // milliseconds, after which figures are marked as old: two merges are missing
const GAP = 50_000; // milliseconds between two points that a line does not join
const HEIGHT = 150;
const STYLES = { rate: { colour: 0, dash: 0, symbol: 0 }, errors: { colour: 2, dash: 0, symbol: 0 }, median: { colour: 0, dash: 0, symbol: 0 }, threshold: { colour: 1, dash: 1, symbol: 0 } };

const LEAST = 5; // merges from which there are charts
const percent = (value) => (value === null ? null : `${Math.round(value)} %`);

/**
 * A panel that follows a run until it ends, and then disappears.
 * @param {string} path of the run, such as "benchmarks/20261121-150312-1f0c9b2e"
 * @param {AbortSignal} signal of the view
 */
export function live(path, signal) {
  const age = h("span", { class: "age" });
  const note = h("p", { class: "muted" });
  const cells = h("div", {});
  const panel = h("section", { class: "live", "aria-label": "Live figures" }, h("h2", {}, "Live", age), note, cells);
  const opened = new Set(); // folded tables that the viewer has opened: each merge draws them again
  let timer;
  let over = false;
  let last = null; // { answer, at }: `at` by this machine's clock
  const second = setInterval(tick, 1000);
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()), { signal });
  signal.addEventListener("abort", () => [clearTimeout(timer), clearInterval(second)]);
  refresh();
  return panel;

  async function refresh() {
    clearTimeout(timer);
    if (over) return;
    try {
      draw(await get(`${path}/live`, {}, signal));
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      // The last figures stay, and become old.
      fill(note, `${error.message}`);
    }
    clearTimeout(timer);
    if (!over && !document.hidden && !signal.aborted) timer = setTimeout(refresh, EVERY);
  }

  function draw(answer) {
    over = answer.state === "ended";
    panel.hidden = over;
    if (over) return;
    const before = last?.answer.at;
    const at = answer.at ? new Date(Date.now() - Math.max(0, new Date(answer.now) - new Date(answer.at))) : null;
    last = { answer, at: answer.at === before ? last?.at : at };
    const unread = answer.unread ? ` ${count(answer.unread)} running summaries could not be read.` : "";
    const measuring = answer.state === "measuring";
    fill(note, measuring ? `Merged at ${clock(new Date(answer.at))}, every 15 s. Previews: the results come from everything that was measured.` : absent(answer), unread);
    if (answer.at !== before) fill(cells, answer.cells.map((cell) => show(cell, opened)));
    if (last.at) stamp(panel, last.at, OLD);
    tick();
  }

  function tick() {
    if (!last?.at) return;
    const seconds = (Date.now() - last.at) / 1000;
    for (const place of cells.querySelectorAll("[data-left]")) {
      const [left, warmUp] = [place.dataset.left - seconds, place.dataset.warmUp - seconds];
      const text = `${duration(Math.max(0, left))}${warmUp > 0 ? `, with ${duration(warmUp)} of the warm-up` : ""}`;
      if (place.textContent !== text) place.textContent = text;
    }
  }
}

/** Why there are no figures. */
const absent = ({ cells }) => (cells.some((cell) => cell.is_measured) ? "No figures yet: nodes send them every 15 s." : "No figures now: they begin with the next measured phase.");

/** The phase of a cell that runs, with the point that it measures. */
const placeOf = ({ phase, point }) => (point ? [`${phase} of ${point.of}`, setting(point)].filter(Boolean).join(": ") : phase);

function show(cell, opened) {
  const { total, roles, operations } = cell;
  const nodes = roles.reduce((sum, one) => sum + one.reporting, 0);
  const expected = roles.some((one) => one.expected === null) ? null : roles.reduce((sum, one) => sum + one.expected, 0);
  const left = cell.seconds_left !== null && h("span", { "data-left": String(cell.seconds_left), "data-warm-up": String(cell.warm_up_seconds_left) });
  return h(
    "div",
    { class: "cell" },
    h("h3", {}, h("code", {}, cell.cell), cell.label && [" ", name(cell.label)], ": ", name(placeOf(cell))),
    facts([
      ["Time left", left || null],
      ["Operations per second", total && short(total.per_second)],
      ["p50", total && milliseconds(total.p50_ms)],
      ["p99", total && milliseconds(total.p99_ms)],
      ["Errors per second", total && short(total.errors_per_second)],
      ["Nodes that report", roles.length ? `${count(nodes)}${expected === null ? "" : ` of ${count(expected)}`}` : null],
    ]),
    cell.history.length >= LEAST && history(cell, opened),
    operations.length > 1 && table("Operations", OPERATIONS, operations),
    roles.length > 0 && table("CPU by role", ROLES, roles),
  );
}

const OPERATIONS = [
  { label: "Operation", cell: (one) => name(one.operation) },
  { label: "Role", cell: (one) => name(one.role) },
  { label: "Per second", number: true, cell: (one) => short(one.per_second) },
  { label: "Errors per second", number: true, cell: (one) => short(one.errors_per_second) },
  { label: "p50", number: true, cell: (one) => milliseconds(one.p50_ms) },
  { label: "p99", number: true, cell: (one) => milliseconds(one.p99_ms) },
];

const ROLES = [
  { label: "Role", cell: (one) => name(one.role) },
  { label: "Nodes that report", number: true, cell: (one) => (one.expected === null ? count(one.reporting) : `${count(one.reporting)} of ${count(one.expected)}`) },
  { label: "CPU", number: true, cell: (one) => percent(one.cpu_percent) },
  { label: "CPU of the busiest", number: true, cell: (one) => percent(one.cpu_percent_max) },
  { label: "iowait", number: true, cell: (one) => percent(one.iowait_percent ?? null) },
];

function history({ cell, history: points }, opened) {
  const rows = folded("History as a table", ["Time", "Phase", "Per second", "Errors per second", "p50", "p99"], points.toReversed().map((one) => [clock(new Date(one.at)), one.phase, short(one.per_second), short(one.errors_per_second), milliseconds(one.p50_ms), milliseconds(one.p99_ms)]));
  rows.open = opened.has(cell);
  rows.addEventListener("toggle", () => (rows.open ? opened.add(cell) : opened.delete(cell)));
  return [
    h("div", { class: "charts" },
      h("div", {},
        curvesOf("Operations per second", points, [["rate", (one) => one.per_second], ["errors", (one) => one.errors_per_second]], short),
        h("ul", { class: "key" }, h("li", { class: "rate" }, "operations per second"), h("li", { class: "errors" }, "errors per second"))),
      h("div", {},
        curvesOf("p50 and p99", points, [["median", (one) => one.p50_ms], ["threshold", (one) => one.p99_ms]], milliseconds),
        h("ul", { class: "key" }, h("li", { class: "dot" }, "p50"), h("li", { class: "threshold" }, "p99")))),
    rows,
  ];
}

/** A chart of some figures over the last merges, from zero. `curves`: [style, value of a point]. */
function curvesOf(label, points, curves, format) {
  const [first, last] = [points[0], points.at(-1)].map((one) => Date.parse(one.at));
  const newest = curves.map(([, of]) => of(points.at(-1))).filter((value) => value !== null).map(format);
  return chart(`${label}, ${clock(new Date(first))} to ${clock(new Date(last))}: last ${newest.join(" and ") || "unknown"}`, HEIGHT, () => ({
    xAxis: { ...axis(""), type: "time", min: first, max: last, splitNumber: 2, splitLine: { show: false }, axisLabel: { color: colour("soft"), hideOverlap: true, showMinLabel: true, showMaxLabel: true, alignMinLabel: "left", alignMaxLabel: "right", formatter: (at) => clock(new Date(at)) } },
    yAxis: { ...axis(""), type: "value", min: 0, splitNumber: 3, axisLabel: { color: colour("soft"), formatter: (one) => (one ? format(one) : "0") } },
    series: curves.map(([style, of]) => lineSeries({ name: "", style: STYLES[style] }, line(points, of), { silent: true })),
  }));
}

/** The points [time, value] of a line; it has a gap where nobody watched. */
function line(points, of) {
  return points.flatMap((one, index) => {
    const at = Date.parse(one.at);
    return [...(index && at - Date.parse(points[index - 1].at) > GAP ? [[at, null]] : []), [at, of(one)]];
  });
}
