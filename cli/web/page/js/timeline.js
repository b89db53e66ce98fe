// The timeline of one event: a row for each stage, for the recovery with its bounds, for alarms, and for the verdict.

import { fitted, s, stepTo, tickText } from "./charts.js";
import { duration, recoveryTime, words } from "./format.js";
import { awaitsVerdict, hitAt, inFlight, least, recoversFrom, stages, staysOf } from "./stages.js";

const MOST_ALARMS = 8; // rows; alarms that went off come first
const NARROW = 560; // pixels: below it, the name of a row is above its bar
const [NAMES, VALUES] = [176, 84]; // pixels of the columns beside the bars
const LETTER = 6.6; // pixels, on average
const KNEE = 0.6; // the part of the width that the recovery keeps if the time after it is longer
const NEAR = 1.5; // a limit that is farther than so many times everything else is an arrow
const LABEL = 54; // pixels that the label of a tick needs
const BAND = { OK: [6, "OK"], ALARM: [14, "ALARM"], INSUFFICIENT_DATA: [10, "no data"] }; // height and name by state
const LOST = { UNRECOVERED: "not in time", GROUP_DELETED: "group deleted" };

/**
 * Draws an event whose instance was hit.
 * @param {object} event as GET /events/{id} returns it
 * @param {number} now milliseconds
 */
export function timeline(event, now) {
  const rows = rowsOf(event, now);
  const drawn = fitted(rows.map(({ what, value, without }) => `${what}: ${without ?? value}`).join("; "), (width) => picture(rows, width));
  drawn.classList.add("timeline");
  return drawn;
}

/** The seconds from the hit to a moment; null without one. */
const after = (event, text) => (text ? Math.max(0, (Date.parse(text) - Date.parse(hitAt(event))) / 1000) : null);

/** The rows: { kind, what, value, from, to, without, bands }; `from` and `to` in seconds, null without a moment. */
function rowsOf(event, now) {
  const { hypothesis, verdict, abort } = event;
  const at = (text) => after(event, text);
  const sinceHit = Math.max(0, (now - Date.parse(hitAt(event))) / 1000);
  const start = { kind: "start", what: event.injection ? "Injected" : "Terminated", value: "0 s", from: 0, to: 0 };
  const rows = [start, ...(event.injection ? faultRows(event, at, sinceHit) : [])];
  const began = at(recoversFrom(event)) ?? 0;
  let before = began;
  for (const { key, what, at: text, without } of staysOf(event) || !recoversFrom(event) ? [] : stages(event)) {
    const to = at(text);
    const from = key === "healthy" ? (at(event.stages.in_service) ?? before) : before;
    rows.push(to === null ? { kind: key, what, without, to } : { kind: key, what, value: past(to), from: Math.min(from, to), to });
    if (to !== null && key !== "healthy") before = Math.max(before, to);
  }
  if (recoversFrom(event)) rows.push(recovery(event, at, sinceHit, began));
  const limit = hypothesis?.recovery_within;
  if (limit) rows.push({ kind: "limit", what: "Must recover within", value: duration(limit), to: began + limit });
  if (abort) rows.push({ kind: "abort", what: `${abort.alarm} went off`, value: past(at(abort.at)), to: at(abort.at) });
  rows.push(...alarms(event, at));
  const settled = at(verdict ? verdict.until : event.settles_at);
  if (hypothesis?.success_alarms.length && settled !== null) rows.push({ kind: `verdict ${verdict?.value ?? ""}`, what: "End of the watch", value: past(settled), to: settled });
  if (inFlight(event) || awaitsVerdict(event)) rows.push({ kind: "now", what: "Now", value: past(sinceHit), to: sinceHit });
  return rows;
}

const past = (seconds) => `+${recoveryTime(seconds)}`;

