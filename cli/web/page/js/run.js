// One benchmark run: its cells, results, cost and report, and the button that stops it.

import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { badge, facts, fill, flash, h, heading, headline, link, loading, name, table } from "./dom.js";
import { cost, count, duration, kind, milliseconds, moment, money, who, words } from "./format.js";
import { live } from "./live.js";
import { reportStatus } from "./report_status.js";
import { benchmarkAddress, elapsed, report, startAddress } from "./run_list.js";

const [SOON, LATE] = [4_000, 30_000];
const STOPPABLE = new Set(["ADMITTED", "RUNNING"]);

export async function show(main, signal, run) {
  const path = `benchmarks/${encodeURIComponent(run)}`;
  fill(main, heading("Run ", name(run)), loading("the run"));
  let state = await get(path, { resources: "false" }, signal);
  let timer;
  let wait = SOON;
  let before = "";
  const loaded = new Map(); // results that were requested for single cells: other responses lack space for them
  let reporting; // the report's controls, once the run has ended
  const top = h("div", {});
  const cells = h("div", {});
  fill(main, top, state.run.ended_at ? null : live(path, signal), cells);
  draw();
  later();
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  function later() {
    clearTimeout(timer);
    if (!state.run.ended_at && !document.hidden && !signal.aborted) timer = setTimeout(refresh, wait);
  }

  async function refresh() {
    if (state.run.ended_at) return;
    try {
      state = await get(path, { resources: "false" }, signal);
      draw();
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      wait = Math.min(LATE * 2, wait * 2);
    }
    later();
  }

  function draw() {
    state = { ...state, cells: state.cells.map(completed) };
    const now = JSON.stringify(state);
    wait = now === before ? Math.min(LATE, wait * 1.5) : SOON;
    if (now === before) return;
    before = now;
    const { run: it } = state;
    const button = document.activeElement?.matches(".actions button") ? "focus" : null;
    const over = it.ended_at && !reporting;
    if (over) reporting = reportStatus(it.run, it.name, signal);
    fill(top, [
      h("p", { class: "back" }, link(benchmarkAddress(it.name), "← ", name(it.name))),
      headline(
        name(it.name),
        badge(words(it.status), kind(it.status)),
        h(
          "div",
          { class: "actions" },
          reporting && [report(it.run, "Open the report"), reporting.button],
          it.ended_at && link(startAddress(it.name, it), "Start again …"),
          STOPPABLE.has(it.status) && h("button", { type: "button", class: "danger", onclick: () => once(stop) }, "Stop …"),
        ),
      ),
      reporting?.message,
      it.reason && h("div", { class: "problem" }, explained(it.reason)),
      facts([
        ["Run", h("code", {}, it.run)],
        ["Started", moment(it.at)],
        [it.ended_at ? "Duration" : "Running for", elapsed(it)],
        ["Started by", h("span", { title: it.requested_by }, name(who(it.requested_by)))],
        ["Maximum nodes", count(it.nodes)],
        ["Cost", cost(it)],
        ["Expected cost", it.cost && it.estimate ? `${money(it.estimate.expected, it.estimate.currency)}, at most ${money(it.estimate.most, it.estimate.currency)}` : null],
        ["Expires", it.ended_at ? null : moment(it.expires_at)],
      ]),
    ]);
    fill(cells, cellTables(state, more));
    if (button) top.querySelector(".actions button")?.focus();
    if (over) reporting.refresh();
  }

  function completed(cell) {
    const results = loaded.get(`${cell.cell} ${cell.attempt}`);
    return results && cell.results_left_out && !cell.results ? { ...cell, results } : cell;
  }

  /** Requests the results of a cell that did not fit into the response. */
  async function more(cell) {
    try {
      const response = await get(path, { resources: "false", cell }, signal);
      for (const one of response.cells) if (one.results) loaded.set(`${one.cell} ${one.attempt}`, one.results);
      draw();
    } catch (error) {
      if (!signal.aborted) flash(error.message);
    }
  }

  async function stop() {
    let after;
    const done = await ask({
      title: `Stop ${state.run.name}?`,
      yes: "Stop the run",
      danger: true,
      content: [
        h("p", {}, "This stops its cells and removes everything that the run created, which takes some minutes. Measurements so far are kept, but cells in progress get no results. You cannot undo this."),
        h("p", { class: "muted" }, "Run ", h("code", {}, state.run.run), ", ", words(state.run.status), "."),
      ],
      act: async () => {
        after = await change("DELETE", path);
      },
    });
    if (!done) return;
    state = { ...state, run: after };
    flash(`${state.run.name} is stopping.`);
    draw();
    main.querySelector("h1")?.focus();
    wait = SOON;
    later();
  }
}

