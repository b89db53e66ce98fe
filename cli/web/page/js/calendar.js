// The next weeks of each calendar: open and closed days with reasons, and expected hits.

import { address, filtersOf, remember } from "./address.js";
import { loaded, loadedLine } from "./freshness.js";
import { get } from "./api.js";
import { dayText, heatMap } from "./charts.js";
import { badge, field, fill, h, heading, loading, name, problem, select } from "./dom.js";
import { count, day as shortDay, unitAddress } from "./format.js";

const WEEKS = [["2", "2 weeks"], ["4", "4 weeks"], ["8", "8 weeks"], ["12", "12 weeks"]];
const OLD = 600_000; // milliseconds, after which the view is marked as old
const FEW = 5; // hits of a day that are visible at first
const SUGGESTED = 200; // units that the filter suggests
const DEFAULTS = { weeks: "4", calendar: "default", unit: "", ignore: "" }; // in the address

export async function show(main, signal) {
  const filters = filtersOf(DEFAULTS);
  if (!WEEKS.some(([value]) => value === filters.weeks)) filters.weeks = DEFAULTS.weeks;
  if (filters.ignore !== "switch") filters.ignore = "";
  const place = h("div", {});
  const past = h("div", {});
  let days = null; // counts of past days; null until they are known
  const age = loadedLine();
  let shown; // the forecast that the view shows
  const chooser = h("div", { class: "field" });
  const weeks = select(WEEKS, filters.weeks, (value) => choose({ weeks: value }));
  const known = h("datalist", { id: "units" });
  const unit = h("input", { type: "search", id: "unit", list: "units", value: filters.unit, placeholder: "a part of the name", autocomplete: "off", spellcheck: "false", oninput: () => { filters.unit = unit.value.trim(); remember(filters, DEFAULTS); if (shown) draw(shown); } });
  const ignoring = h("input", { type: "checkbox", id: "unleashed", checked: filters.ignore === "switch", onchange: (event) => choose({ ignore: event.target.checked ? "switch" : "" }) });
  weeks.id = "weeks";
  fill(
    main,
    heading("Calendar"),
    h(
      "div",
      { class: "filters" },
      field("Unit", unit),
      known,
      chooser,
      field("Period", weeks),
      h("label", { class: "check", for: "unleashed" }, ignoring, " Ignore leash and halt"),
    ),
    age,
    place,
    past,
  );
  addEventListener("troop-switched", () => load(), { signal });
  let round = 0; // of loading: responses to earlier rounds are dropped

  function choose(values) {
    Object.assign(filters, values);
    remember(filters, DEFAULTS, true);
    load();
  }

  async function load() {
    const mine = ++round;
    fill(place, loading("the calendar"));
    try {
      const forecast = await get("ui/calendar", { weeks: filters.weeks, unleashed: String(filters.ignore === "switch") }, signal);
      if (mine !== round) return;
      loaded(age, new Date(), OLD);
      fill(known, [...new Set((forecast.expected ?? []).map((hit) => hit.unit))].sort().slice(0, SUGGESTED).map((one) => h("option", { value: one })));
      draw((shown = forecast));
    } catch (error) {
      if (!signal.aborted && mine === round) fill(place, problem(error, load));
    }
  }

  function draw(forecast) {
    const names = forecast.calendars.map((calendar) => calendar.calendar);
    if (!names.includes(filters.calendar)) filters.calendar = names[0];
    const pick = select(names.map((one) => [one, one]), filters.calendar, (value) => { filters.calendar = value; remember(filters, DEFAULTS, true); draw(forecast); });
    pick.id = "which";
    fill(chooser, h("label", { for: "which" }, "Calendar"), pick);
    const calendar = forecast.calendars.find((one) => one.calendar === filters.calendar);
    const wanted = filters.unit.toLowerCase();
    const hits = (forecast.expected ?? []).filter((hit) => hit.calendar === filters.calendar && hit.unit.toLowerCase().includes(wanted));
    const none = forecast.halted && !forecast.unleashed;
    fill(place, summary(forecast, calendar, hits, wanted), grid(calendar, hits, wanted ? null : days, none), assumptions(forecast));
  }

  /** Loads the counts of past days: of all calendars, because an event does not name its own. */
  async function loadPast() {
    try {
      const { value, error } = await get("ui/overview", { part: "year" }, signal);
      if (!value) throw new Error(error);
      days = value.days;
      if (shown) draw(shown);
      fill(
        past,
        h("h2", {}, "Hits of the last year"),
        heatMap(days, value.since, value.until, (day) => address("#/events", { day })),
        h("p", { class: "muted small" }, "Past days count the units of all calendars.", value.complete_since && ` Events before ${value.complete_since} are not included.`),
      );
    } catch (error) {
      if (!signal.aborted) fill(past, problem(error, loadPast));
    }
  }

  await load();
  loadPast();
}