function recovery(event, at, sinceHit, from) {
  const what = "Recovered";
  const [to, limit] = [at(event.recovered_at), event.hypothesis?.recovery_within];
  if (to !== null) return { kind: limit && to - from > limit ? "recovered late" : "recovered", what, value: past(to), from, to, sure: least(event) ? from + least(event) : to };
  const end = inFlight(event) ? sinceHit : at(event.verdict?.until ?? event.recover_by);
  return { kind: inFlight(event) ? "recovered open" : "recovered late open", what, value: LOST[event.status] ?? "not yet", from, to: end };
}

/** The rows of a lasting fault: how long its command ran, and until when its end was not proven. */
function faultRows({ injection, terminated_at: replaced }, at, sinceHit) {
  const { end_request: request, over_at: over, proof } = injection;
  const [ran, proven] = [at(over), at(proof?.at)];
  return [
    { kind: "fault", what: "Fault", value: ran === null ? "not over" : past(ran), from: 0, to: ran ?? Math.min(sinceHit, at(injection.ends_by) ?? sinceHit) },
    ...(request ? [{ kind: "abort", what: "Asked to end", value: past(at(request.at)), to: at(request.at) }] : []),
    ...(ran === null && proven === null ? [] : [{ kind: "proof", what: proof ? "Proven to be over" : "Not proven yet", value: proof ? past(proven) : "not yet", from: ran ?? 0, to: proven ?? sinceHit }]),
    ...(replaced ? [{ kind: "replaced", what: "Terminated by Troop", value: past(at(replaced)), to: at(replaced) }] : []),
  ];
}

/** A row for each success alarm with its states as bands, as the verdict recorded them. */
function alarms({ hypothesis, verdict }, at) {
  if (!verdict) return (hypothesis?.success_alarms ?? []).slice(0, MOST_ALARMS).map((what) => ({ kind: "alarm", what, without: "read for the verdict", to: null }));
  const until = at(verdict.until);
  const went = (one) => one.states.some(({ state }) => state === "ALARM");
  return verdict.alarms.toSorted((a, b) => went(b) - went(a) || Boolean(b.doubt) - Boolean(a.doubt)).slice(0, MOST_ALARMS).map((one) => {
    const bands = one.states.map(({ at: since, state }, index) => ({ from: at(since), to: at(one.states[index + 1]?.at) ?? until, state }));
    const value = went(one) ? "ALARM" : one.doubt ? "doubtful" : bands.some(({ state }) => state !== "OK") ? "no data" : "OK";
    return bands.length ? { kind: "alarm", what: one.name, value, bands, to: until } : { kind: "alarm", what: one.name, without: "its states are not known", to: null };
  });
}

/** Where seconds are between 0 and 1: the time after a recovery is drawn tighter if it is longer. Also { end, knee }. */
function scale(rows) {
  const farthest = (some) => Math.max(1, ...some.map(({ to }) => to ?? 0));
  const limit = rows.find(({ kind }) => kind === "limit")?.to ?? 0;
  const others = farthest(rows.filter(({ kind }) => kind !== "limit"));
  const end = limit <= NEAR * others ? Math.max(others, limit) : others;
  const whole = rows.find(({ sure }) => sure !== undefined)?.to;
  const knee = whole && end - whole > whole ? whole : null;
  const part = (seconds) => (knee === null ? seconds / end : seconds <= knee ? (seconds / knee) * KNEE : KNEE + ((seconds - knee) / (end - knee)) * (1 - KNEE));
  return { part, end, knee };
}

