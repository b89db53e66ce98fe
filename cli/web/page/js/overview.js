// The state of the deployment at a glance. Every part has its own time, and looks old when it is.

import { address } from "./address.js";
import { get } from "./api.js";
import { heatMap, trend } from "./charts.js";
import { badge, fill, h, headline, link, loading, name, problem, refreshButton, table } from "./dom.js";
import { loaded, loadedLine, stamp } from "./freshness.js";
import { clock, count, kind, moment, money, seconds, sentence, stateKind, unitAddress, eventAddress, words } from "./format.js";
import { switchTile } from "./switch.js";

const EVERY = 30_000;
const OLD = { today: 120_000, runs: 120_000, fleets: 120_000, next_tick: 120_000, health: 300_000, units: 1_200_000, ungrouped: 1_200_000 };
const OLD_YEAR = 1_200_000;
const YEAR_EVERY = 600_000;
const NAMES = { today: "Today", runs: "Runs", fleets: "Fleets", health: "Health", units: "Units", ungrouped: "Instances", next_tick: "The next tick" };
const TITLES = { ticks: "Ticks", today: "Today", units: "Units", benchmarks: "Benchmarks", ungrouped: "Outside Auto Scaling groups", health: "Health" };
const GRADE = { ok: "good", warn: "warn", fail: "bad" };
const ISO = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/;

/** A text of the API, with its times in this machine's time zone. */
const timed = (text) => text.split(ISO).map((part) => (ISO.test(part) ? moment(part) : part));

