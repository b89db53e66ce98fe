// Recorded terminations and lasting faults, newest first, with live updates.

import { filtersOf, remember } from "./address.js";
import { get } from "./api.js";
import { badge, facts, field, fill, h, headline, leftOut, link, loading, name, problem, select, still, table } from "./dom.js";
import { ending, recoveredAfter, verdictOf } from "./event_words.js";
import { beyond, gap, joined, merged, news, renewed } from "./event_list.js";
import { clock, count, eventAddress, kind, moment, sentence, share, timed, unitAddress, words } from "./format.js";

const PAGE = 50;
const BY_ID = 10; // older events in progress that one update requests, each by its id
const [SOON, LATE] = [3_000, 30_000]; // milliseconds until the next update: after news, and without any
const WORST = 60_000; // after errors

const STATUS = {
  CLAIMED: "the instance is reserved, and its termination or lasting fault is about to begin",
  RUNNING: "a lasting fault was injected; until its end is proven and its group has recovered",
  TERMINATED: "the instance was terminated; Troop checks the recovery of its group",
  RECOVERED: "the group recovered in time",
  UNRECOVERED: "the group did not recover in time; the unit is skipped until someone opts it in again",
  LEASHED: "the instance would have been hit if the deployment were not leashed",
  GROUP_DELETED: "the group was deleted in the meantime",
  GONE_ELSEWHERE: "someone or something else terminated the instance first",
  ABANDONED: "nothing hit the instance, and the claim was abandoned",
};
const VERDICT = {
  HELD: "the group recovered within the time that its policy gives it, and no success alarm went off",
  BROKEN: "a success alarm went off, or the group took longer; the unit is skipped until someone opts it in again",
  UNKNOWN: "what was recorded cannot tell, for example because an alarm had no data",
};
const HOURS = [["", "All time"], ["1", "Last hour"], ["24", "Last day"], ["168", "Last week"], ["720", "Last 30 days"]];

const DEFAULTS = { q: "", status: "", verdict: "", hours: "", day: "" }; // in the address
let filters = { ...DEFAULTS };
let following = true; // whether the view is live
const DAY = /^\d{4}-\d\d-\d\d$/;
const AROUND = 14; // hours: the farthest that the day of a calendar is from that of UTC

export const COLUMNS = [
  { label: "Time", cell: (event) => link(eventAddress(event.event_id), moment(event.at)) },
  { label: "Unit", cell: (event) => link(unitAddress(event.unit), name(event.unit)) },
  { label: "Status", cell: (event) => badge(words(event.status), kind(event.status)) },
  { label: "Verdict", cell: verdictOf },
  { label: "Fault", cell: (event) => event.method },
  { label: "Recovery time", number: true, cell: recoveredAfter },
  { label: "Group", cell: (event) => name(event.group) },
  { label: "Instance", cell: (event) => [h("code", {}, event.instance_id || "–"), event.zone && h("small", { class: "source" }, event.zone)] },
  { label: "Detail", wide: true, cell: (event) => timed(ending(event)) },
];

