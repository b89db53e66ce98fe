// One benchmark: its figure over time, its runs, its schedule and what it costs.

import { filtersOf, remember } from "./address.js";
import { get } from "./api.js";
import { chart } from "./charts.js";
import { badge, field, fill, h, heading, headline, link, loading, name, problem, refreshButton, select, table } from "./dom.js";
import { loaded, loadedLine } from "./freshness.js";
import { clock, cost, count, day, kind, moment, money, share, short, words } from "./format.js";
import { changeText, comparing, elapsed, figureText, monthCost, monthName, plan, primary, report, runAddress, startAddress, started } from "./run_list.js";

const OLD = 600_000; // milliseconds, after which the view is marked as old
const LEAST = 5; // values from which there is a chart
const SHOWN = 100; // rows that are visible at first
const HEIGHT = 240;
const DEFAULTS = { figure: "throughput", measurement: "", outcome: "all", size: "all" }; // in the address
const OUTCOMES = [["all", "All"], ["good", "Succeeded"], ["bad", "Did not succeed"], ["open", "Running"]];
const PICKS = { all: () => true, good: (run) => run.status === "SUCCEEDED", bad: (run) => run.ended_at && run.status !== "SUCCEEDED", open: (run) => !run.ended_at };
const AS_WRITTEN = "-"; // no size has this name
const FIGURES = { throughput: "Throughput", mean: "Mean time", cost: "Cost of a million operations", errors: "Errors" };
const title = (figure) => FIGURES[figure] ?? figure;

