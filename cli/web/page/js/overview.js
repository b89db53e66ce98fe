// The state of the deployment by urgency: what needs a person, then today, next, and cost. Every part is read by itself,
// has its own time, and looks old when it is.

import { address } from "./address.js";
import { change, get } from "./api.js";
import { ENOUGH, trend } from "./charts.js";
import { ask, once } from "./dialogs.js";
import { badge, fill, flash, h, headline, kept, link, name, problem, refreshButton, skeleton, table } from "./dom.js";
import { ending, recoveredAfter, verdictOf } from "./event_words.js";
import { findings } from "./fleets.js";
import { ago, loaded, loadedLine, stamp } from "./freshness.js";
import { clock, count, day as shortDay, eventAddress, hour, kind, moment, money, sentence, soon, stateKind, timed, unitAddress, unitOf, words } from "./format.js";
import { awaitsVerdict, inFlight, recoversFrom } from "./stages.js";
import { SEVERITY } from "./risks.js";
import { itself, switchTile } from "./switch.js";

const EVERY = 30_000;
const OLD = { today: 120_000, benchmarks: 120_000, tick: 120_000, health: 300_000, ahead: 600_000, units: 1_200_000, risks: 7_200_000, year: 1_200_000 };
const NAMES = { today: "Today", benchmarks: "The cost", tick: "The next tick", health: "The health", ahead: "The forecast", units: "The units", risks: "The risks", year: "The last year" };
// Reads that can be slow follow each other: a browser has few connections, and one must be left to halt.
const [QUICK, SLOW] = [["today", "tick", "benchmarks", "health"], ["units", "ahead", "risks", "year"]];
const TITLES = { today: "Today", next: "Next", cost: "Cost", units: "Units", risks: "Risks" };
const GRADE = { ok: "good", warn: "warn", fail: "bad" };
const FEW = 4; // expected hits that are visible

const REPEATS = 10_000; // milliseconds for which the API can repeat what its checks have found, with a margin
const returned = { at: 0 }; // when this page last returned a unit to chaos

const NOT_READ = () => h("p", { class: "muted" }, "Not read yet.");

