// All units: search, sort, policy values and their sources.

import { get } from "./api.js";
import { badge, fill, h, heading, link, loading, name, problem, select, table } from "./dom.js";
import { lapse } from "./event.js";
import { clock, count, share, sourceName } from "./format.js";

const PAGE = 50; // the API's maximum
const AT_ONCE = 500; // groups that one load requests
const STALE = 60_000; // milliseconds, after which the view refreshes the list when it opens
const SHOWN = 200; // rows that are visible at first

// Lives as long as the page, so that the view shows the same list when it opens again.
const state = { rows: [], at: null, cursor: undefined, search: "", part: "all", by: "unit", down: false, shown: SHOWN };

const PARTS = [["all", "All"], ["in", "Taking part"], ["out", "Not taking part"], ["wrong", "With problems"]];

const one = (values) => (new Set(values).size === 1 ? values[0] : undefined);

const among = (groups, key) => [...new Set(groups.map((group) => group[key]).filter(Boolean))].join(", ");

/** Combines groups of the API into units. A value that differs between groups is undefined; the unit's own view shows which applies. */
export function units(rows) {
  const byUnit = new Map();
  for (const row of rows) byUnit.set(row.unit, [...(byUnit.get(row.unit) ?? []), row]);
  return [...byUnit.values()].map((groups) => ({
    unit: groups[0].unit,
    id: groups[0].id,
    groups: groups.map((group) => group.group),
    takes_part: one(groups.map((group) => group.takes_part)),
    probability: one(groups.map((group) => group.probability)),
    min_healthy: one(groups.map((group) => group.min_healthy)),
    calendar: one(groups.map((group) => group.calendar)),
    source: (key) => one(groups.map((group) => group.sources?.[key])),
    protected: groups.every((group) => group.protected),
    in_service: groups.reduce((sum, group) => sum + group.in_service, 0),
    desired: groups.reduce((sum, group) => sum + group.desired, 0),
    last_day: groups[0].last_day,
    unrecovered: groups[0].unrecovered,
    problems: [...new Set(groups.flatMap((group) => group.problems))],
    owner: among(groups, "owner"),
    reason: among(groups.filter((group) => !group.takes_part), "reason"),
    until: among(groups.filter((group) => !group.takes_part), "until"),
  }));
}

export async function show(main, signal) {
  const list = h("div", {});
  const summary = h("p", { class: "muted", role: "status" });
  const age = h("p", { class: "muted" });
  const more = h("div", { class: "buttons" });
  const search = h("input", {
    type: "search", id: "search", value: state.search, placeholder: "unit, group, owner, reason, calendar", autocomplete: "off", spellcheck: "false",
    oninput: (event) => change({ search: event.target.value, shown: SHOWN }),
  });
  const parts = select(PARTS, state.part, (part) => change({ part, shown: SHOWN }));
  parts.id = "part";
  fill(
    main,
    h("div", { class: "headline" }, heading("Units"), h("button", { type: "button", onclick: () => load(true) }, "Refresh")),
    h(
      "div",
      { class: "filters", role: "search" },
      h("div", { class: "field grow" }, h("label", { for: "search" }, "Search"), search),
      h("div", { class: "field" }, h("label", { for: "part" }, "Show"), parts),
    ),
    h("div", { class: "sides" }, summary, age),
    list,
    more,
  );

  function change(values) {
    Object.assign(state, values);
    draw();
  }

  function sort(by) {
    change({ by, down: state.by === by && !state.down });
    list.querySelector(`[data-sort="${by}"]`)?.focus();
  }

  function draw() {
    const all = units(state.rows);
    const hits = ordered(all.filter(matches));
    const rows = hits.slice(0, state.shown);
    fill(age, `Loaded at ${clock(state.at)}.`);
    fill(summary, all.length || state.cursor ? share(hits.length, all.length, "unit", state.cursor) : "There are no Auto Scaling groups in this account and region.");
    fill(list, rows.length ? table("Units and their policies", COLUMNS, rows, { by: state.by, down: state.down, change: sort }) : null);
    fill(
      more,
      hits.length > state.shown && h("button", { type: "button", onclick: () => change({ shown: state.shown + SHOWN }) }, `Show ${count(Math.min(SHOWN, hits.length - state.shown))} more`),
      state.cursor && h("button", { type: "button", onclick: () => load() }, "Load more"),
    );
  }

  let round = 0; // of loading: responses to earlier rounds are dropped

  async function load(refresh = false) {
    const mine = ++round;
    const until = refresh ? Math.max(AT_ONCE, state.rows.length) : state.rows.length + AT_ONCE;
    if (refresh) Object.assign(state, { rows: [], at: new Date(), cursor: undefined });
    if (!state.rows.length) fill(list, loading("units"));
    fill(more);
    try {
      do {
        const page = await get("groups", { limit: PAGE, cursor: state.cursor ?? "" }, signal);
        if (mine !== round) return;
        state.rows = [...state.rows, ...page.groups];
        state.cursor = page.cursor;
        if (state.rows.length <= PAGE || !state.cursor) draw();
        else fill(summary, `${count(state.rows.length)} groups loaded …`);
      } while (state.cursor && state.rows.length < until);
      draw();
    } catch (error) {
      if (signal.aborted || mine !== round) return;
      if (state.rows.length) draw();
      else fill(list);
      fill(more, problem(error, () => load()));
    }
  }

  if (state.cursor === undefined || Date.now() - state.at > STALE) await load(true);
  else draw();
}

