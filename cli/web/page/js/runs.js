// Benchmark runs, newest first, followed by standing fleets.

import { address } from "./address.js";
import { get } from "./api.js";
import { badge, fill, h, headline, leftOut, link, loading, name, problem, refreshButton, table } from "./dom.js";
import { fleets } from "./fleets.js";
import { loaded, loadedLine } from "./freshness.js";
import { cost, count, duration, kind, moment, share, who, words } from "./format.js";

const PAGE = 50;
const OLD = 600_000; // milliseconds, after which the list is marked as old

export const elapsed = (run) => duration(Math.max(0, (run.ended_at ? new Date(run.ended_at) : new Date()) - new Date(run.at)) / 1000);

/** A link that opens the report in a new tab. */
export const report = (run, text = "Report") =>
  h("a", { href: `#/runs/${encodeURIComponent(run)}/report`, target: "_blank", rel: "noopener" }, text, h("span", { class: "unseen" }, " (opens in a new tab)"), h("span", { "aria-hidden": "true" }, " ↗"));

const COLUMNS = [
  { label: "Run", cell: (run) => link(`#/runs/${encodeURIComponent(run.run)}`, h("code", {}, run.run)) },
  { label: "Benchmark", cell: (run) => name(run.name) },
  { label: "Status", cell: (run) => badge(words(run.status), kind(run.status)) },
  { label: "Started", cell: (run) => [moment(run.at), h("small", { class: "source", title: run.requested_by }, "by ", name(who(run.requested_by)))] },
  { label: "Duration", number: true, cell: elapsed },
  { label: "Cells", number: true, cell: (run) => count(run.cells) },
  { label: "Nodes", number: true, cell: (run) => count(run.nodes) },
  { label: "Cost", number: true, cell: cost },
  { label: "Report", cell: (run) => (run.ended_at ? report(run.run) : null) },
];

/** The choice of two runs that have ended, and the link to their comparison; the older run is the baseline. */
function comparing() {
  const chosen = new Map(); // runs by id
  const element = h("p", { class: "muted", role: "status" });
  const column = {
    label: "Compare",
    cell: (run) => run.ended_at && h("input", { type: "checkbox", "aria-label": `Compare ${run.run}`, checked: chosen.has(run.run), onchange: (event) => choose(run, event.target.checked) }),
  };
  draw();

  function choose(run, is) {
    if (is) chosen.set(run.run, run);
    else chosen.delete(run.run);
    draw();
  }

  function draw() {
    const [a, b] = [...chosen.keys()].sort(); // ids begin with the time
    if (chosen.size === 2) {
      fill(element, h("a", { href: address("#/comparison", { a, b }), target: "_blank", rel: "noopener" }, `Compare ${b} with ${a}`, h("span", { class: "unseen" }, " (opens in a new tab)"), h("span", { "aria-hidden": "true" }, " ↗")));
    } else if (chosen.size) fill(element, chosen.size === 1 ? "Select a second run to compare." : "Select only two runs to compare.");
    else fill(element);
  }
  return { element, column };
}

export async function show(main, signal) {
  let runs = [];
  let cursor = "";
  const standing = fleets(signal);
  const pair = comparing();
  let round = 0; // of loading: responses to earlier rounds are dropped
  const list = h("div", {});
  const more = h("div", { class: "buttons" });
  const summary = h("p", { class: "muted", role: "status" });
  const malformed = h("div", {});
  const age = loadedLine();
  fill(
    main,
    headline("Benchmarks", h("div", { class: "actions" }, link("#/start", "Start a benchmark …"), refreshButton(() => load(true)))),
    h("div", { class: "sides" }, summary, age),
    malformed, pair.element, list, more, standing.element,
  );

  async function load(refresh = false) {
    const mine = ++round;
    if (refresh) {
      [runs, cursor] = [[], ""];
      standing.clear(); // fleets load after runs: an error that concerns both appears once
    }
    if (!runs.length) fill(list, loading("runs"));
    fill(more);
    try {
      const page = await get("benchmarks", { limit: PAGE, cursor }, signal);
      if (mine !== round) return;
      if (!cursor) {
        standing.load();
        loaded(age, new Date(), OLD);
      }
      if (!cursor || page.malformed?.length) fill(malformed, leftOut(page));
      runs = [...runs, ...page.runs];
      cursor = page.cursor;
      fill(summary, runs.length ? share(runs.length, runs.length, "run", cursor) : ["There are no runs. ", link("#/start", "Start a benchmark"), ", or use ", h("code", {}, "troop bench run FILE"), "."]);
      fill(list, runs.length ? table("Benchmark runs, newest first", [...COLUMNS, pair.column], runs) : null);
      fill(more, cursor && h("button", { type: "button", onclick: () => load() }, "Load more"));
    } catch (error) {
      if (signal.aborted || mine !== round) return;
      if (!runs.length) fill(list);
      fill(more, problem(error, () => load()));
    }
  }
  await load(true);
}
