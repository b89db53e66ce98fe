// One run of a benchmark: its cells, what they measured, what it has cost; stopping it.

import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { badge, facts, fill, flash, h, heading, link, loading, name, table } from "./dom.js";
import { count, duration, kind, milliseconds, moment, money, who, words } from "./format.js";
import { making } from "./made.js";
import { cost, report, took } from "./runs.js";

const [SOON, LATE] = [4_000, 30_000];
const STOPPABLE = new Set(["ADMITTED", "RUNNING"]);

export async function show(main, signal, run) {
  const path = `benchmarks/${encodeURIComponent(run)}`;
  fill(main, loading("the run"));
  let told = await get(path, { resources: "false" }, signal);
  let timer;
  let wait = SOON;
  let before = "";
  const byHand = new Map(); // results that were loaded one cell at a time: other answers have no room for them
  let its; // report: of a run that has ended
  const top = h("div", {});
  const cells = h("div", {});
  fill(main, top, cells);
  draw();
  later();
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : look()), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  function later() {
    clearTimeout(timer);
    if (!told.run.ended_at && !document.hidden && !signal.aborted) timer = setTimeout(look, wait);
  }

  async function look() {
    if (told.run.ended_at) return;
    try {
      told = await get(path, { resources: "false" }, signal);
      draw();
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      wait = Math.min(LATE * 2, wait * 2);
    }
    later();
  }

  function draw() {
    told = { ...told, cells: told.cells.map(completed) };
    const now = JSON.stringify(told);
    wait = now === before ? Math.min(LATE, wait * 1.5) : SOON;
    if (now === before) return;
    before = now;
    const { run: it } = told;
    const button = document.activeElement?.matches(".actions button") ? "focus" : null;
    const over = it.ended_at && !its;
    if (over) its = making(it.run, it.name, signal);
    fill(top, [
      h("p", { class: "back" }, link("#/runs", "← Benchmarks")),
      h(
        "div",
        { class: "headline" },
        heading(name(it.name)),
        badge(words(it.status), kind(it.status)),
        h(
          "div",
          { class: "actions" },
          its && [report(it.run, "Open the report"), its.button],
          STOPPABLE.has(it.status) && h("button", { type: "button", class: "danger", onclick: () => once(stop) }, "Stop …"),
        ),
      ),
      its?.said,
      it.reason && h("p", { class: "problem" }, it.reason),
      facts([
        ["Run", h("code", {}, it.run)],
        ["Began", moment(it.at)],
        [it.ended_at ? "Took" : "For", took(it)],
        ["By", h("span", { title: it.requested_by }, name(who(it.requested_by)))],
        ["Nodes at most", count(it.nodes)],
        ["Cost", cost(it)],
        ["Expected", it.cost && it.estimate ? `${money(it.estimate.expected, it.estimate.currency)}, ${money(it.estimate.most, it.estimate.currency)} at most` : null],
        ["Removed at the latest", it.ended_at ? null : moment(it.expires_at)],
      ]),
    ]);
    fill(cells, cellTables(told, more));
    if (button) top.querySelector(".actions button")?.focus();
    if (over) its.look();
  }

  function completed(cell) {
    const results = byHand.get(`${cell.cell} ${cell.attempt}`);
    return results && cell.results_left_out && !cell.results ? { ...cell, results } : cell;
  }

  /** The results of a cell for which the answer had no room. */
  async function more(cell) {
    try {
      const found = await get(path, { resources: "false", cell }, signal);
      for (const one of found.cells) if (one.results) byHand.set(`${one.cell} ${one.attempt}`, one.results);
      draw();
    } catch (error) {
      if (!signal.aborted) flash(error.message);
    }
  }

  async function stop() {
    let after;
    const done = await ask({
      title: `Stop ${told.run.name}?`,
      yes: "Stop the run",
      danger: true,
      content: [
        h("p", {}, "Its cells are ended, and everything it has created is removed; that takes some minutes. What they have measured so far is kept; cells under way have no result. It cannot be taken back."),
        h("p", { class: "muted" }, "Run ", h("code", {}, told.run.run), ", ", words(told.run.status), "."),
      ],
      act: async () => {
        after = await change("DELETE", path);
      },
    });
    if (!done) return;
    told = { ...told, run: after };
    flash(`${told.run.name} is being stopped.`);
    draw();
    main.querySelector("h1")?.focus();
    wait = SOON;
    later();
  }
}

function elapsed(cell) {
  const at = Object.fromEntries(cell.steps.map((step) => [step.phase, new Date(step.at)]));
  return at.launch ? duration(Math.max(0, (at.over ?? new Date()) - at.launch) / 1000) : null;
}

const label = (cell) => [h("code", {}, cell.cell), cell.label && [" ", name(cell.label)]];

function cellTables(told, more) {
  const rows = told.cells.flatMap((cell) => (cell.results ?? []).map((result) => ({ cell, result })));
  const absent = told.cells.filter((cell) => cell.results_left_out && !cell.results);
  const several = told.cells.length > 1;
  const columns = several ? [{ label: "Cell", cell: ({ cell }) => label(cell) }, ...RESULTS] : RESULTS;
  return [
    h("h2", {}, "Cells"),
    told.cells.length ? table("Cells of the run", CELLS, told.cells) : h("p", { class: "muted" }, "None has begun."),
    h("h2", {}, "Results"),
    rows.length ? table("What was measured", columns, rows) : h("p", { class: "muted" }, told.run.ended_at ? "Nothing was measured." : "Nothing has been measured yet."),
    h("div", { class: "buttons" }, absent.map((cell) => h("button", { type: "button", onclick: () => more(cell.cell) }, "Load the results of ", cell.cell))),
  ];
}

const CELLS = [
  { label: "Cell", cell: label },
  { label: "Status", cell: (cell) => badge(words(cell.status), kind(cell.status)) },
  { label: "At", cell: (cell) => (cell.phase === "over" ? null : cell.phase || null) },
  { label: "Took", number: true, cell: elapsed },
  { label: "Cost", number: true, cell: (cell) => cell.cost && money(cell.cost.amount, cell.cost.currency) },
  { label: "Reason", wide: true, cell: (cell) => cell.reason },
];

const time = (key) => ({ label: key, number: true, cell: ({ result }) => milliseconds(result[`${key}_ms`]) });
const errors = (found) => Object.entries(found ?? {}).map(([what, number]) => `${what} ${count(number)}`).join(", ") || "0";

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
