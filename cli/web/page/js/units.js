// All units: search, sort, policy values and their sources.

import { filtersOf, remember } from "./address.js";
import { get } from "./api.js";
import { badge, field, fill, h, headline, link, loading, name, problem, refreshButton, select, table } from "./dom.js";
import { loaded, loadedLine } from "./freshness.js";
import { count, share, sourceName, stateKind, timed } from "./format.js";

const AT_ONCE = 2_000; // groups that one load requests
const STALE = 60_000; // milliseconds, after which the view refreshes the list when it opens
const SHOWN = 200; // rows that are visible at first
const OLD = 600_000; // milliseconds, after which the list is marked as old
const ALL = 5_000; // groups that are loaded for a filter in the address, which must not miss any

// Lives as long as the page, so that the view shows the same list when it opens again.
const state = { rows: [], at: null, reading: "", more: false, shown: SHOWN };

const DEFAULTS = { q: "", show: "all", owner: "", sort: "unit" }; // in the address; "-" before a sort: descending
const SORTS = new Set(["unit", "groups", "takes_part", "probability", "min_healthy", "in_service", "calendar", "last_day", "why"]);
let filters = { ...DEFAULTS };

const PARTS = [["all", "All"], ["in", "Taking part"], ["out", "Not taking part"], ["wrong", "With problems"]]; // and each state that the API gives
const NO_OWNER = "-"; // an owner's name has no such default

const one = (values) => (new Set(values).size === 1 ? values[0] : undefined);

const among = (groups, key) => [...new Set(groups.map((group) => group[key]).filter(Boolean))].join(", ");

/** Combines groups of the API into units. A value that differs between groups is undefined; the unit's own view shows which applies. */
export function units(rows) {
  const byUnit = new Map();
  for (const row of rows) byUnit.set(row.unit, [...(byUnit.get(row.unit) ?? []), row]);
  return [...byUnit.values()].map((groups) => ({
    unit: groups[0].unit,
    ...groups[0].outlook, // the API's: state, takes_part, reason, why
    owners: [...new Set(groups.map((group) => group.owner).filter(Boolean))],
    id: groups[0].id,
    groups: groups.map((group) => group.group),
    probability: one(groups.map((group) => group.probability)),
    min_healthy: one(groups.map((group) => group.min_healthy)),
    calendar: one(groups.map((group) => group.calendar)),
    source: (key) => one(groups.map((group) => group.sources?.[key])),
    in_service: groups.reduce((sum, group) => sum + group.in_service, 0),
    desired: groups.reduce((sum, group) => sum + group.desired, 0),
    last_day: groups[0].last_day,
    owner: among(groups, "owner"),
  }));
}

export async function show(main, signal) {
  filters = filtersOf(DEFAULTS);
  if (!SORTS.has(filters.sort.replace(/^-/, ""))) filters.sort = DEFAULTS.sort;
  state.shown = SHOWN;
  const list = h("div", { class: "dense" });
  const summary = h("p", { class: "muted", role: "status" });
  const age = loadedLine();
  const more = h("div", { class: "buttons" });
  const search = h("input", {
    type: "search", id: "search", value: filters.q, placeholder: "unit, group, owner, reason, calendar", autocomplete: "off", spellcheck: "false",
    oninput: (event) => change({ q: event.target.value }),
  });
  const parts = select([], filters.show, (show) => change({ show }, true));
  parts.id = "part";
  const owners = select([], filters.owner, (owner) => change({ owner }, true));
  owners.id = "owner";
  fill(
    main,
    headline("Units", refreshButton(() => load(true, true))),
    h(
      "div",
      { class: "filters", role: "search" },
      field("Search", search, "", true),
      field("Show", parts),
      field("Owner", owners),
    ),
    h("div", { class: "sides" }, summary, age),
    list,
    h("p", { class: "muted small" }, "Values without a source come from the settings."),
    more,
  );

  function change(values, step = false) {
    Object.assign(filters, values);
    remember(filters, DEFAULTS, step);
    state.shown = SHOWN;
    draw();
  }

  function sort(by) {
    change({ sort: filters.sort === by ? `-${by}` : by }, true);
    list.querySelector(`[data-sort="${by}"]`)?.focus();
  }

  function draw() {
    const all = units(state.rows);
    const hits = ordered(all.filter(matches));
    const rows = hits.slice(0, state.shown);
    if (state.at) loaded(age, state.at, OLD); // a filter can be typed before the first page is there
    const names = [...new Set([...all.flatMap((unit) => unit.owners), ...(filters.owner && filters.owner !== NO_OWNER ? [filters.owner] : [])])].sort(COLLATOR.compare);
    const states = new Set([...all.map((unit) => unit.state), ...(PARTS.some(([part]) => part === filters.show) ? [] : [filters.show])]);
    fill(parts, [...PARTS, ...[...states].sort(COLLATOR.compare).map((one) => [one, `State: ${one}`])].map(([value, label]) => h("option", { value, selected: value === filters.show }, label)));
    fill(owners, [["", "Any owner"], [NO_OWNER, "Without an owner"], ...names.map((one) => [one, one])].map(([value, label]) => h("option", { value, selected: value === filters.owner }, label)));
    fill(summary, all.length || state.more ? share(hits.length, all.length, "unit", state.more) : "There are no Auto Scaling groups in this account and region.");
    fill(list, rows.length ? table("Units and their policies", COLUMNS, rows, { by: filters.sort.replace(/^-/, ""), down: filters.sort.startsWith("-"), change: sort }) : null);
    fill(
      more,
      hits.length > state.shown && h("button", { type: "button", onclick: () => { state.shown += SHOWN; draw(); } }, `Show ${count(Math.min(SHOWN, hits.length - state.shown))} more`),
      state.more && h("button", { type: "button", onclick: () => load() }, "Load more"),
    );
  }

  let round = 0; // of loading: responses to earlier rounds are dropped

  /** Loads the list from its begin (`refresh`), or continues it. `fresh`: it is read again, even if it is not old. */
  async function load(refresh = false, fresh = false) {
    const mine = ++round;
    const linked = refresh && (filters.q || filters.owner || filters.show !== "all");
    const until = refresh ? Math.max(linked ? ALL : AT_ONCE, state.rows.length) : state.rows.length + AT_ONCE;
    if (refresh) Object.assign(state, { rows: [], at: null, reading: "", more: true });
    if (!state.rows.length) fill(list, loading("units"));
    fill(more);
    try {
      do {
        const page = await get("ui/groups", { after: state.rows.length, reading: state.reading, fresh: String(fresh) }, signal);
        if (mine !== round) return;
        fresh = false;
        if (page.reading !== state.reading) Object.assign(state, { rows: [], at: new Date(page.at), reading: page.reading });
        state.rows = [...state.rows, ...page.groups];
        state.more = page.more;
        draw();
        if (state.more) {
          fill(more);
          fill(summary, `${count(state.rows.length)} groups loaded …`);
        }
      } while (state.more && state.rows.length < until);
      draw();
    } catch (error) {
      if (signal.aborted || mine !== round) return;
      if (state.rows.length) draw();
      else fill(list);
      fill(more, problem(error, () => load()));
    }
  }

  if (!state.reading || Date.now() - state.at > STALE) await load(true);
  else draw();
}

