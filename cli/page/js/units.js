// All units: search, sort, what holds for each and where that comes from.

import { get } from "./api.js";
import { badge, fill, h, heading, link, loading, name, problem, select, table } from "./dom.js";
import { lapse } from "./event.js";
import { clock, count, share, whence } from "./format.js";

const PAGE = 50; // the longest that the API gives
const AT_ONCE = 500; // groups that are loaded before somebody asks for more
const STALE = 60_000; // milliseconds, after which coming back loads the list anew
const SHOWN = 200; // rows that are shown before somebody asks for more

// Kept while the page is open, so that coming back finds the list as it was left.
const kept = { rows: [], at: null, cursor: undefined, search: "", part: "all", by: "unit", down: false, shown: SHOWN };

const PARTS = [["all", "All"], ["in", "Taking part"], ["out", "Left alone"], ["wrong", "With problems"]];

const one = (values) => (new Set(values).size === 1 ? values[0] : undefined);

const among = (groups, key) => [...new Set(groups.map((group) => group[key]).filter(Boolean))].join(", ");

/** Groups of the API as units; what its groups differ in is undefined: which of it holds, the unit's own page tells. */
export function units(rows) {
  const found = new Map();
  for (const row of rows) found.set(row.unit, [...(found.get(row.unit) ?? []), row]);
  return [...found.values()].map((groups) => ({
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
    type: "search", id: "search", value: kept.search, placeholder: "unit, group, owner, reason, calendar", autocomplete: "off", spellcheck: "false",
    oninput: (event) => change({ search: event.target.value, shown: SHOWN }),
  });
  const parts = select(PARTS, kept.part, (part) => change({ part, shown: SHOWN }));
  parts.id = "part";
  fill(
    main,
    h("div", { class: "headline" }, heading("Units"), h("button", { type: "button", onclick: () => load(true) }, "Load anew")),
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
    Object.assign(kept, values);
    draw();
  }

  function sort(by) {
    change({ by, down: kept.by === by && !kept.down });
    list.querySelector(`[data-sort="${by}"]`)?.focus();
  }

  function draw() {
    const all = units(kept.rows);
    const found = ordered(all.filter(matches));
    const rows = found.slice(0, kept.shown);
    fill(age, `Loaded at ${clock(kept.at)}.`);
    fill(summary, all.length || kept.cursor ? share(found.length, all.length, "unit", kept.cursor) : "There are no Auto Scaling groups in this account and region.");
    fill(list, rows.length ? table("Units and what holds for each", COLUMNS, rows, { by: kept.by, down: kept.down, change: sort }) : null);
    fill(
      more,
      found.length > kept.shown && h("button", { type: "button", onclick: () => change({ shown: kept.shown + SHOWN }) }, `Show ${count(Math.min(SHOWN, found.length - kept.shown))} more`),
      kept.cursor && h("button", { type: "button", onclick: () => load() }, "Load more"),
    );
  }

  let round = 0; // of loading: answers to earlier rounds are dropped

  async function load(anew = false) {
    const mine = ++round;
    const until = anew ? Math.max(AT_ONCE, kept.rows.length) : kept.rows.length + AT_ONCE;
    if (anew) Object.assign(kept, { rows: [], at: new Date(), cursor: undefined });
    if (!kept.rows.length) fill(list, loading("units"));
    fill(more);
    try {
      do {
        const page = await get("groups", { limit: PAGE, cursor: kept.cursor ?? "" }, signal);
        if (mine !== round) return;
        kept.rows = [...kept.rows, ...page.groups];
        kept.cursor = page.cursor;
        if (kept.rows.length <= PAGE || !kept.cursor) draw();
        else fill(summary, `${count(kept.rows.length)} groups loaded …`);
      } while (kept.cursor && kept.rows.length < until);
      draw();
    } catch (error) {
      if (signal.aborted || mine !== round) return;
      if (kept.rows.length) draw();
      else fill(list);
      fill(more, problem(error, () => load()));
    }
  }

  if (kept.cursor === undefined || Date.now() - kept.at > STALE) await load(true);
  else draw();
}

/** What has become of a unit since it was listed, as its own page tells it. */
export function noted(unit) {
  kept.rows = kept.rows.map((row) => {
    if (row.unit !== unit.unit || !unit.policy.takes_part) return row;
    const { value, source } = unit.policy.takes_part;
    const [owner, reason, until] = ["owner", "reason", "until"].map((key) => unit.policy[key]?.value);
    return { ...row, takes_part: value, unrecovered: unit.unrecovered, owner, reason, until, sources: { ...row.sources, takes_part: source } };
  });
}

function matches(unit) {
  const wrong = unit.problems.length > 0 || Boolean(unit.unrecovered);
  if (kept.part === "in" && !(unit.takes_part && !wrong)) return false;
  if (kept.part === "out" && unit.takes_part && !wrong) return false;
  if (kept.part === "wrong" && !wrong) return false;
  const text = [unit.unit, ...unit.groups, unit.calendar ?? "", unit.owner, unit.reason, unit.until, ...unit.problems].join("\n").toLowerCase();
  return kept.search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function ordered(found) {
  const value = (unit) => (kept.by === "groups" ? unit.groups.join() : kept.by === "problems" ? wrongs(unit).length : (unit[kept.by] ?? ""));
  const compare = (a, b) => (typeof a === "string" || typeof b === "string" ? COLLATOR.compare(String(a), String(b)) : a - b);
  const sign = kept.down ? -1 : 1;
  return found.sort((a, b) => sign * compare(value(a), value(b)) || COLLATOR.compare(a.unit, b.unit));
}
const COLLATOR = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const wrongs = (unit) => [unit.unrecovered && ["has not recovered from ", lapse(unit)], ...unit.problems].filter(Boolean);

function leftAlone(unit) {
  if (unit.takes_part || unit.protected) return null;
  if (unit.source("takes_part") === "settings") return "nobody has opted it in";
  return ["opted out", unit.until && ` until ${unit.until}`, unit.reason && [": ", name(unit.reason)]];
}

/** A value and, small, where it comes from. */
const sourced = (shown, source) => [shown, source && h("small", { class: "source" }, name(whence(source)))];
const differs = () => h("span", { class: "muted" }, "differs");

const COLUMNS = [
  { label: "Unit", sort: "unit", cell: (unit) => [link(`#/units/${encodeURIComponent(unit.id)}`, name(unit.unit)), unit.owner && h("small", { class: "source" }, name(unit.owner))] },
  {
    label: "Groups", sort: "groups",
    cell: (unit) => (unit.groups.length === 1 ? (unit.groups[0] === unit.unit ? h("span", { class: "muted" }, "the same") : name(unit.groups[0])) : h("span", { title: unit.groups.join(", ") }, `${unit.groups.length} groups`)),
  },
  {
    label: "Takes part", sort: "takes_part",
    cell: (unit) => sourced(unit.protected ? badge("protected", "info") : unit.problems.length ? badge("malformed", "bad") : unit.unrecovered ? badge("unrecovered", "bad") : unit.takes_part === undefined ? differs() : unit.takes_part ? badge("yes", "good") : badge("left alone", "info"), unit.source("takes_part")),
  },
  { label: "Probability", sort: "probability", number: true, cell: (unit) => sourced(unit.probability ?? differs(), unit.source("probability")) },
  { label: "Healthy at least", sort: "min_healthy", number: true, cell: (unit) => sourced(unit.min_healthy ?? differs(), unit.source("min_healthy")) },
  { label: "In service", sort: "in_service", number: true, cell: (unit) => `${unit.in_service} of ${unit.desired}` },
  { label: "Calendar", sort: "calendar", cell: (unit) => sourced(unit.calendar === undefined ? differs() : name(unit.calendar), unit.source("calendar")) },
  { label: "Last terminated", sort: "last_day", cell: (unit) => unit.last_day },
  {
    label: "Why left alone", sort: "problems", wide: true,
    cell: (unit) => (wrongs(unit).length ? wrongs(unit).map((text) => h("p", { class: "wrong" }, text)) : leftAlone(unit)),
  },
];
