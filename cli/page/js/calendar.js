// The next weeks: which days are open, which are not and why, and what is to be expected on them.

import { get } from "./api.js";
import { badge, fill, h, heading, loading, name, problem, select } from "./dom.js";
import { count, day as shortDay, unitAddress } from "./format.js";

const WEEKS = [["2", "2 weeks"], ["4", "4 weeks"], ["8", "8 weeks"], ["12", "12 weeks"]];
const FEW = 5; // terminations of a day that are shown at once
const kept = { weeks: "4", calendar: null, unleashed: false };

export async function show(main, signal) {
  const place = h("div", {});
  const chooser = h("div", { class: "field" });
  const weeks = select(WEEKS, kept.weeks, (value) => { kept.weeks = value; load(); });
  const unleashed = h("input", { type: "checkbox", id: "unleashed", checked: kept.unleashed, onchange: (event) => { kept.unleashed = event.target.checked; load(); } });
  weeks.id = "weeks";
  fill(
    main,
    heading("Calendar"),
    h(
      "div",
      { class: "filters" },
      chooser,
      h("div", { class: "field" }, h("label", { for: "weeks" }, "Ahead"), weeks),
      h("label", { class: "check", for: "unleashed" }, unleashed, " As if neither leashed nor halted"),
    ),
    place,
  );
  addEventListener("troop-switched", () => load(), { signal });
  let asked = 0;

  async function load() {
    const mine = ++asked;
    fill(place, loading("the calendar"));
    try {
      const told = await get("ui/calendar", { weeks: kept.weeks, unleashed: String(kept.unleashed) }, signal);
      if (mine === asked) draw(told);
    } catch (error) {
      if (!signal.aborted && mine === asked) fill(place, problem(error, load));
    }
  }

  function draw(told) {
    const names = told.calendars.map((calendar) => calendar.calendar);
    if (!names.includes(kept.calendar)) kept.calendar = names.includes("default") ? "default" : names[0];
    const choose = select(names.map((one) => [one, one]), kept.calendar, (value) => { kept.calendar = value; draw(told); });
    choose.id = "which";
    fill(chooser, h("label", { for: "which" }, "Calendar"), choose);
    const calendar = told.calendars.find((one) => one.calendar === kept.calendar);
    const hits = (told.expected ?? []).filter((hit) => hit.calendar === kept.calendar);
    fill(place, summary(told, calendar, hits), grid(calendar, hits), taken(told));
  }

  await load();
}

function summary(told, calendar, hits) {
  const open = calendar.days.filter((one) => one.ticks > 0).length;
  const real = !told.unleashed;
  return [
    h("p", {}, `Open ${calendar.open} to ${calendar.close} in ${calendar.time_zone}; ${open} open days ahead.`),
    real && told.halted && h("p", { class: "notice" }, badge("halted", "bad"), " Nothing is rolled and nothing is to be expected until somebody resumes."),
    real && !told.halted && told.leashed && h("p", { class: "notice" }, badge("leashed", "info"), " Nothing is terminated: these are the instances that would be."),
    real && told.halted ? null : told.expected === null
      ? h("p", { class: "notice" }, `What is to be expected cannot be told without the salt of the rolls: ${told.not_expected}`)
      : h("p", {}, h("strong", {}, hits.length === 1 ? "1 termination" : `${count(hits.length)} terminations`), told.unleashed ? " to be expected, were it neither leashed nor halted." : told.leashed ? " to be expected, were it not leashed." : " to be expected."),
  ];
}

function grid(calendar, hits) {
  const by = new Map();
  for (const hit of hits) by.set(hit.day, [...(by.get(hit.day) ?? []), hit]);
  // Where people work on weekends these days are as wide as others.
  const even = calendar.days.some((one, index) => index % 7 > 4 && !one.closed) ? " even" : "";
  return [
    h("div", { class: `weekdays${even}`, "aria-hidden": "true" }, ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].map((one) => h("span", {}, one))),
    h("ol", { class: `days${even}` }, calendar.days.map((one) => cell(one, calendar.today, by.get(one.day) ?? [], hits.length > 0))),
  ];
}

function cell(one, today, hits, any) {
  const state = one.closed?.reason ?? "open";
  const past = one.day < today;
  const few = hits.slice(0, FEW);
  const others = hits.slice(FEW);
  return h(
    "li",
    { class: `day ${state}${past ? " past" : ""}${one.day === today ? " today" : ""}`, "data-day": one.day },
    h("h2", {}, h("time", { datetime: one.day }, shortDay(one.day)), one.day === today && h("span", { class: "now" }, " today")),
    one.closed && h("p", { class: "closed", title: one.closed.detail }, state === "weekend" ? "weekend" : [h("strong", {}, state), " ", name(one.closed.detail)]),
    !one.closed && !past && one.ticks === 0 && h("p", { class: "closed" }, "over for today"),
    any && !one.closed && one.ticks > 0 && !few.length && h("p", { class: "closed muted" }, one.day === today ? "no more today" : "none"),
    few.length > 0 && h("ul", {}, few.map(expected)),
    others.length > 0 && more(others),
  );
}

/** The rest of a day: there can be thousands, of which most are never looked at. */
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
    h("a", { href: unitAddress(hit.unit), title: `${hit.instance_id ?? "an instance"} of ${hit.group ?? hit.unit}, as things are now` }, name(hit.unit)),
  );

const taken = (told) => h("p", { class: "muted small" }, `Taken for granted: ${told.assumptions.join("; ")}.`);