/** Updates the list with a unit's state from its own view. */
export function updateRow(unit) {
  const policy = Object.entries(unit.policy);
  state.rows = state.rows.map((row) => {
    if (row.unit !== unit.unit || !unit.policy.takes_part) return row;
    const values = Object.fromEntries(policy.filter(([key]) => key in row).map(([key, { value }]) => [key, value]));
    const sources = Object.fromEntries(policy.filter(([key]) => key in (row.sources ?? {})).map(([key, { source }]) => [key, source]));
    return { ...row, owner: null, reason: null, until: null, ...values, problems: unit.problems, unrecovered: unit.unrecovered, outlook: unit.outlook, sources: { ...row.sources, ...sources } };
  });
}

function matches(unit) {
  const shown = { all: true, in: unit.takes_part, out: !unit.takes_part, wrong: stateKind(unit.state) === "bad" };
  if (!(shown[filters.show] ?? unit.state === filters.show)) return false;
  if (filters.owner && !(filters.owner === NO_OWNER ? !unit.owners.length : unit.owners.includes(filters.owner))) return false;
  const text = [unit.unit, ...unit.groups, unit.calendar ?? "", unit.owner, unit.why].join("\n").toLowerCase();
  return filters.q.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function ordered(list) {
  const by = filters.sort.replace(/^-/, "");
  const value = (unit) => (by === "groups" ? unit.groups.join() : (unit[by] ?? ""));
  const compare = (a, b) => (typeof a === "string" || typeof b === "string" ? COLLATOR.compare(String(a), String(b)) : a - b);
  const sign = filters.sort.startsWith("-") ? -1 : 1;
  return list.sort((a, b) => sign * compare(value(a), value(b)) || COLLATOR.compare(a.unit, b.unit));
}
const COLLATOR = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** A value with its source in small print; without one it comes from the settings. */
const sourced = (shown, source) => [shown, source && source !== "settings" && h("small", { class: "source" }, name(sourceName(source)))];
const differs = () => h("span", { class: "muted" }, "differs");

const COLUMNS = [
  { label: "Unit", sort: "unit", cell: (unit) => [link(`#/units/${encodeURIComponent(unit.id)}`, name(unit.unit)), unit.owner && h("small", { class: "source" }, name(unit.owner))] },
  {
    label: "Groups", sort: "groups",
    cell: (unit) => (unit.groups.length === 1 ? name(unit.groups[0]) : h("span", { title: unit.groups.join(", ") }, `${unit.groups.length} groups`)),
  },
  {
    label: "Takes part", sort: "takes_part",
    cell: (unit) => badge(unit.takes_part ? "yes" : `no (${unit.state})`, stateKind(unit.state)),
  },
  { label: "Probability", sort: "probability", number: true, cell: (unit) => sourced(unit.probability ?? differs(), unit.source("probability")) },
  { label: "Minimum healthy", sort: "min_healthy", number: true, cell: (unit) => sourced(unit.min_healthy ?? differs(), unit.source("min_healthy")) },
  { label: "In service", sort: "in_service", number: true, cell: (unit) => `${unit.in_service} of ${unit.desired}` },
  { label: "Calendar", sort: "calendar", cell: (unit) => sourced(unit.calendar === undefined ? differs() : name(unit.calendar), unit.source("calendar")) },
  { label: "Last hit", sort: "last_day", cell: (unit) => unit.last_day },
  {
    label: "Why skipped", sort: "why", wide: true,
    cell: (unit) => unit.why && h("p", { class: stateKind(unit.state) === "bad" ? "wrong" : unit.takes_part ? "muted" : null }, h("bdi", { class: "name" }, timed(unit.why))),
  },
];