/** Updates the list with a unit's state from its own view. */
export function updateRow(unit) {
  state.rows = state.rows.map((row) => {
    if (row.unit !== unit.unit || !unit.policy.takes_part) return row;
    const { value, source } = unit.policy.takes_part;
    const [owner, reason, until] = ["owner", "reason", "until"].map((key) => unit.policy[key]?.value);
    return { ...row, takes_part: value, unrecovered: unit.unrecovered, owner, reason, until, sources: { ...row.sources, takes_part: source } };
  });
}

function matches(unit) {
  const wrong = unit.problems.length > 0 || Boolean(unit.unrecovered);
  if (state.part === "in" && !(unit.takes_part && !wrong)) return false;
  if (state.part === "out" && unit.takes_part && !wrong) return false;
  if (state.part === "wrong" && !wrong) return false;
  const text = [unit.unit, ...unit.groups, unit.calendar ?? "", unit.owner, unit.reason, unit.until, ...unit.problems].join("\n").toLowerCase();
  return state.search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function ordered(list) {
  const value = (unit) => (state.by === "groups" ? unit.groups.join() : state.by === "problems" ? problemsOf(unit).length : (unit[state.by] ?? ""));
  const compare = (a, b) => (typeof a === "string" || typeof b === "string" ? COLLATOR.compare(String(a), String(b)) : a - b);
  const sign = state.down ? -1 : 1;
  return list.sort((a, b) => sign * compare(value(a), value(b)) || COLLATOR.compare(a.unit, b.unit));
}
const COLLATOR = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const problemsOf = (unit) => [unit.unrecovered && ["has not recovered from ", lapse(unit)], ...unit.problems].filter(Boolean);

function skipReason(unit) {
  if (unit.takes_part || unit.protected) return null;
  if (unit.source("takes_part") === "settings") return "not opted in";
  return ["opted out", unit.until && ` until ${unit.until}`, unit.reason && [": ", name(unit.reason)]];
}

/** A value with its source in small print. */
const sourced = (shown, source) => [shown, source && h("small", { class: "source" }, name(sourceName(source)))];
const differs = () => h("span", { class: "muted" }, "differs");

const COLUMNS = [
  { label: "Unit", sort: "unit", cell: (unit) => [link(`#/units/${encodeURIComponent(unit.id)}`, name(unit.unit)), unit.owner && h("small", { class: "source" }, name(unit.owner))] },
  {
    label: "Groups", sort: "groups",
    cell: (unit) => (unit.groups.length === 1 ? name(unit.groups[0]) : h("span", { title: unit.groups.join(", ") }, `${unit.groups.length} groups`)),
  },
  {
    label: "Takes part", sort: "takes_part",
    cell: (unit) => sourced(unit.protected ? badge("protected", "info") : unit.problems.length ? badge("malformed", "bad") : unit.unrecovered ? badge("not recovered", "bad") : unit.takes_part === undefined ? differs() : unit.takes_part ? badge("yes", "good") : badge("no", "info"), unit.source("takes_part")),
  },
  { label: "Probability", sort: "probability", number: true, cell: (unit) => sourced(unit.probability ?? differs(), unit.source("probability")) },
  { label: "Minimum healthy", sort: "min_healthy", number: true, cell: (unit) => sourced(unit.min_healthy ?? differs(), unit.source("min_healthy")) },
  { label: "In service", sort: "in_service", number: true, cell: (unit) => `${unit.in_service} of ${unit.desired}` },
  { label: "Calendar", sort: "calendar", cell: (unit) => sourced(unit.calendar === undefined ? differs() : name(unit.calendar), unit.source("calendar")) },
  { label: "Last terminated", sort: "last_day", cell: (unit) => unit.last_day },
  {
    label: "Why skipped", sort: "problems", wide: true,
    cell: (unit) => (problemsOf(unit).length ? problemsOf(unit).map((text) => h("p", { class: "wrong" }, text)) : skipReason(unit)),
  },
];