function summary(forecast, calendar, hits, wanted) {
  const open = calendar.days.filter((one) => one.ticks > 0).length;
  const real = !forecast.unleashed;
  return [
    h("p", {}, `Open ${calendar.open} to ${calendar.close} in ${calendar.time_zone}; ${open} open days ahead.`),
    real && forecast.halted && h("p", { class: "notice" }, badge("halted", "quiet"), " No hits until someone resumes."),
    real && !forecast.halted && forecast.leashed && h("p", { class: "notice" }, badge("leashed", "info"), " Dry run: Troop would hit these instances, but hits nothing."),
    real && forecast.halted ? null : forecast.expected === null
      ? h("p", { class: "notice" }, `Hits cannot be predicted without the salt: ${forecast.not_expected}`)
      : h("p", {}, h("strong", {}, hits.length === 1 ? "1 hit" : `${count(hits.length)} hits`), wanted && [" of units with ", name(wanted), " in their name"], forecast.unleashed ? " expected without leash and halt." : forecast.leashed ? " expected without the leash." : " expected."),
  ];
}

/** The days in weeks; as a list of days that have something to say on phones, and if `none` can have a hit. */
function grid(calendar, hits, days, none) {
  const by = new Map();
  for (const hit of hits) by.set(hit.day, [...(by.get(hit.day) ?? []), hit]);
  // If weekends are open, their columns are as wide as others.
  const even = calendar.days.some((one, index) => index % 7 > 4 && !one.closed) ? " even" : "";
  const listed = none ? " listed" : "";
  return [
    h("p", { class: `only${listed} muted small` }, "Days without a hit or a closure are left out."),
    h("div", { class: `weekdays${even}${listed}`, "aria-hidden": "true" }, ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].map((one) => h("span", {}, one))),
    h("ol", { class: `days${even}${listed}` }, calendar.days.map((one) => cell(one, calendar.today, by.get(one.day) ?? [], hits.length > 0, days && (days[one.day] ?? null)))),
  ];
}

function cell(one, today, hits, any, counts) {
  const state = one.closed?.reason ?? "open";
  const past = one.day < today;
  const few = hits.slice(0, FEW);
  const others = hits.slice(FEW);
  const counted = one.day <= today && counts;
  const quiet = !counted && !few.length && !one.half_day && one.day !== today && (past || !one.closed || state === "weekend");
  return h(
    "li",
    { class: `day ${state}${past ? " past" : ""}${one.day === today ? " today" : ""}${quiet ? " quiet" : ""}`, "data-day": one.day },
    h("h2", {}, h("time", { datetime: one.day }, shortDay(one.day)), one.day === today && h("span", { class: "now" }, " today")),
    one.closed && h("p", { class: "closed", title: one.closed.detail }, state === "weekend" ? "weekend" : [h("strong", {}, state), " ", name(one.closed.detail)]),
    one.half_day && h("p", { class: "closed" }, h("strong", {}, "half day"), " ", name(one.half_day.name), `, ${one.half_day.open} to ${one.half_day.close}`),
    !one.closed && !past && one.ticks === 0 && h("p", { class: "closed" }, "closed for today"),
    counted && h("p", { class: "done" }, h("a", { href: address("#/events", { day: one.day }) }, dayText(counts))),
    any && !one.closed && one.ticks > 0 && !few.length && h("p", { class: "closed muted" }, one.day === today ? "none left today" : "none"),
    few.length > 0 && h("ul", {}, few.map(expected)),
    others.length > 0 && more(others),
  );
}

/** The rest of a day, drawn when it is opened: it can have thousands of hits. */
function more(others) {
  const list = h("ul", {});
  const open = (event) => event.target.open && !list.childElementCount && fill(list, others.map(expected));
  return h("details", { ontoggle: open }, h("summary", {}, `${count(others.length)} more`), list);
}

const expected = (hit) =>
  h(
    "li",
    { class: hit.reason === "leashed" ? "would" : "will" },
    h("time", { datetime: hit.tick }, hit.at),
    " ",
    h("a", { href: unitAddress(hit.unit), title: `${hit.instance_id ?? "an instance"} of ${hit.group ?? hit.unit}, as of now` }, name(hit.unit)),
  );

const assumptions = (forecast) => h("p", { class: "muted small" }, `Assumptions: ${forecast.assumptions.join("; ")}.`);