export async function show(main, signal) {
  const age = loadedLine();
  const failure = h("div", {});
  const state = Object.fromEntries([...QUICK, ...SLOW].map((part) => [part, { value: null, at: null, error: null, pending: true }]));
  const urgent = h("section", { class: "urgent", "aria-label": "What needs a person" });
  const tick = h("div", {});
  const tiles = Object.fromEntries(Object.keys(TITLES).map((which) => [which, h("section", { class: "tile", "aria-labelledby": `tile-${which}` })]));
  const events = h("div", {});
  const lately = h("div", {});
  const wide = [tiles.units, tiles.risks];
  let timer;
  let round = 0;
  for (const one of wide) one.classList.add("line");
  fill(
    main,
    headline("Overview", age, refreshButton(refresh)),
    failure,
    urgent,
    h("div", { class: "tiles four" }, switchTile(signal, tick), tiles.today, tiles.next, tiles.cost),
    h("div", { class: "tiles lines" }, wide),
    events,
    lately,
  );
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()), { signal });
  addEventListener("troop-switched", () => refresh(), { signal });
  addEventListener("troop-switch-read", () => kept(urgent, drawUrgent), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  async function refresh() {
    clearTimeout(timer);
    const mine = ++round;
    let lost = null; // why this command does not answer
    const read = async (part) => {
      if (signal.aborted || mine !== round || lost) return;
      try {
        const document = await get("ui/overview", { part }, signal);
        if (signal.aborted) return;
        state[part] = document;
        if (part === "today") loaded(age, new Date(document.now), 90_000, "Updated");
      } catch (error) {
        if (signal.aborted) return;
        lost ??= error;
        state[part].pending = false;
      }
      draw(part);
    };
    const slowly = async () => {
      for (const part of SLOW) await read(part);
    };
    await Promise.all([...QUICK.map(read), slowly()]);
    if (signal.aborted || mine !== round) return;
    fill(failure, lost && problem(new Error(`This view is not current: ${sentence(lost.message)}`), refresh));
    if (lost) {
      for (const part of Object.values(state)) part.pending = false;
      drawAll();
    }
    if (!document.hidden && lost?.status !== 401) timer = setTimeout(refresh, EVERY);
  }

  function drawAll() {
    for (const part of Object.keys(state)) draw(part);
  }

  function draw(part) {
    for (const [parts, place, redraw] of places) if (parts.includes(part)) kept(place, redraw);
  }

  /** Why parts cannot be read, each with the time of its last value. */
  const errors = (parts) => parts.filter((part) => state[part].error).map((part) => h("p", { class: "wrong small" }, `${NAMES[part]} cannot be read${state[part].at ? `; as of ${clock(new Date(state[part].at))}` : ""}: ${sentence(state[part].error)}`));

  /** Marks an element by the age of its parts. */
  function mark(element, parts) {
    const read = parts.map((part) => state[part].at).filter(Boolean).sort();
    if (read.length) stamp(element, new Date(read[0]), Math.min(...parts.map((part) => OLD[part])));
    element.classList.toggle("unread", parts.some((part) => state[part].error));
    element.setAttribute("aria-busy", String(parts.every((part) => state[part].pending)));
  }

  /** Fills a tile from parts of the state: with a skeleton of its size until the first is there. */
  function tile(which, parts, content, lines = 3) {
    const unread = parts.every((part) => !state[part].at && !state[part].error);
    const waiting = parts.some((part) => state[part].pending);
    fill(tiles[which], h("h2", { id: `tile-${which}` }, TITLES[which], h("span", { class: "age" })), !unread ? content() : waiting ? skeleton(lines) : NOT_READ(), errors(parts));
    mark(tiles[which], parts);
  }

  const places = [
    [["health", "units", "benchmarks"], urgent, drawUrgent],
    [["tick"], tick, drawTick],
    [["today"], tiles.today, () => tile("today", ["today"], () => todayContent(state.today))],
    [["ahead", "units"], tiles.next, () => tile("next", ["ahead"], () => nextContent(state.ahead, state.units.value?.odds))],
    [["benchmarks"], tiles.cost, () => tile("cost", ["benchmarks"], () => costContent(state.benchmarks.value))],
    [["units"], tiles.units, () => tile("units", ["units"], () => unitsContent(state.units.value), 1)],
    [["risks"], tiles.risks, () => tile("risks", ["risks"], () => risksContent(state.risks.value), 1)],
    [["today"], events, drawEvents],
    [["year"], lately, drawLately],
  ];

  function drawEvents() {
    const list = state.today.value?.events ?? [];
    fill(events, list.length > 0 && [h("h2", {}, "Latest events today"), table("Latest events today", columns(Date.parse(state.today.now)), list)]);
  }

  function drawTick() {
    const { value: next, at, error, pending } = state.tick;
    fill(
      tick,
      error ? errors(["tick"]) : next ? h("p", {}, "Next tick: ", soon(next.at), next.calendar !== "default" && [" on calendar ", name(next.calendar)], ".") : at ? h("p", {}, "No tick within two weeks.") : pending ? skeleton(1) : h("p", { class: "muted" }, "The next tick is not known."),
    );
  }

  function drawUrgent() {
    const { health, units } = state;
    const lost = units.value?.unrecovered ?? [];
    const weakened = units.value?.returned ?? [];
    const halt = itself();
    const bad = units.value?.malformed ?? [];
    const isOutdated = health.at && Date.parse(health.at) < returned.at + REPEATS; // what the checks found of units
    const shown = [...(lost.length || isOutdated ? ["units-unrecovered", "units-broken"] : []), ...(halt !== undefined ? ["halted-itself"] : [])];
    const found = (health.value?.checks ?? []).filter((check) => check.status !== "ok" && !shown.includes(check.name));
    const rows = [
      ...found.map((check) => [check.name.startsWith("ticks-") && check.status === "fail" ? 0 : check.status === "fail" ? 2 : 3, () => finding(check)]),
      ...(halt ? [[-1, () => halted(halt)]] : []),
      ...lost.map((unit) => [1, () => left(unit, Date.parse(units.now), putBack)]),
      ...weakened.map((unit) => [3, () => weak(unit)]),
      ...bad.map((unit) => [4, () => malformed(unit)]),
      ...(state.benchmarks.value?.fleets ?? []).flatMap((fleet) => findings(fleet, true)).map((item) => [2, () => item]),
    ].sort(([one], [other]) => one - other);
    const waiting = health.value === null && !health.error && health.pending;
    fill(
      urgent,
      rows.length > 0 && [h("h2", {}, "Needs a person", h("span", { class: "age" })), h("ul", {}, rows.map(([, row]) => row()))],
      units.value?.hidden > 0 && h("p", { class: "muted small" }, `${count(units.value.hidden)} more units need a person: `, link("#/units", "all units"), "."),
      waiting && !rows.length && skeleton(1),
      health.value && !rows.length && h("p", { class: "fine" }, badge("healthy", "good"), ` All ${count(health.value.checks.length)} checks pass.`, h("span", { class: "age" })),
      errors(["health"]),
    );
    mark(urgent, ["health"]);
  }

  function putBack(unit) {
    return once(async () => {
      const done = await ask({
        title: `Return ${unit.unit} to chaos?`,
        yes: "Return to chaos",
        content: [h("p", {}, "From the next decision on, Troop can hit instances of ", name(unit.unit), " again. Return it once the cause is repaired."), cause(unit) && h("p", { class: "muted" }, timed(sentence(cause(unit))))],
        act: () => change("PATCH", `groups/${unit.id}`, { unrecovered: false }),
      });
      if (!done) return;
      returned.at = Date.now();
      flash(`${unit.unit} is back in chaos.`);
      refresh();
    });
  }

  function drawLately() {
    const { value, error } = state.year;
    fill(
      lately,
      error && h("p", { class: "problem" }, `The last year cannot be read: ${sentence(error)}`),
      value?.lately.units > 0 && [h("h2", {}, "Recovery", h("span", { class: "age" })), latelyText(value.lately)],
      value?.weeks.length >= ENOUGH && trend(value.weeks, value.until),
      value?.letter && lastWeek(value.letter),
    );
    mark(lately, ["year"]);
  }

  drawAll();
  await refresh();
}

