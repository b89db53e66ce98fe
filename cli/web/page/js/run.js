// One benchmark run: what was wrong, its steps, results, cells, cost and report, and the button that stops it.

import { address } from "./address.js";
import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { badge, facts, fill, flash, h, heading, headline, link, loading, name, table } from "./dom.js";
import { clock, cost, count, duration, kind, milliseconds, moment, money, minutes, setting, short, who, words } from "./format.js";
import { live } from "./live.js";
import { reportStatus } from "./report_status.js";
import { benchmarkAddress, elapsed, newTab, report, startAddress } from "./run_list.js";
import { end, strip, tick } from "./steps.js";

const [SOON, LATE] = [4_000, 30_000];
const MOST_STRIPS = 4; // cells whose steps are shown while they run
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
  const comparison = h("span", { class: "bare" });
  const second = setInterval(() => document.hidden || passing(), 1000);
  const figures = state.run.ended_at ? null : live(path, signal);
  fill(main, top, figures, cells);
  draw();
  later();
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()), { signal });
  signal.addEventListener("abort", () => [clearTimeout(timer), clearInterval(second)]);

  function passing() {
    tick(main);
    for (const place of main.querySelectorAll("[data-since]")) place.textContent = elapsed({ at: place.dataset.since });
  }

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
          reporting && [report(it.run, "Open the report", "button primary"), comparison],
          it.ended_at && h("a", { class: "button", href: startAddress(it.name, it) }, "Start again …"),
          reporting?.button,
          STOPPABLE.has(it.status) && h("button", { type: "button", class: "danger", onclick: () => once(stop) }, "Stop …"),
        ),
      ),
      it.reason && h("div", { class: it.status === "STOPPED" || it.status === "STOPPING" ? "failure stop" : "problem failure" }, explained(it.reason)),
      progress(),
      h("div", { class: "compact" }, facts([
        ["Run", h("code", {}, it.run)],
        ["Size", it.size && name(it.size)],
        ["Started", moment(it.at)],
        [it.ended_at ? "Duration" : "Running for", it.ended_at ? elapsed(it) : h("span", { "data-since": it.at }, elapsed(it))],
        ["Ends about", ending()],
        ["Started by", h("span", { title: it.requested_by }, name(who(it.requested_by)))],
        ["Maximum nodes", count(it.nodes)],
        ["Cost", cost(it)],
        ["Expected cost", it.cost && it.estimate ? `${money(it.estimate.expected, it.estimate.currency)}, at most ${money(it.estimate.most, it.estimate.currency)}` : null],
        ["Removed at the latest", it.ended_at ? null : moment(it.expires_at)],
      ])),
      reporting?.message,
    ]);
    tick(main);
    fill(cells, cellTables(state, more));
    if (button) top.querySelector(".actions button")?.focus();
    if (over) {
      figures?.remove();
      reporting.refresh();
      findBefore();
    }
  }

  /** The steps of the cells that run; of a run that has ended, those of its only cell. */
  function progress() {
    const { run: it, cells: all, timetable = [] } = state;
    const shown = it.ended_at ? (all.length === 1 ? all : []) : all.filter((one) => one.status === "RUNNING").slice(0, MOST_STRIPS);
    return shown.map((cell) => h("section", { class: "progress" }, all.length > 1 && h("h2", {}, label(cell)), strip(cell, timetable)));
  }

  function ending() {
    const { run: it, cells: all, timetable = [] } = state;
    const at = it.ended_at ? null : end(it, all, timetable);
    return at && `${clock(new Date(at)).replace(/:\d\d /, " ")}, in about ${minutes((at - Date.now()) / 1000)}`;
  }

  /** Adds the link to the comparison with the run before, if there is one. */
  async function findBefore() {
    try {
      const { before: a } = await get("ui/benchmarks/before", { run }, signal);
      if (a) fill(comparison, h("a", { class: "button", href: address("#/comparison", { a, b: run }), target: "_blank", rel: "noopener" }, "Compare with the run before", newTab()));
    } catch {
      // The comparison is an extra: the benchmark's page has it, too.
    }
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

const isShort = (cells) => cells.length === 1; // then the steps tell all

function cellDuration(cell) {
  const at = Object.fromEntries(cell.steps.map((step) => [step.phase, new Date(step.at)]));
  return at.launch ? duration(Math.max(0, (at.over ?? new Date()) - at.launch) / 1000) : null;
}

const label = (cell) => [h("code", {}, cell.cell), cell.label && [" ", name(cell.label)]];

function cellTables({ run, cells }, more) {
  const rows = cells.flatMap((cell) => (cell.results ?? []).map((result) => ({ cell, result })));
  const absent = cells.filter((cell) => cell.results_left_out && !cell.results);
  const empty = cells.filter((cell) => cell.status === "SUCCEEDED" && cell.results?.length === 0);
  const silent = cells.filter((cell) => cell.status === "SUCCEEDED").flatMap((cell) => silentPoints(cell).map((point) => (cells.length > 1 ? `${cell.cell} ${point}` : point)));
  const several = cells.length > 1;
  const columns = several ? [{ label: "Cell", cell: ({ cell }) => label(cell) }, ...RESULTS] : RESULTS;
  return [
    h("h2", {}, "Results"),
    empty.length > 0 && h("p", { class: "problem" }, `Nothing was measured${several ? ` in ${empty.map((cell) => cell.cell).join(", ")}` : ""}: no script recorded an operation in a measured time. The report has details.`),
    silent.length > 0 && h("p", { class: "problem" }, `No operation was recorded in ${silent.join(", ")}. The report has details.`),
    empty.length === cells.length && cells.length ? null : rows.length ? table("Measurements", columns, rows) : h("p", { class: "muted" }, run.ended_at ? "There are no results." : "No results yet. Each cell shows its results when it ends."),
    faultTable(cells),
    h("div", { class: "buttons" }, absent.map((cell) => h("button", { type: "button", onclick: () => more(cell.cell) }, "Load results of ", cell.cell))),
    !isShort(cells) && [h("h2", {}, "Cells"), cells.length ? table("Cells of the run", cellColumns(cells, run.reason ?? ""), cells) : h("p", { class: "muted" }, "No cell has started.")],
    run.cost && bill(run.cost),
  ];
}

/** What planned faults did, and whether the file expects it; nothing without any, or from an older deployment. */
function faultTable(cells) {
  const rows = cells.flatMap((cell) => (cell.faults ?? []).map((fault) => ({ cell, fault })));
  if (!rows.length) return null;
  return [h("h2", {}, "Failure under load"), table("Planned faults", [
    cells.length > 1 && { label: "Cell", cell: ({ cell }) => label(cell) },
    { label: "Phase", cell: ({ fault }) => name([fault.phase, fault.setting].filter(Boolean).join(", ")) },
    { label: "Verdict", cell: ({ fault }) => fault.verdict && badge(words(fault.verdict), kind(fault.verdict)) },
    { label: "What happened", wide: true, cell: ({ fault }) => name(fault.sentence) },
  ].filter(Boolean), rows)];
}

/** The points without results of phases that have results of other points: "measure.2". */
function silentPoints({ results, steps }) {
  const measured = new Set((results ?? []).filter((row) => row.point).map((row) => `${row.phase}.${row.point}`));
  const phases = new Set([...measured].map((point) => point.replace(/\.\d+$/, "")));
  return steps.map((step) => step.phase).filter((step) => /\.\d+$/.test(step) && phases.has(step.replace(/\.\d+$/, "")) && !measured.has(step));
}

/** The cost of the run, item by item; the dearest first. */
function bill({ items, amount, currency, unknown }) {
  if (!items?.length) return null;
  const priced = items.toSorted((a, b) => (b.amount ?? 0) - (a.amount ?? 0));
  return [h("h2", {}, "Cost"), h("details", {}, h("summary", {}, `${money(amount, currency)} by item`, unknown.length > 0 && ", some without a price"), table("Cost by item", [
    { label: "Item", cell: (one) => name(one.what), wide: true },
    { label: "Quantity", number: true, cell: (one) => `${short(one.quantity)} ${one.unit}` },
    { label: "Price", number: true, cell: (one) => one.price !== null && money(one.price, currency) },
    { label: "Cost", number: true, cell: (one) => one.amount !== null && money(one.amount, currency) },
  ], priced))];
}

/** The columns of cells; the reason only if some cell has one that the run's does not contain. */
function cellColumns(cells, told) {
  const own = (cell) => cell.reason && !told.includes(cell.reason);
  return [
    { label: "Cell", cell: label },
    { label: "Status", cell: (cell) => badge(words(cell.status), kind(cell.status)) },
    { label: "Phase", cell: (cell) => (cell.phase === "over" ? null : cell.phase || null) },
    { label: "Duration", number: true, cell: cellDuration },
    { label: "Cost", number: true, cell: (cell) => cell.cost && money(cell.cost.amount, cell.cost.currency) },
    cells.some(own) && { label: "Reason", wide: true, cell: (cell) => own(cell) && explained(cell.reason) },
  ].filter(Boolean);
}

const unfolded = new Set(); // outputs that stay open when the page is drawn again

/** The first line of a reason, and the output below it to unfold. */
function explained(reason) {
  const [first, ...rest] = reason.split("\n");
  const output = rest.join("\n");
  if (!output) return h("p", {}, first);
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
  { label: "Phase", cell: ({ result }) => name([result.phase, setting(result)].filter(Boolean).join(", ")) },
  { label: "Role", cell: ({ result }) => name(result.role ?? "") },
  { label: "Operation", cell: ({ result }) => name(result.operation ?? "") },
  { label: "Count", number: true, cell: ({ result }) => count(result.count ?? 0) },
  { label: "Per second", number: true, cell: ({ result }) => typeof result.per_second === "number" && short(result.per_second) },
  { label: "Errors", number: true, cell: ({ result }) => errors(result.errors) },
  { label: "MB/s", number: true, cell: ({ result }) => (result.bytes_per_second ? short(result.bytes_per_second / 1e6) : null) },
  ...["mean", "p50", "p90", "p95", "p99", "max"].map(time),
];