function cellDuration(cell) {
  const at = Object.fromEntries(cell.steps.map((step) => [step.phase, new Date(step.at)]));
  return at.launch ? duration(Math.max(0, (at.over ?? new Date()) - at.launch) / 1000) : null;
}

const label = (cell) => [h("code", {}, cell.cell), cell.label && [" ", name(cell.label)]];

function cellTables({ run, cells }, more) {
  const rows = cells.flatMap((cell) => (cell.results ?? []).map((result) => ({ cell, result })));
  const absent = cells.filter((cell) => cell.results_left_out && !cell.results);
  const several = cells.length > 1;
  const columns = several ? [{ label: "Cell", cell: ({ cell }) => label(cell) }, ...RESULTS] : RESULTS;
  return [
    h("h2", {}, "Cells"),
    cells.length ? table("Cells of the run", CELLS, cells.map((cell) => ({ ...cell, told: run.reason ?? "" }))) : h("p", { class: "muted" }, "No cell has started."),
    h("h2", {}, "Results"),
    rows.length ? table("Measurements", columns, rows) : h("p", { class: "muted" }, run.ended_at ? "There are no results." : "No results yet. Each cell shows its results when it ends."),
    h("div", { class: "buttons" }, absent.map((cell) => h("button", { type: "button", onclick: () => more(cell.cell) }, "Load results of ", cell.cell))),
  ];
}

const CELLS = [
  { label: "Cell", cell: label },
  { label: "Status", cell: (cell) => badge(words(cell.status), kind(cell.status)) },
  { label: "Phase", cell: (cell) => (cell.phase === "over" ? null : cell.phase || null) },
  { label: "Duration", number: true, cell: cellDuration },
  { label: "Cost", number: true, cell: (cell) => cell.cost && money(cell.cost.amount, cell.cost.currency) },
  { label: "Reason", wide: true, cell: (cell) => cell.reason && explained(cell.reason, cell.told) },
];

const unfolded = new Set(); // outputs that stay open when the page is drawn again

/** The first line of a reason, and the output below it to unfold, unless `told` has the output already. */
function explained(reason, told = "") {
  const [first, ...rest] = reason.split("\n");
  const output = rest.join("\n");
  if (!output || told.includes(output)) return h("p", {}, first);
  const fold = h(
    "details",
    { open: unfolded.has(reason), ontoggle: () => (fold.open ? unfolded.add(reason) : unfolded.delete(reason)) },
    h("summary", {}, "Output"),
    h("pre", { tabindex: "0", "aria-label": "Output" }, output),
  );
  return [h("p", {}, first), fold];
}

const time = (key) => ({ label: key, number: true, cell: ({ result }) => milliseconds(result[`${key}_ms`]) });
const errors = (counts) => Object.entries(counts ?? {}).map(([kind, number]) => `${kind} ${count(number)}`).join(", ") || "0";

const RESULTS = [
  { label: "Phase", cell: ({ result }) => name(result.phase ?? "") },
  { label: "Role", cell: ({ result }) => name(result.role ?? "") },
  { label: "Operation", cell: ({ result }) => name(result.operation ?? "") },
  { label: "Count", number: true, cell: ({ result }) => count(result.count ?? 0) },
  { label: "Per second", number: true, cell: ({ result }) => result.per_second?.toLocaleString("en", { maximumFractionDigits: 1 }) },
  { label: "Errors", number: true, cell: ({ result }) => errors(result.errors) },
  { label: "MB/s", number: true, cell: ({ result }) => (result.bytes_per_second ? (result.bytes_per_second / 1e6).toFixed(2) : null) },
  ...["mean", "p50", "p90", "p95", "p99", "max"].map(time),
];
