// Terminations on record, newest first, and as they happen.

import { get } from "./api.js";
import { badge, fill, h, heading, link, loading, name, problem, select, table } from "./dom.js";
import { count, kind, moment, seconds, unitAddress, words } from "./format.js";

const PAGE = 50;
const [SOON, LATE] = [3_000, 30_000]; // milliseconds until the next look: when something has happened, and when nothing does
const WORST = 60_000; // after errors

const STATUS = ["CLAIMED", "TERMINATED", "RECOVERED", "UNRECOVERED", "LEASHED", "GROUP_DELETED", "GONE_ELSEWHERE", "ABANDONED"];
const HOURS = [["", "All time"], ["1", "Last hour"], ["24", "Last day"], ["168", "Last week"], ["720", "Last 30 days"]];

const kept = { search: "", status: "", hours: "", live: true };

export const COLUMNS = [
  { label: "When", cell: (event) => moment(event.at) },
  { label: "Unit", cell: (event) => link(unitAddress(event.unit), name(event.unit)) },
  { label: "Status", cell: (event) => badge(words(event.status), kind(event.status)) },
  { label: "Recovered in", number: true, cell: (event) => seconds(event.recovery_seconds) },
  { label: "Group", cell: (event) => name(event.group) },
  { label: "Instance", cell: (event) => [h("code", {}, event.instance_id || "–"), event.zone && h("small", { class: "source" }, event.zone)] },
  { label: "Detail", wide: true, cell: (event) => event.detail || null },
];

/** What is known after another look at the newest: those that it would have to hold, and does not, are gone. */
export function merged(known, page, cursor) {
  const last = page.at(-1)?.at;
  const older = cursor && last ? known.filter((event) => event.at <= last) : [];
  return joined(page, older);
}

/** Newest first; of an event that is in both, what the first say. */
export function joined(events, others) {
  const there = new Set(events.map((event) => event.event_id));
  const all = [...events, ...others.filter((event) => !there.has(event.event_id))];
  return all.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
}

/** Whether there may be events between the newest and those that are known: more have come than fit into a look. */
export function gap(known, page, cursor) {
  const before = new Set(known.map((event) => event.event_id));
  return Boolean(cursor && known.length && !page.some((event) => before.has(event.event_id)));
}

/** Which are new, or have another status. */
export function news(known, found) {
  const before = new Map(known.map((event) => [event.event_id, event.status]));
  return found.filter((event) => before.get(event.event_id) !== event.status);
}

export async function show(main, signal) {
  let events = [];
  let cursor = null;
  let paged = false; // whether older ones than the first page are loaded
  let wait = SOON;
  let timer;
  let round = 0; // of the filters: answers to earlier ones are dropped
  const list = h("div", {});
  const summary = h("p", { class: "muted", role: "status" });
  const liveness = h("p", { class: "muted", id: "liveness" });
  const more = h("div", { class: "buttons" });
  const search = h("input", { type: "search", id: "search", value: kept.search, placeholder: "unit, group, instance, detail", autocomplete: "off", spellcheck: "false", oninput: (event) => { kept.search = event.target.value; draw(); } });
  const status = select([["", "Any status"], ...STATUS.map((one) => [one, words(one)])], kept.status, (value) => { kept.status = value; anew(); });
  const hours = select(HOURS, kept.hours, (value) => { kept.hours = value; anew(); });
  const live = h("input", { type: "checkbox", id: "live", checked: kept.live, onchange: (event) => { kept.live = event.target.checked; wait = SOON; kept.live ? look() : stop("Not live."); } });
  status.id = "status";
  hours.id = "hours";
  fill(
    main,
    h("div", { class: "headline" }, heading("Events"), h("label", { class: "check", for: "live" }, live, " Live")),
    h(
      "div",
      { class: "filters", role: "search" },
      h("div", { class: "field grow" }, h("label", { for: "search" }, "Search"), search),
      h("div", { class: "field" }, h("label", { for: "status" }, "Status"), status),
      h("div", { class: "field" }, h("label", { for: "hours" }, "From"), hours),
    ),
    h("div", { class: "sides" }, summary, liveness),
    list,
    more,
  );
  const seen = () => (document.hidden ? stop("Not live while nobody looks.") : kept.live && ((wait = SOON), look()));
  document.addEventListener("visibilitychange", seen, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  const query = () => ({
    limit: PAGE,
    status: kept.status,
    since: kept.hours && new Date(Date.now() - kept.hours * 3_600_000).toISOString(),
  });

  function stop(text) {
    clearTimeout(timer);
    fill(liveness, text);
  }

  async function anew() {
    events = [];
    cursor = null;
    paged = false;
    round += 1;
    wait = SOON;
    fill(list, loading("events"));
    fill(more);
    await look(true);
  }

  /** Looks at the newest, says what is new, and looks again later: the later, the less happens. */
  async function look(first = false) {
    clearTimeout(timer);
    const mine = round;
    try {
      const page = await get("events", query(), signal);
      if (mine !== round || signal.aborted) return;
      const fresh = first ? [] : news(events, page.events);
      const apart = gap(events, page.events, page.cursor);
      const found = apart ? page.events : merged(events, page.events, page.cursor);
      if (apart) [paged, round] = [false, round + 1]; // what is older is loaded again, when somebody asks for it
      const gone = found.length !== events.length;
      if (!paged) cursor = page.cursor;
      events = found;
      if (first || fresh.length || gone) draw();
      if (fresh.length) announce(fresh);
      wait = fresh.length ? SOON : Math.min(LATE, wait * 1.5);
      const which = events.length > page.events.length ? ` at the newest ${count(page.events.length)}` : "";
      fill(liveness, kept.live ? `Live: looked${which} at ${new Date().toLocaleTimeString()}.` : "Not live.");
    } catch (error) {
      if (signal.aborted || mine !== round) return;
      if (first) {
        fill(list, problem(error, anew));
        stop("");
        return;
      }
      wait = Math.min(WORST, wait * 2);
      fill(liveness, `Not live: ${error.message} Tries again in ${Math.round(wait / 1000)} s.`);
      if (error.status === 401) return;
    }
    if (kept.live && !document.hidden) timer = setTimeout(look, wait);
  }

  async function older() {
    const mine = round;
    fill(more, loading("older events"));
    try {
      const page = await get("events", { ...query(), cursor }, signal);
      if (mine !== round) return;
      events = joined(events, page.events);
      cursor = page.cursor;
      paged = true;
      draw();
    } catch (error) {
      if (!signal.aborted && mine === round) fill(more, problem(error, older));
    }
  }

  function draw() {
    const wanted = kept.search.toLowerCase().split(/\s+/);
    const found = events.filter((event) => {
      const text = [event.unit, event.group, event.instance_id, event.zone, event.detail].join("\n").toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
    fill(summary, events.length ? `${count(found.length)} of the ${count(events.length)} loaded${cursor ? " so far" : ""}` : "There are no such events.");
    fill(list, found.length ? table("Terminations, newest first", COLUMNS, found) : null);
    fill(more, cursor && h("button", { type: "button", onclick: older }, "Load older ones"));
  }

  await anew();
}

function announce(fresh) {
  const told = fresh.slice(0, 3).map((event) => `${event.unit} ${words(event.status)}`).join(", ");
  fill(document.getElementById("news"), `${fresh.length === 1 ? "One event" : `${fresh.length} events`}: ${told}${fresh.length > 3 ? " and more" : ""}.`);
}