function picture(rows, width) {
  const narrow = width < NARROW;
  const [left, right, height] = narrow ? [4, width, 38] : [NAMES, width - VALUES, 24];
  const { part, end, knee } = scale(rows);
  const x = (seconds) => left + part(Math.min(seconds, end)) * (right - left - 6);
  const bottom = rows.length * height;
  const middle = (index) => index * height + (narrow ? 26 : 12);
  const cut = (text, room) => (text.length * LETTER > room ? `${text.slice(0, Math.floor(room / LETTER) - 1)}…` : text);
  const ticks = [...steps(0, knee ?? end), ...(knee === null ? [] : steps(knee, end))];
  let free = -Infinity;
  const labels = ticks.filter((one) => x(one) >= free && (free = x(one) + LABEL));
  const lines = rows.flatMap((row, index) => (["limit", "now"].includes(row.kind) || row.kind.startsWith("verdict") ? [{ ...row, top: middle(index) }] : [])).filter(({ to }) => to <= end);
  return [[
    labels.map((one) => [s("line", { class: "grid", x1: x(one), x2: x(one), y1: 0, y2: bottom }), s("text", { x: x(one), y: bottom + 15, "text-anchor": one ? "middle" : "start" }, tickText(one))]),
    knee === null ? null : s("path", { class: "knee", d: `M${x(knee)} 0v${bottom + 3}` }),
    lines.map(({ kind, to }) => s("line", { class: `rule ${kind}`, x1: x(to), x2: x(to), y1: 0, y2: bottom })),
    rows.map((row, index) => s(
      "g", { class: row.kind },
      s("title", {}, `${row.what}: ${row.without ?? row.value}`),
      s("text", { x: 0, y: narrow ? index * height + 13 : middle(index) + 4 }, cut(row.what, narrow ? width - VALUES - 8 : NAMES - 10)),
      row.without ? s("text", { class: "without", x: left + 4, y: middle(index) + 4 }, row.without) : s("text", { class: "value", x: width, y: narrow ? index * height + 13 : middle(index) + 4, "text-anchor": "end" }, row.value),
      row.to === null ? null : marks(row, middle(index), x, end),
    )),
  ], bottom + 20];
}

/** The moments of an axis's ticks, in seconds. */
function steps(from, to) {
  const step = stepTo(to - from);
  const first = Math.floor(from / step) + (from ? 1 : 0);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, n) => (first + n) * step);
}

const bar = (x, from, to, y, height, more = {}) => s("rect", { x: x(from), y: y - height / 2, width: Math.max(2, x(to) - x(from)), height, rx: 2, ...more });

/** What a row shows between its name and its value. */
function marks({ kind, from, to, sure, bands }, y, x, end) {
  const at = x(to);
  if (bands) return bands.map((one) => bar(x, one.from, one.to, y, (BAND[one.state] ?? BAND.INSUFFICIENT_DATA)[0], { class: one.state in BAND ? one.state : "INSUFFICIENT_DATA" }));
  if (kind === "limit" && to > end) return s("path", { class: "mark", d: `M${at - 12} ${y}h10m-5 -4l5 4l-5 4` });
  if (kind === "abort") return s("path", { class: "mark", d: `M${at - 5} ${y - 5}l10 10m0 -10l-10 10` });
  if (kind === "start") return s("circle", { cx: at + 4, cy: y, r: 4.5 });
  if (from === undefined) return s("path", { class: "mark", d: `M${at} ${y - 6}l5 6l-5 6l-5 -6z` });
  if (sure === undefined || sure === to) return bar(x, from, to, y, 10);
  return [bar(x, from, sure, y, 10), bar(x, sure, to, y, 10, { class: "unsure" })];
}

/** The states of an alarm in words: [name, state, moment] for each, of the verdict's record. */
export const statesOf = ({ states }) => states.map(({ at, state }) => [BAND[state]?.[1] ?? words(state), at]);

/** The legend of what a timeline has. */
export function legend(event) {
  const rows = rowsOf(event, Date.now());
  const seen = new Set(rows.flatMap(({ bands }) => bands ?? []).map(({ state }) => state));
  return [
    ...(least(event) ? [["unsure", "between the last check that found it short and the first that found it whole"]] : []),
    ...Object.entries(BAND).filter(([state]) => seen.has(state)).map(([state, [, label]]) => [state, label === "OK" ? "alarm OK" : label === "ALARM" ? "alarm went off" : "alarm without data"]),
    ...(scale(rows).knee === null ? [] : [["knee", "after the recovery, time is drawn tighter"]]),
  ];
}