export async function show(main, signal) {
  filters = filtersOf(DEFAULTS);
  if (!Object.hasOwn(STATUS, filters.status)) filters.status = "";
  if (!Object.hasOwn(VERDICT, filters.verdict)) filters.verdict = "";
  if (!HOURS.some(([value]) => value === filters.hours)) filters.hours = "";
  if (!DAY.test(filters.day) || Number.isNaN(Date.parse(filters.day))) filters.day = "";
  let events = [];
  let cursor = null;
  let paged = false; // whether events older than the first page are loaded
  let wait = SOON;
  let timer;
  let round = 0; // of the filters: responses to earlier ones are dropped
  const requestTimes = new Map(); // of older events, by event_id
  const list = h("div", { class: "dense" });
  const summary = h("p", { class: "muted", role: "status" });
  const liveness = h("p", { class: "muted", id: "liveness" });
  const malformed = h("div", {});
  const more = h("div", { class: "buttons" });
  const search = h("input", { type: "search", id: "search", value: filters.q, placeholder: "unit, group, instance, fault, detail", autocomplete: "off", spellcheck: "false", oninput: (event) => { choose({ q: event.target.value }); draw(); } });
  const status = select([["", "Any status"], ...Object.keys(STATUS).map((one) => [one, words(one)])], filters.status, (value) => { choose({ status: value }, true); reload(); });
  const verdict = select([["", "Any verdict"], ...Object.keys(VERDICT).map((one) => [one, words(one)])], filters.verdict, (value) => { choose({ verdict: value }, true); reload(); });
  const hours = select(HOURS, filters.hours, (value) => { choose({ hours: value, ...(value && { day: "" }) }, true); day.value = filters.day; reload(); });
  const day = h("input", { type: "date", id: "day", value: filters.day, onchange: (event) => { choose({ day: event.target.value, ...(event.target.value && { hours: "" }) }, true); hours.value = filters.hours; reload(); } });
  const live = h("input", { type: "checkbox", id: "live", checked: following, onchange: (event) => { following = event.target.checked; wait = SOON; following ? update() : stop("Not live."); } });
  status.id = "status";
  verdict.id = "verdict";
  hours.id = "hours";
  fill(
    main,
    headline("Events", h("label", { class: "check", for: "live" }, live, " Live")),
    h(
      "div",
      { class: "filters", role: "search" },
      field("Search", search, "", true),
      field("Status", status),
      field("Verdict", verdict),
      field("Period", hours),
      field("Day", day),
    ),
    h("div", { class: "sides" }, summary, liveness),
    malformed,
    list,
    more,
    h("details", { class: "legend" }, h("summary", {}, "Meaning of each status and verdict"), facts(Object.entries({ ...STATUS, ...VERDICT }).map(([one, meaning]) => [badge(words(one), kind(one)), meaning]))),
  );
  const visibility = () => (document.hidden ? stop("Not live while the page is hidden.") : following && ((wait = SOON), update()));
  document.addEventListener("visibilitychange", visibility, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));

  const query = () => ({
    limit: PAGE,
    status: filters.status,
    verdict: filters.verdict,
    since: filters.day ? near(-AROUND) : filters.hours && new Date(Date.now() - filters.hours * 3_600_000).toISOString(),
    until: filters.day && near(24 + AROUND),
  });
  const near = (more) => new Date(Date.parse(filters.day) + more * 3_600_000).toISOString();

  function choose(values, step = false) {
    Object.assign(filters, values);
    remember(filters, DEFAULTS, step);
  }

  function stop(text) {
    clearTimeout(timer);
    fill(liveness, text);
  }

  async function reload() {
    events = [];
    cursor = null;
    paged = false;
    round += 1;
    requestTimes.clear();
    wait = SOON;
    fill(list, loading("events"));
    fill(more);
    await update(true);
  }

  /** Requests the newest events and some older ones in progress, announces changes, and schedules the next update. */
  async function update(first = false) {
    clearTimeout(timer);
    let mine = round;
    const at = new Date();
    try {
      const page = await get("events", query(), signal);
      if (mine !== round || signal.aborted) return;
      const apart = gap(events, page.events, page.cursor);
      if (apart) [paged, mine] = [false, ++round]; // older events load again on demand
      if (!paged) cursor = page.cursor;
      fill(malformed, leftOut(page));
      let changes = apply(apart ? page.events : merged(events, page.events, page.cursor), page.events, first);
      const pending = beyond(events, page.events, requestTimes);
      changes += await renew(pending.slice(0, BY_ID), mine);
      if (mine !== round || signal.aborted) return;
      wait = changes ? SOON : Math.min(LATE, wait * 1.5);
      liveness.classList.remove("old");
      if (!document.hidden) fill(liveness, following ? liveAt(at, pending.length) : "Not live.");
    } catch (error) {
      if (signal.aborted || mine !== round) return;
      if (first && !events.length) {
        fill(list, problem(error, reload));
        stop("");
        return;
      }
      wait = Math.min(WORST, wait * 2);
      liveness.classList.add("old");
      fill(liveness, `Not live: ${sentence(error.message)} Next attempt in ${Math.round(wait / 1000)} s.`);
      if (error.status === 401) return;
    }
    clearTimeout(timer); // of another update in progress
    if (following && !document.hidden) timer = setTimeout(update, wait);
  }

  /** Replaces the events, redraws after changes, and announces which events of the response are new. Returns their number. */
  function apply(current, response, first = false) {
    const fresh = first ? [] : news(events, response);
    const changed = first || fresh.length || current.length !== events.length;
    events = current;
    if (changed) still(list, draw);
    if (fresh.length) announce(fresh);
    return fresh.length;
  }

  /** Requests each of these events, which are not among the newest. Returns how many have changed. */
  async function renew(pending, mine) {
    if (!pending.length) return 0;
    const one = async (event) => {
      requestTimes.set(event.event_id, Date.now());
      try {
        const current = await get(`events/${encodeURIComponent(event.id)}`, {}, signal);
        const other = (filters.status && current.status !== filters.status) || (filters.verdict && current.verdict?.value !== filters.verdict);
        return [event.event_id, other ? null : current];
      } catch (error) {
        if (error.status === 404) return [event.event_id, null]; // its retention has ended
        throw error;
      }
    };
    const responses = new Map(await Promise.all(pending.map(one)));
    if (mine !== round || signal.aborted) return 0;
    return apply(renewed(events, responses), [...responses.values()].filter(Boolean));
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
    const terms = filters.q.toLowerCase().split(/\s+/);
    const matches = events.filter((event) => {
      const text = [event.unit, event.group, event.instance_id, event.method, event.zone, ending(event)].join("\n").toLowerCase();
      return (!filters.day || event.day === filters.day) && terms.every((term) => text.includes(term));
    });
    fill(summary, events.length ? share(matches.length, events.length, "event", cursor) : filters.status || filters.verdict || filters.hours || filters.day ? "No events match these filters." : "There are no events yet.");
    fill(list, matches.length ? table("Events, newest first", COLUMNS, matches) : null);
    fill(more, cursor && h("button", { type: "button", onclick: older }, "Load older events"));
  }

  await reload();
}

function liveAt(at, pending) {
  const turns = pending > BY_ID ? ` ${count(pending)} older events are in progress; each update requests ${BY_ID} of them.` : "";
  return `Live: updated at ${clock(at)}.${turns}`;
}

function announce(fresh) {
  const text = fresh.slice(0, 3).map((event) => `${event.unit} ${words(event.status)}${event.verdict ? `, ${words(event.verdict.value)}` : ""}`).join(", ");
  fill(document.getElementById("news"), `${fresh.length === 1 ? "One event" : `${fresh.length} events`}: ${text}${fresh.length > 3 ? " and more" : ""}.`);
}