const row = (grade, content, cure, actions) => h("li", { class: grade }, h("div", {}, h("p", {}, content), cure), actions && h("div", { class: "actions" }, actions));

/** A check that found something, with its cure. */
const finding = (check) => row(GRADE[check.status], [badge(words(check.name).replaceAll("-", " "), GRADE[check.status]), " ", timed(sentence(check.detail))], check.todo && cure(check));

/** What to do about a finding: each command can be copied, and the runbook is a link if a browser opens it. */
function cure({ todo, commands = [], runbook }) {
  const entry = runbook && (/^https:[/][/]/.test(runbook) ? h("a", { href: runbook, target: "_blank", rel: "noopener" }, "runbook") : ["see ", runbook]);
  const button = (command) => h("button", { type: "button", class: "small", "aria-label": `Copy ${command}`, onclick: () => copy(command) }, "Copy");
  return [h("p", { class: "cure" }, todo, entry && ["; ", entry]), commands.map((command) => h("p", { class: "cure" }, h("code", {}, command), " ", button(command)))];
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    flash("Copied.");
  } catch {
    flash("The browser does not let this page copy: select the command, and copy it.");
  }
}

/** The deployment's own halt: since when, why, and the events that led to it. */
const halted = ({ halt: { at, why, events }, resume }) => row(
  "bad",
  [badge("the deployment halted itself", "bad"), " ", moment(at), ": ", timed(sentence(why))],
  events.length > 0 && h("p", { class: "cure" }, events.length === 1 ? "The event: " : "The events: ", events.map((id, index) => [index > 0 && ", ", link(eventAddress(id), name(unitOf(id)))]), events.length === 1 ? ". Resume once its cause is known." : ". Resume once their causes are known."),
  h("button", { type: "button", onclick: resume }, "Resume …"),
);

/** Why a unit has left chaos, in words; "" if nothing is known. */
const cause = (unit) => [unit.left_for === "broken" && unit.why, ending(unit)].filter(Boolean).join("; ");

