// Who changed policies and the switch, when, and from what to what: newest first, of the whole deployment.

import { filtersOf, remember } from "./address.js";
import { get } from "./api.js";
import { fill, field, h, headline, leftOut, link, loading, name, problem, refreshButton, select, table } from "./dom.js";
import { loaded, loadedLine } from "./freshness.js";
import { count, moment, plain, unitAddress, who } from "./format.js";

const PAGE = 50;
const OLD = 600_000; // milliseconds, after which the view is marked as old
const DEFAULTS = { unit: "", of: "", hours: "" }; // in the address
const OF = [["", "All changes"], ["switch", "The switch"]];
const HOURS = [["", "All time"], ["24", "Last day"], ["168", "Last week"], ["720", "Last 30 days"], ["2160", "Last 90 days"]];
const TYPING = 400; // milliseconds without a key, after which the unit's name is complete

const TURNED = { halted: ["halted", "resumed"], leashed: ["leashed", "unleashed"], reaper_off: ["reaper off", "reaper on"], schedules_off: ["schedules off", "schedules on"] };

/** What a change did, each value before and after. The switch is described by what somebody did, and why. */
export function changeWords({ changes }) {
  const done = Object.entries(changes).filter(([key]) => TURNED[key]).map(([key, { new: now }]) => TURNED[key][now ? 0 : 1]);
  const turned = changes.itself && !done.includes("resumed") ? [...done, "resumed"] : done;
  const why = turned.length > 0 && changes.reason?.new;
  const others = Object.entries(changes).filter(([key]) => !TURNED[key] && !(turned.length > 0 && key === "reason"));
  return [
    turned.length > 0 && h("p", {}, h("strong", {}, turned.join(", ")), why && [": ", name(why)]),
    others.map(([key, { old, new: now }]) => h("p", {}, key === "unrecovered" ? "returned to chaos" : key === "itself" ? ["ended the deployment's own halt", old?.why && [": ", name(old.why)]] : [`${key}: `, value(old), " → ", value(now)])),
  ];
}

const value = (one) => (one === null || one === undefined ? h("span", { class: "muted" }, "not set") : name(plain(one)));

const COLUMNS = [
  { label: "Time", cell: (change) => moment(change.at) },
  { label: "What", cell: (change) => (change.unit === null ? "the switch" : link(unitAddress(change.unit), name(change.unit))) },
  { label: "By", cell: (change) => h("span", { title: change.caller }, name(who(change.caller))) },
  { label: "Change", wide: true, cell: changeWords },
];

export async function show(main, signal) {
  const filters = filtersOf(DEFAULTS);
  if (filters.of !== "switch" || filters.unit) filters.of = "";
  if (!HOURS.some(([value]) => value === filters.hours)) filters.hours = "";
  const age = loadedLine();
  const summary = h("p", { class: "muted", role: "status" });
  const list = h("div", {});
  const malformed = h("div", {});
  const more = h("div", { class: "buttons" });
  let changes = [];
  let cursor = null;
  let round = 0; // of the filters: responses to earlier ones are dropped
  let typing;
  const unit = h("input", { type: "search", id: "unit", value: filters.unit, placeholder: "the whole name", autocomplete: "off", spellcheck: "false", oninput: () => { clearTimeout(typing); typing = setTimeout(() => choose({ unit: unit.value.trim(), ...(unit.value.trim() && { of: "" }) }), TYPING); } });
  const of = select(OF, filters.of, (value) => choose({ of: value, ...(value && { unit: "" }) }));
  const hours = select(HOURS, filters.hours, (value) => choose({ hours: value }));
  [of.id, hours.id] = ["of", "hours"];
  signal.addEventListener("abort", () => clearTimeout(typing));
  addEventListener("troop-switched", () => reload(), { signal });
  fill(
    main,
    headline("Changes", age, refreshButton(reload)),
    h("div", { class: "filters", role: "search" }, field("Unit", unit, "", true), field("What", of), field("Period", hours)),
    summary,
    malformed,
    list,
    more,
    h("p", { class: "muted small" }, "Changes through the API, by the command, this page or a program. Manual edits of the tables, and tags of groups, are not recorded here."),
  );

  function choose(values) {
    Object.assign(filters, values);
    remember(filters, DEFAULTS, true);
    [unit.value, of.value] = [filters.unit, filters.of];
    reload();
  }

  const query = () => ({ limit: PAGE, unit: filters.unit, switch: filters.of && "true", since: filters.hours && new Date(Date.now() - filters.hours * 3_600_000).toISOString() });
  let asked; // the query of the first page, which those after it repeat

  async function reload() {
    const mine = ++round;
    [changes, cursor, asked] = [[], null, query()];
    fill(list, loading("changes"));
    fill(summary);
    fill(more);
    await read(mine, reload);
  }

  async function read(mine, again) {
    const at = new Date();
    try {
      const page = await get("changes", { ...asked, cursor }, signal);
      if (mine !== round || signal.aborted) return;
      changes = [...changes, ...page.changes];
      cursor = page.cursor;
      fill(malformed, leftOut(page));
      loaded(age, at, OLD);
      draw();
    } catch (error) {
      if (!signal.aborted && mine === round) fill(changes.length ? more : list, problem(error, again));
    }
  }

  async function older() {
    fill(more, loading("older changes"));
    await read(round, older);
  }

  function draw() {
    const filtered = filters.unit || filters.of || filters.hours;
    fill(summary, changes.length ? `${count(changes.length)} ${changes.length === 1 ? "change" : "changes"}${cursor ? " loaded so far" : ""}` : filtered ? "No changes match these filters. A unit is found by its whole name." : "Nobody has changed a policy or the switch yet.");
    fill(list, changes.length > 0 && table("Changes, newest first", COLUMNS, changes));
    fill(more, cursor && h("button", { type: "button", onclick: older }, "Load older changes"));
  }

  await reload();
}
