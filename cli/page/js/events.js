// Terminations on record, newest first, and as they happen.

import { get } from "./api.js";
import { badge, facts, fill, h, heading, link, loading, name, problem, select, still, table } from "./dom.js";
import { clock, count, kind, moment, seconds, sentence, share, unitAddress, words } from "./format.js";
import { beyond, gap, joined, merged, news, renewed } from "./known.js";

const PAGE = 50;
const BY_ID = 10; // older ones under way that are asked for at a look, each by itself
const [SOON, LATE] = [3_000, 30_000]; // milliseconds until the next look: when something has happened, and when nothing does
const WORST = 60_000; // after errors

const STATUS = {
  CLAIMED: "about to be terminated",
  TERMINATED: "terminated; its group is watched until it is whole again",
  RECOVERED: "its group was whole again in time",
  UNRECOVERED: "its group was not whole again in time; its unit is left alone until somebody puts it back",
  LEASHED: "would have been terminated, were the deployment not leashed",
  GROUP_DELETED: "its group was deleted meanwhile",
  GONE_ELSEWHERE: "somebody else terminated it first",
  ABANDONED: "was not terminated in time, and lives",
};
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

export async function show(main, signal) {
  let events = [];
  let cursor = null;
  let paged = false; // whether older ones than the first page are loaded
  let wait = SOON;
  let timer;
  let round = 0; // of the filters: answers to earlier ones are dropped
  const asked = new Map(); // when older ones were asked for last
  const list = h("div", {});
  const summary = h("p", { class: "muted", role: "status" });
  const liveness = h("p", { class: "muted", id: "liveness" });
  const more = h("div", { class: "buttons" });
  const search = h("input", { type: "search", id: "search", value: kept.search, placeholder: "unit, group, instance, detail", autocomplete: "off", spellcheck: "false", oninput: (event) => { kept.search = event.target.value; draw(); } });
  const status = select([["", "Any status"], ...Object.keys(STATUS).map((one) => [one, words(one)])], kept.status, (value) => { kept.status = value; anew(); });
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
    h("details", { class: "legend" }, h("summary", {}, "What the statuses mean"), facts(Object.entries(STATUS).map(([one, means]) => [badge(words(one), kind(one)), means]))),
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
    asked.clear();
    wait = SOON;
    fill(list, loading("events"));
    fill(more);
    await look(true);
  }

  /** Looks at the newest, and at older ones under way; says what is new, and looks again later: the later, the less happens. */
  async function look(first = false) {
    clearTimeout(timer);
    let mine = round;
    const at = new Date();
    try {
      const page = await get("events", query(), signal);
      if (mine !== round || signal.aborted) return;
      const apart = gap(events, page.events, page.cursor);
      if (apart) [paged, mine] = [false, ++round]; // what is older is loaded again, when somebody asks for it
      if (!paged) cursor = page.cursor;
      let fresh = found(apart ? page.events : merged(events, page.events, page.cursor), page.events, first);
      const left = beyond(events, page.events, asked);
      fresh += await renew(left.slice(0, BY_ID), mine);
      if (mine !== round || signal.aborted) return;
      wait = fresh ? SOON : Math.min(LATE, wait * 1.5);
      if (!document.hidden) fill(liveness, kept.live ? liveAt(at, left.length) : "Not live.");
    } catch (error) {
      if (signal.aborted || mine !== round) return;
      if (first && !events.length) {
        fill(list, problem(error, anew));
        stop("");
        return;
      }
      wait = Math.min(WORST, wait * 2);
      fill(liveness, `Not live: ${sentence(error.message)} Tries again in ${Math.round(wait / 1000)} s.`);
      if (error.status === 401) return;
    }
    clearTimeout(timer); // of another look that was under way
    if (kept.live && !document.hidden) timer = setTimeout(look, wait);
  }

  /** These are known now. Shows what has changed, and says which of those that were looked at are new: how many. */
  function found(now, looked, first = false) {
    const fresh = first ? [] : news(events, looked);
    const changed = first || fresh.length || now.length !== events.length;
    events = now;
    if (changed) still(list, draw);
    if (fresh.length) announce(fresh);
    return fresh.length;
  }

  /** Asks for each of these, which no look at the newest tells of; how many have changed. */
  async function renew(some, mine) {
    if (!some.length) return 0;
    const one = async (event) => {
      asked.set(event.event_id, Date.now());
      try {
        const now = await get(`events/${encodeURIComponent(event.id)}`, {}, signal);
        return [event.event_id, kept.status && now.status !== kept.status ? null : now];
      } catch (error) {
        if (error.status === 404) return [event.event_id, null]; // its time on record is over
        throw error;
      }
    };
    const answers = new Map(await Promise.all(some.map(one)));
    if (mine !== round || signal.aborted) return 0;
    return found(renewed(events, answers), [...answers.values()].filter(Boolean));
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
    fill(summary, events.length ? share(found.length, events.length, "event", cursor) : kept.status || kept.hours ? "There are no such events." : "There are no events yet.");
    fill(list, found.length ? table("Terminations, newest first", COLUMNS, found) : null);
    fill(more, cursor && h("button", { type: "button", onclick: older }, "Load older ones"));
  }

  await anew();
}

function liveAt(at, left) {
  const turns = left > BY_ID ? ` ${count(left)} older ones are under way: they are looked at in turn, ${BY_ID} at a time.` : "";
  return `Live: looked at ${clock(at)}.${turns}`;
}

function announce(fresh) {
  const told = fresh.slice(0, 3).map((event) => `${event.unit} ${words(event.status)}`).join(", ");
  fill(document.getElementById("news"), `${fresh.length === 1 ? "One event" : `${fresh.length} events`}: ${told}${fresh.length > 3 ? " and more" : ""}.`);
}