export async function show(main, signal, benchmark) {
  let filters = filtersOf(DEFAULTS);
  let answer;
  let most = SHOWN;
  let round = 0; // of loading: responses to earlier rounds are dropped
  const pair = comparing();
  const [panel, beside, bar, list, notes] = [h("section", { class: "panel", "aria-label": "Figure over time" }), h("div", { class: "beside" }), h("div", { class: "filters" }), h("div", { class: "dense runs" }), h("div", {})];
  const summary = h("p", { class: "muted", role: "status" });
  const age = loadedLine();
  fill(main, heading(name(benchmark)), loading("the benchmark"));

  async function load(first = false, fresh = false) {
    const mine = ++round;
    const response = await get("ui/benchmark", { name: benchmark, figure: filters.figure, measurement: filters.measurement, fresh: fresh || "" }, signal);
    if (mine !== round || signal.aborted) return;
    answer = response;
    if (first) frame();
    loaded(age, new Date(), OLD);
    draw();
  }

  /** Loads again; an error takes the place of the figure, and the rest stays. */
  function reload(fresh = false) {
    return load(false, fresh).catch((error) => signal.aborted || fill(panel, problem(error, () => reload(true))));
  }

  function frame() {
    fill(
      main,
      h("p", { class: "back" }, link("#/benchmarks", "← Benchmarks")),
      headline(name(benchmark), h("div", { class: "actions" }, primary(startAddress(benchmark), "Start …"), refreshButton(() => reload(true)))),
      h("div", { class: "sides" }, summary, age), notes,
      h("div", { class: "split" }, panel, beside),
      h("h2", {}, "Runs"), bar, list,
    );
  }

  function change(some, again = false) {
    filters = { ...filters, ...some };
    remember(filters, DEFAULTS, true);
    if (again) reload();
    else drawRuns();
  }

  function draw() {
    const { runs, limited, unrecorded, beyond } = answer;
    fill(summary, share(runs.length, runs.length, "run"), limited && ` in the newest ${count(limited)} of all benchmarks`);
    fill(notes,
      unrecorded > 0 && h("p", { class: "muted" }, `The figure leaves out ${share(unrecorded, unrecorded, "run")} with results: a run is recorded with its report.`),
      beyond > 0 && h("p", { class: "muted" }, `The figure leaves out the oldest ${share(beyond, beyond, "run")} with results.`));
    fill(panel, figure());
    fill(beside, schedules(), month());
    drawRuns();
  }

  function figure() {
    const { values, measurements, measurement, figures, against } = answer;
    const measured = answer.runs.some((run) => run.status === "SUCCEEDED" || run.status === "PARTIAL");
    const [last, before] = [values.at(-1), values.at(-2)];
    const difference = last && before ? changeText(judged(last, against), judged(before, against)) : null;
    const shown = last && figureText(last.value, answer.figure);
    return [
      measured && h("div", { class: "filters" },
        field("Figure", select(figures.map(([value]) => [value, title(value)]), answer.figure, (value) => change({ figure: value }, true))),
        measurements.length > 1 && field("Of", select(measurements.map((one) => [one, one]), measurement, (value) => change({ measurement: value }, true)), null, true)),
      !last && h("p", { class: "muted" }, measured ? `No run has ${title(answer.figure).toLowerCase()}.` : "No run has results yet."),
      last && h("p", { class: "large" }, h("strong", {}, against ? [judgedText(judged(last, against), answer), " of ", name(against)] : shown), against && [", ", shown], " ", difference && h("span", { class: "muted" }, difference === "no change" ? "as in the run before" : `${difference} against the run before`)),
      values.length >= LEAST && h("p", { class: "muted small" }, range(values.slice(0, -1), answer)),
      answer.noise !== null && h("p", { class: "muted small" }, `Noise: without a change, runs differ by about ${short(answer.noise * 100)} %${answer.against ? " in their ratio to the baseline" : ""}.`),
      last && measurements.length === 1 && h("p", { class: "muted small" }, name(measurement)),
      last && answer.changes.length > 0 && h("ul", { class: "plain" }, [...answer.changes].reverse().map(changed)),
      last && (values.length < LEAST ? h("p", { class: "muted" }, `${share(values.length, values.length, "run")} with this figure; a chart appears from ${LEAST} on.`) : curve(answer)),
    ];
  }

  function schedules() {
    const { schedules: every, off, schedules_error: error } = answer;
    return h("section", { class: "tile", "aria-label": "Schedule" }, h("h2", {}, "Schedule"),
      error ? h("p", {}, error) : every.length ? every.map((one) => [
        h("p", { class: "large" }, plan(one), one.size && [" · ", name(one.size)]),
        h("p", {}, one.next_at ? ["Next start ", moment(one.next_at)] : off ? "All schedules are switched off." : "No start is ahead."),
        one.last_refusal && h("p", { class: "wrong" }, "Last start refused: ", one.last_refusal),
        h("p", { class: "muted small" }, `${money(one.expected, one.currency)} each run, at most ${money(one.most, one.currency)}`),
      ]) : [h("p", {}, "None."), h("p", { class: "muted small" }, "Create one with ", h("code", {}, "troop bench schedule"), ".")]);
  }

  function month() {
    const { month_cost: bill, month: now } = answer;
    return h("section", { class: "tile", "aria-label": "Cost of the month" }, h("h2", {}, `Cost in ${monthName(now)}`),
      h("p", { class: "large" }, bill ? h("strong", {}, monthCost(bill)) : "Nothing ran."),
      bill && h("p", { class: "muted small" }, share(bill.runs, bill.runs, "run")));
  }

  function drawRuns() {
    const sizes = [...new Set(answer.runs.map((run) => run.size ?? AS_WRITTEN))];
    const picked = answer.runs.filter((run) => (PICKS[filters.outcome] ?? PICKS.all)(run) && (filters.size === "all" || filters.size === (run.size ?? AS_WRITTEN)));
    const values = new Map(answer.values.map((one) => [one.run, one.value]));
    bar.hidden = !answer.runs.length;
    if (!bar.contains(document.activeElement)) {
      fill(bar,
        field("Outcome", select(OUTCOMES, filters.outcome, (value) => change({ outcome: value }))),
        sizes.length > 1 && field("Size", select([["all", "All"], ...sizes.map((one) => [one, one === AS_WRITTEN ? "as in the file" : one])], filters.size, (value) => change({ size: value }))),
        pair.element);
    }
    const columns = [
      { label: "Started", cell: started },
      { label: "Size", cell: (run) => run.size && name(run.size) },
      { label: "Outcome", cell: (run) => [badge(words(run.status), kind(run.status)), run.reason && h("small", { class: "source" }, name(run.reason))], wide: true },
      { label: title(answer.figure), number: true, cell: (run) => figureText(values.get(run.run), answer.figure) },
      { label: "Duration", number: true, cell: elapsed },
      { label: "Nodes", number: true, cell: (run) => count(run.nodes) },
      { label: "Cost", number: true, cell: cost },
      { label: "Report", cell: (run) => (run.ended_at ? report(run.run) : null) },
      pair.column,
    ].filter((column) => column.label !== "Size" || sizes.some((one) => one !== AS_WRITTEN));
    fill(list,
      picked.length ? table("Runs, newest first", columns, picked.slice(0, most)) : h("p", { class: "muted" }, answer.runs.length ? "No run matches." : "Nothing has run yet."),
      picked.length > most && h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => { most += SHOWN; drawRuns(); } }, "Show more")));
  }

  await load(true);
}