/** A unit that has left chaos. */
function left(unit, now, putBack) {
  const since = unit.hit_at && ago(now - Date.parse(unit.hit_at));
  return row(
    "bad",
    [badge(unit.left_for === "broken" ? "broken" : "did not recover", "bad"), " ", link(unitAddress(unit.unit), name(unit.unit)), `: ${unit.in_service} of ${unit.desired} in service`, since && `, hit ${since}`, "."],
    cause(unit) && h("p", { class: "cure" }, timed(sentence(cause(unit)))),
    [link(eventAddress(unit.event_id), "Open"), h("button", { type: "button", "aria-label": `Return to chaos … ${unit.unit}`, onclick: () => putBack(unit) }, "Return to chaos …")],
  );
}

/** A unit that was returned to chaos before it was whole. */
const weak = (unit) => row("warn", [badge("below strength", "warn"), " ", link(unitAddress(unit.unit), name(unit.unit)), ` is back in chaos, with ${unit.in_service} of ${unit.desired} in service.`], h("p", { class: "cure" }, "It is not hit before it is whole. Its group has not replaced what it lost."), link(eventAddress(unit.event_id), "Open"));

const malformed = (unit) => row("warn", [badge("malformed", "bad"), " ", link(unitAddress(unit.unit), name(unit.unit)), " is skipped: ", sentence(unit.why.replace(/^malformed: /, ""))], null, link(unitAddress(unit.unit), "Open"));

/** How long a hit has been under way: "22 of 30 minutes". */
function progress(event, now) {
  const { injection } = event;
  if (event.status === "CLAIMED") return injection ? `${event.method} is about to be injected` : "about to be terminated";
  if (awaitsVerdict(event)) return `recovered; its verdict is expected at ${hour(new Date(event.settles_at))}`;
  const began = recoversFrom(event);
  if (injection && !began) return injection.unproven ? `not proven to be over, act now: ${injection.unproven}` : `${event.method}, ends by ${hour(new Date(injection.ends_by))}; not yet proven to be over`;
  if (!began || !event.recover_by) return "recovering";
  const minutes = (to) => Math.max(0, Math.round((to - Date.parse(began)) / 60_000));
  return `recovering, ${minutes(now)} of ${minutes(Date.parse(event.recover_by))} minutes`;
}

function todayContent({ value: today, now }) {
  if (!today) return null;
  const total = Object.values(today.by_status).reduce((sum, one) => sum + one, 0);
  return [
    h("p", { class: "large" }, h("strong", {}, count(total)), today.limited && "+", total === 1 ? " event" : " events"),
    h("p", {}, Object.entries(today.by_status).map(([status, number]) => [h("a", { class: `badge ${kind(status)}`, href: address("#/events", { status, hours: "24" }) }, `${count(number)} ${words(status)}`), " "]), ["BROKEN", "UNKNOWN"].map((value) => today.by_verdict[value] > 0 && [h("a", { class: `badge ${kind(value)}`, href: address("#/events", { verdict: value, hours: "24" }) }, `${count(today.by_verdict[value])} ${value === "BROKEN" ? "broken" : "with unknown verdict"}`), " "])),
    today.in_flight.length > 0 && h("ul", { class: "rows" }, today.in_flight.map((event) => h("li", {}, link(eventAddress(event.event_id), name(event.unit)), ` ${progress(event, Date.parse(now))}`))),
    !total && h("p", { class: "muted" }, "No hit so far."),
  ];
}

function nextContent({ value: next, error }, odds) {
  if (!next) return error ? null : h("p", { class: "muted" }, "No window opens within two weeks.");
  const day = next.is_today ? "today" : shortDay(next.day);
  if (next.halted) return [h("p", { class: "large" }, "None"), h("p", {}, `Halted: no hit ${next.is_today ? "today" : `on ${day}`} until someone resumes.`)];
  if (!next.expected) {
    return [
      odds && h("p", { class: "large" }, "about ", h("strong", {}, Number(odds.a_day.toPrecision(2))), odds.a_day === 1 ? " hit" : " hits", " a business day"),
      h("p", { class: "muted" }, odds && `The odds of ${count(odds.units)} ${odds.units === 1 ? "unit" : "units"} that take part. `, `Next: ${day}. Without the salt, nobody can tell which and when: `, sentence(next.not_expected)),
    ];
  }
  const hits = next.expected;
  return [
    h("p", { class: "large" }, h("strong", {}, count(hits.length)), next.leashed ? " would be hit" : " expected", ` ${next.is_today ? "until the end of today" : `on ${day}`}`),
    h("ul", { class: "rows" }, hits.slice(0, FEW).map((hit) => h("li", {}, h("time", { datetime: hit.tick, class: "muted" }, hour(new Date(hit.tick))), " ", link(unitAddress(hit.unit), name(hit.unit))))),
    hits.length > FEW && h("p", {}, link("#/calendar", `${count(hits.length - FEW)} more in the calendar`)),
  ];
}

