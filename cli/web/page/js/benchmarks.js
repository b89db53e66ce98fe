// All benchmarks with their last run, figure, schedule and cost; then what runs now.

import { filtersOf, remember } from "./address.js";
import { get } from "./api.js";
import { badge, field, fill, h, headline, link, loading, name, problem, refreshButton, select, table } from "./dom.js";
import { fleets } from "./fleets.js";
import { loaded, loadedLine } from "./freshness.js";
import { cost, count, kind, moment, share, words } from "./format.js";
import { benchmarkAddress, changeText, elapsed, figureText, monthCost, monthName, plan, primary, runAddress, startAddress, started } from "./run_list.js";

const OLD = 600_000; // milliseconds, after which the list is marked as old
const DEFAULTS = { q: "", show: "all" }; // in the address
const GROUPS = [["all", "All"], ["good", "Succeeded last"], ["bad", "Did not succeed last"], ["open", "Running"], ["planned", "With a schedule"]];

const PICKS = {
  all: () => true,
  good: ({ last }) => last?.status === "SUCCEEDED",
  bad: ({ last }) => Boolean(last?.ended_at) && last.status !== "SUCCEEDED",
  open: ({ last }) => Boolean(last) && !last.ended_at,
  planned: ({ schedules }) => schedules.length > 0,
};

const OPEN = [
  { label: "Run", cell: started },
  { label: "Benchmark", cell: (run) => link(benchmarkAddress(run.name), name(run.name)) },
  { label: "Size", cell: (run) => run.size && name(run.size) },
  { label: "Status", cell: (run) => badge(words(run.status), kind(run.status)) },
  { label: "Running for", number: true, cell: elapsed },
  { label: "Nodes", number: true, cell: (run) => count(run.nodes) },
  { label: "Cost", number: true, cell: cost },
];

const columns = (month, figures) => [
  { label: "Benchmark", cell: (one) => link(benchmarkAddress(one.name), name(one.name)) },
  { label: "Last run", cell: ({ last }) => last && started(last) },
  { label: "Outcome", cell: ({ last }) => last && h("a", { class: `badge ${kind(last.status)}`, href: runAddress(last.run) }, words(last.status)) },
  { label: "Throughput", number: true, cell: (one) => figureNow(figures, one.name) },
  { label: "Schedule", cell: (one) => one.schedules.length > 0 && one.schedules.map(schedule) },
  { label: `Cost in ${monthName(month)}`, number: true, cell: (one) => monthCost(one.month_cost) },
];

/** The main figure of the last run, and its change against the run before; null without one. */
function figureNow(figures, benchmark) {
  if (figures === undefined) return h("span", { class: "loading" }, "…");
  const figure = figures?.[benchmark];
  if (!figure) return null;
  const change = changeText(figure.now, figure.before);
  return [figureText(figure.now, "throughput"), change && h("small", { class: "source", title: figure.measurement }, change === "no change" ? change : `${change} against the run before`)];
}

const schedule = (one) => h("p", {}, plan(one), one.next_at && h("small", { class: "source" }, "next ", moment(one.next_at)));

export async function show(main, signal) {
  let filters = filtersOf(DEFAULTS);
  if (!(filters.show in PICKS)) filters.show = DEFAULTS.show;
  let answer;
  let figures; // by benchmark; undefined until they are read, null if they cannot be read
  let round = 0; // of loading: responses to earlier rounds are dropped
  const standing = fleets(signal);
  const [list, open, notes] = [h("div", {}), h("div", {}), h("div", {})];
  const summary = h("p", { class: "muted", role: "status" });
  const age = loadedLine();
  const search = h("input", { type: "search", id: "search", value: filters.q, placeholder: "benchmark, person, schedule", autocomplete: "off", spellcheck: "false", oninput: () => change({ q: search.value }) });
  const form = h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    field("Search", search, null, true),
    field("Show", select(GROUPS, filters.show, (value) => change({ show: value }, true))));
  fill(
    main,
    headline("Benchmarks", h("div", { class: "actions" }, primary(startAddress(), "Start a benchmark …"), refreshButton(() => load(true)))),
    form, h("div", { class: "sides" }, summary, age), notes, list, open, standing.element,
  );
  form.hidden = true;

  function change(some, step = false) {
    filters = { ...filters, ...some };
    remember(filters, DEFAULTS, step);
    draw();
  }

  const matches = (one) => {
    const text = [one.name, one.last?.requested_by, one.last?.size, ...one.schedules.flatMap((other) => [other.name, other.expression])].join(" ").toLowerCase();
    return PICKS[filters.show](one) && filters.q.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };

  function draw() {
    const { benchmarks, month, limited } = answer;
    const shown = benchmarks.filter(matches);
    form.hidden = !benchmarks.length;
    fill(summary, benchmarks.length ? share(shown.length, benchmarks.length, "benchmark") : "Nothing has run yet.", limited && ` in the newest ${count(limited)} runs`);
    fill(list, shown.length ? table("Benchmarks", columns(month, figures), shown) : benchmarks.length ? h("p", { class: "muted" }, "No benchmark matches.") : first());
    fill(open, answer.open.length > 0 && [h("h2", {}, "Running now"), table("Runs that have not ended", OPEN, answer.open)]);
    fill(notes, answer.schedules_error && h("p", { class: "old" }, `Schedules cannot be read: ${answer.schedules_error}`), answer.off && h("p", { class: "old" }, "All schedules are switched off: ", h("code", {}, "troop schedules on"), " switches them on."));
  }

  async function load(fresh = false) {
    const mine = ++round;
    standing.clear(); // fleets load after benchmarks: an error that concerns both appears once
    if (!answer) fill(list, loading("the benchmarks"));
    try {
      const response = await get("ui/benchmarks", { fresh: fresh || "" }, signal);
      if (mine !== round) return;
      [answer, figures] = [response, undefined];
      loaded(age, new Date(), OLD);
      standing.load();
      draw();
      figures = answer.benchmarks.length ? (await get("ui/benchmarks/figures", {}, signal).catch(() => ({ figures: null }))).figures : {};
      if (mine === round && !signal.aborted) draw();
    } catch (error) {
      if (signal.aborted || mine !== round) return;
      fill(list, problem(error, () => load(true)));
    }
  }
  await load();
}

/** What somebody sees who has never run a benchmark. */
const first = () => h("div", { class: "why" }, h("h2", {}, "Your first benchmark"), h("p", {}, "Choose one of the catalogue, or your own files. You see what a run costs before it starts."), h("p", {}, "In a terminal, ", h("code", {}, "troop bench new NAME"), " writes one that runs as it is."));