export async function show(main, signal) {
  const age = loadedLine();
  const failure = h("div", {});
  const tiles = Object.fromEntries(Object.entries(TITLES).map(([one, title]) => [one, h("section", { class: "tile", "aria-labelledby": `tile-${one}` }, h("h2", { id: `tile-${one}` }, title), h("p", { class: "muted" }, "Loading …"))]));
  const events = h("div", {});
  const year = h("div", {}, loading("the last year"));
  let timer;
  let yearAt = 0;
  fill(
    main,
    headline("Overview", age, refreshButton(refresh)),
    failure,
    h("div", { class: "tiles" }, switchTile(signal), Object.values(tiles)),
    events,
    year,
  );
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()), { signal });
  addEventListener("troop-switched", () => refresh(), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  async function refresh() {
    clearTimeout(timer);
    try {
      const state = await get("ui/overview", {}, signal);
      if (signal.aborted) return;
      fill(failure);
      draw(state);
      drawRest(state);
      loadUnits();
    } catch (error) {
      if (signal.aborted) return;
      fill(failure, problem(new Error(`This view is not current: ${sentence(error.message)}`), refresh));
      if (error.status === 401) return;
    }
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(refresh, EVERY);
    if (Date.now() - yearAt > YEAR_EVERY) await loadYear();
  }

  async function loadYear() {
    yearAt = Date.now();
    try {
      const part = await get("ui/year", {}, signal);
      if (!signal.aborted) drawYear(part);
    } catch (error) {
      yearAt = 0;
      if (!signal.aborted && !year.querySelector("svg")) fill(year, problem(error, loadYear));
    }
  }

  /** Fills a tile from parts of the state; each part that could not be read says so, with the time of its last value. */
  function tile(which, state, parts, content) {
    const section = tiles[which];
    const focused = section.contains(document.activeElement) && document.activeElement.matches("a") ? document.activeElement.getAttribute("href") : null;
    const values = Object.fromEntries(parts.map((part) => [part, state[part].value]));
    const errors = parts.filter((part) => state[part].error);
    fill(
      section,
      h("h2", { id: `tile-${which}` }, TITLES[which], h("span", { class: "age" })),
      content(values),
      errors.map((part) => h("p", { class: "wrong small" }, `${NAMES[part]} cannot be read${state[part].at ? `; as of ${clock(new Date(state[part].at))}` : ""}: ${sentence(state[part].error)}`)),
    );
    const read = parts.map((part) => state[part].at).filter(Boolean).sort();
    if (read.length) stamp(section, new Date(read[0]), Math.min(...parts.map((part) => OLD[part])));
    section.classList.toggle("unread", errors.length > 0);
    if (focused) [...section.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused)?.focus({ preventScroll: true });
  }

  function draw(state) {
    loaded(age, new Date(state.now), 90_000, "Updated");
    tile("ticks", state, ["health", "next_tick"], ({ health, next_tick: next }) => {
      const checks = (health?.checks ?? []).filter((check) => check.name.startsWith("ticks-"));
      const missing = checks.find((check) => check.name === "ticks-missing");
      return [
        h("p", { class: "large" }, missing ? (missing.status === "ok" ? badge("on time", "good") : missing.value === null ? badge("unknown", "warn") : badge("late", "bad")) : badge("unknown", "quiet")),
        checks.map((check) => h("p", { class: check.status === "fail" ? "wrong" : null }, timed(sentence(check.detail)))),
        state.next_tick.value ? h("p", {}, "Next: ", moment(next.at), next.calendar !== "default" && [" on calendar ", name(next.calendar)], ".") : !state.next_tick.error && h("p", {}, "No tick within two weeks."),
      ];
    });
    const total = ({ by_status: numbers }) => Object.values(numbers).reduce((sum, one) => sum + one, 0);
    tile("today", state, ["today"], ({ today }) => today && [
      h("p", { class: "large" }, h("strong", {}, count(total(today))), today.limited && "+", total(today) === 1 ? " event" : " events"),
      h("p", {}, Object.entries(today.by_status).map(([status, number]) => [h("a", { class: `badge ${kind(status)}`, href: address("#/events", { status, hours: "24" }) }, `${count(number)} ${words(status)}`), " "])),
      !today.events.length && h("p", { class: "muted" }, "No termination so far."),
    ]);
    const today = state.today.value?.events ?? [];
    fill(events, today.length > 0 && [h("h2", {}, "Latest events today"), table("Latest events today", EVENTS, today)]);
  }

  /** Apart from the others: in a large account, units take many requests. */
  async function loadUnits() {
    try {
      const parts = await get("ui/units", {}, signal);
      if (!signal.aborted) drawUnits(parts);
    } catch {
      // the view reports it: its other requests fail as well
    }
  }

  function drawUnits(state) {
    tile("units", state, ["units"], ({ units }) => units && [
      h("ul", { class: "states" }, Object.entries(units.by_state).map(([one, number]) => h("li", {}, h("a", { href: address("#/units", { show: one }) }, h("strong", {}, count(number)), " ", h("span", { class: `badge ${stateKind(one)}` }, one))))),
      !Object.keys(units.by_state).length && h("p", { class: "muted" }, "There are no Auto Scaling groups."),
      units.limited && h("p", { class: "muted small" }, `Of the first ${count(units.limited)} groups.`),
    ]);
    tile("ungrouped", state, ["ungrouped"], ({ ungrouped: found }) => found && [
      h("p", { class: "large" }, h("strong", {}, count(found.count)), found.limited && "+", found.count === 1 ? " instance" : " instances"),
      h("p", { class: "muted" }, "Chaos never selects instances outside groups."),
      found.count > 0 && unfolding(found),
    ]);
  }

  function drawRest(state) {
    tile("benchmarks", state, ["runs", "fleets"], ({ runs, fleets }) => {
      const all = [...(runs ?? []).map((one) => [link(`#/runs/${encodeURIComponent(one.run)}`, name(one.name)), one]), ...(fleets ?? []).map((one) => [["fleet ", name(one.name)], one])];
      return [
        runs && fleets && h("p", { class: "large" }, h("strong", {}, count(runs.length)), runs.length === 1 ? " run, " : " runs, ", h("strong", {}, count(fleets.length)), fleets.length === 1 ? " fleet" : " fleets"),
        all.length > 0 && h("ul", { class: "states" }, all.map(([title, one]) => h("li", {}, title, " ", badge(words(one.status), kind(one.status)), " ", one.cost_so_far ? [money(one.cost_so_far.amount, one.cost_so_far.currency), " so far"] : h("span", { class: "muted" }, "cost unknown")))),
      ];
    });
    tile("health", state, ["health"], ({ health }) => health && [
      h("p", { class: "large" }, badge(health.status, GRADE[health.status])),
      health.checks.filter((check) => check.status !== "ok").map((check) => h("p", {}, badge(check.name, GRADE[check.status]), " ", timed(sentence(check.detail)), check.todo && h("small", { class: "source" }, check.todo))),
    ]);
  }

  function drawYear({ value, at, error }) {
    const late = error && h("p", { class: "problem" }, `The last year cannot be read: ${sentence(error)}`);
    if (!value) return fill(year, late);
    const limited = value.complete_since && h("p", { class: "muted small" }, `Events before ${value.complete_since} are not included: there are more than the page reads.`);
    fill(
      year,
      late,
      h("h2", {}, "Recovery by week", h("span", { class: "age" })),
      value.weeks.length ? trend(value.weeks, value.until) : h("p", { class: "muted" }, "No recovery in the last year."),
      h("h2", {}, "Terminations of the last year"),
      heatMap(value.days, value.since, value.until, (day) => address("#/events", { day })),
      limited,
    );
    stamp(year, new Date(at), OLD_YEAR);
    year.classList.toggle("unread", Boolean(error));
  }

  await refresh();
}

let unfolded = false; // the list of instances stays open when the tile is drawn again

/** The list of instances, which a click unfolds. */
function unfolding({ count: all, instances }) {
  const rows = instances.map((one) => h("li", {}, one.name && [name(one.name), " "], h("code", {}, one.instance_id), h("small", { class: "source" }, [one.type, one.zone, one.state].filter(Boolean).join(", "))));
  const summary = all > rows.length ? `The first ${count(rows.length)}` : all === 1 ? "The instance" : `All ${count(all)}`;
  return h("details", { open: unfolded, ontoggle: (event) => (unfolded = event.target.open) }, h("summary", {}, summary), h("ul", { class: "instances" }, rows));
}

const EVENTS = [
  { label: "Time", cell: (event) => link(eventAddress(event.event_id), moment(event.at)) },
  { label: "Unit", cell: (event) => link(unitAddress(event.unit), name(event.unit)) },
  { label: "Status", cell: (event) => badge(words(event.status), kind(event.status)) },
  { label: "Recovery time", number: true, cell: (event) => seconds(event.recovery_seconds) },
  { label: "Detail", wide: true, cell: (event) => event.detail || null },
];