function costContent(benchmarks) {
  if (!benchmarks) return null;
  const { runs, fleets, month } = benchmarks;
  const amounts = Object.entries(month.amounts).map(([currency, amount]) => money(amount, currency));
  const open = [...runs.map((one) => [link(`#/runs/${encodeURIComponent(one.run)}`, name(one.name)), one]), ...fleets.map((one) => [["fleet ", name(one.name)], one])];
  return [
    h("p", { class: "large" }, h("strong", {}, amounts.join(" + ") || money(0, "USD")), " this month"),
    h("p", { class: "muted" }, `${count(month.runs)}${month.limited ? "+" : ""} benchmark ${month.runs === 1 ? "run" : "runs"} since the first, in UTC.`),
    open.length > 0 && h("ul", { class: "rows" }, open.map(([title, one]) => h("li", {}, title, " ", badge(words(one.status), kind(one.status)), " ", one.cost_so_far ? [money(one.cost_so_far.amount, one.cost_so_far.currency), " so far"] : h("span", { class: "muted" }, "cost unknown")))),
    !open.length && h("p", { class: "muted" }, "No run is open, and no fleet stands."),
  ];
}

function unitsContent(units) {
  if (!units) return null;
  const states = Object.entries(units.by_state);
  if (!states.length) return h("p", { class: "muted" }, "There are no Auto Scaling groups.");
  return [
    h("ul", { class: "states" }, states.map(([one, number]) => h("li", {}, h("a", { href: address("#/units", { show: one }) }, h("strong", {}, count(number)), " ", h("span", { class: `badge ${stateKind(one)}` }, one))))),
    units.limited && h("p", { class: "muted small" }, `Of the first ${count(units.limited)} groups.`),
  ];
}

function risksContent(risks) {
  if (!risks) return h("p", { class: "muted" }, "The account is not read yet. Troop does so once a day.");
  const found = Object.entries(risks.by_severity).filter(([, number]) => number > 0);
  const remarks = risks.remarks.map((one) => h("p", { class: "old" }, name(one)));
  if (!found.length) return [h("p", {}, link("#/risks", "No risks"), " that nobody has accepted."), remarks];
  return [h("ul", { class: "states" }, found.map(([severity, number]) => h("li", {}, h("a", { href: address("#/risks", { severity }) }, h("strong", {}, count(number)), " ", badge(severity, SEVERITY[severity]))))), remarks];
}

function latelyText({ days, units, usual, slower, unrecovered }) {
  const named = (list) => list.map((one, index) => [index > 0 && ", ", one]);
  return h(
    "p",
    {},
    `In the last ${days} days, ${count(usual)} of ${count(units)} ${units === 1 ? "unit" : "units"} always recovered within the usual time.`,
    slower.length > 0 && [" Slower: ", named(slower.map((one) => [link(unitAddress(one.unit), name(one.unit)), ` (${one.times} times as long)`])), "."],
    unrecovered.length > 0 && [" Not in time: ", named(unrecovered.map((one) => link(unitAddress(one), name(one)))), "."],
  );
}

/** The last full week, by owner: the text of the weekly letter. */
const lastWeek = ([all, ...owners]) => [h("h2", {}, "Last week"), h("p", {}, name(all)), owners.length > 0 && h("ul", {}, owners.map((one) => h("li", {}, name(one))))];

const columns = (now) => [
  { label: "Time", cell: (event) => link(eventAddress(event.event_id), moment(event.at)) },
  { label: "Unit", cell: (event) => link(unitAddress(event.unit), name(event.unit)) },
  { label: "Fault", cell: (event) => event.method },
  { label: "Status", cell: (event) => badge(words(event.status), kind(event.status)) },
  { label: "Verdict", cell: verdictOf },
  { label: "Recovery time", number: true, cell: recoveredAfter },
  { label: "Detail", wide: true, cell: (event) => (inFlight(event) ? progress(event, now) : timed(ending(event))) },
];