const when = (text) => `${day(text.slice(0, 10))}, ${clock(new Date(text))}`;

/** The range of the values of earlier runs: a last value inside it can be chance. */
function range(values, { figure, against }) {
  const every = values.map((one) => judged(one, against));
  return `The ${count(values.length)} runs before had ${judgedText(Math.min(...every), { figure, against })} to ${judgedText(Math.max(...every), { figure, against })}.`;
}

/** What runs are judged by: with a baseline the ratio to it, because hours and nodes differ from run to run. */
function judged(one, against) {
  return against ? one.ratio : one.value;
}

function judgedText(number, { figure, against }) {
  return against ? number.toFixed(3) : figureText(number, figure);
}

/** A change point: its levels, and what else changed there. */
function changed(one) {
  return h("li", {},
    h("strong", { class: one.is_worse ? "wrong" : null }, one.text), ` from ${one.before} to ${one.after} since `, link(runAddress(one.run), one.run),
    !one.lasts && ", made up later",
    h("small", { class: "source" }, one.beside.length ? `Changed there: ${one.beside.map(name).join("; ")}` : "Nothing else on record changed there."));
}

/** The chart of a figure: a point for each run, from the lowest value to the highest; with a baseline, its ratio. */
function curve({ figure, unit, values, measurement, against, changes }) {
  const texts = (one) => judgedText(one, { figure, against });
  const [first, last] = [values[0], values.at(-1)];
  const every = values.map((one) => judged(one, against));
  const [low, high] = [Math.min(...every), Math.max(...every)];
  const about = against ? `${title(figure)}, divided by that of the baseline ${against},` : title(figure);
  const text = `${about} of ${count(values.length)} runs of ${measurement}: from ${texts(low)} to ${texts(high)}, last ${texts(judged(last, against))}, ${count(changes.length)} ${changes.length === 1 ? "change point" : "change points"}`;
  const air = (high - low || high || 1) * 0.1;
  const ends = [0, ...changes.map((one) => one.index), values.length];
  const levels = ends.slice(0, -1).flatMap((from, n) => {
    const level = n ? changes[n - 1].levels[1] : changes[0]?.levels[0];
    return [[Date.parse(values[from].at), level], [Date.parse(values[Math.min(ends[n + 1], values.length - 1)].at), level], [null, null]];
  });
  const marks = () => ({ silent: true, symbol: "none", data: changes.map((one) => ({ xAxis: Date.parse(values[one.index].at), lineStyle: { color: colour(one.is_worse ? "bad" : "good"), width: 1.5, type: "solid" }, label: { show: false } })) });
  return [against && h("p", { class: "muted small" }, `The chart shows ratios to the baseline, ${against}.`), chart(text, HEIGHT, () => ({
    useUTC: true,
    xAxis: { ...axis(""), type: "time", min: Date.parse(first.at), max: Date.parse(last.at), splitNumber: 4, splitLine: { show: false }, axisLabel: { color: colour("soft"), hideOverlap: true, alignMinLabel: "left", alignMaxLabel: "right", showMinLabel: true, showMaxLabel: true, formatter: (at) => day(new Date(at).toISOString().slice(0, 10)) } },
    yAxis: { ...axis(""), type: "value", scale: true, min: Math.max(0, low - air), max: high + air, splitNumber: 4, axisLabel: { color: colour("soft"), showMinLabel: false, showMaxLabel: false, formatter: texts } },
    series: [
      lineSeries({ name: unit ?? "", style: { colour: 0, dash: 0, symbol: 0 } }, values.map((one) => ({ value: [Date.parse(one.at), judged(one, against)], name: `${when(one.at)}: ${against ? `${texts(one.ratio)}, ` : ""}${figureText(one.value, figure)}` })), { showSymbol: true, symbolSize: values.length > 100 ? 4 : 8 }),
      ...(changes.length ? [lineSeries({ name: "", style: { colour: 0, dash: 0, symbol: 0 } }, levels, { silent: true, lineStyle: { width: 7, color: colour("s1"), opacity: 0.3 }, markLine: marks() })] : []),
    ],
  }))];
}
