// Formats times, amounts and names for people.

import { h } from "./dom.js";

const MOMENT = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
  hourCycle: "h23", timeZone: "UTC",
});
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone: "UTC" });
const HOUR = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" });
const DAY = new Intl.DateTimeFormat("en", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
const LONG_DAY = new Intl.DateTimeFormat("en", { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });

let changes = [{ at: -Infinity, minutes: 0, name: "UTC" }];

/** Sets when the clocks of this machine's zone change, as the server knows them: the browser's own zones can be outdated. */
export function keepTime(known) {
  changes = known.map(({ at, minutes, name }, n) => ({ at: n ? Date.parse(at) : -Infinity, minutes, name }));
}

/** Formats a moment in this machine's time zone, and names the zone. */
function local(format, at) {
  const { minutes, name } = changes.findLast((change) => change.at <= Number(at));
  return `${format.format(Number(at) + minutes * 60_000)} ${name}`;
}

/** A <time> element for a timestamp of the API, in this machine's time zone; null without one. */
export function moment(text) {
  if (!text) return null;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  const element = document.createElement("time");
  element.dateTime = at.toISOString();
  element.title = at.toISOString();
  element.textContent = local(MOMENT, at);
  return element;
}

const ISO = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/;

/** A text of the API, with its times in this machine's time zone; "" for "". */
export const timed = (text) => text && text.split(ISO).map((part) => (ISO.test(part) ? moment(part) : part));

const SHORT = new Intl.DateTimeFormat("en", { weekday: "short", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" });

/** A <time> element for a moment of coming days, in this machine's time zone: "Fri, Nov 27, 20:50 UTC". */
export function soon(text) {
  const element = moment(text);
  element.textContent = local(SHORT, new Date(text));
  return element;
}

/** The time of day in this machine's time zone: "03:58:10 UTC". */
export const clock = (at) => local(CLOCK, at);

/** The time of day without seconds: "03:58 UTC". */
export const hour = (at) => local(HOUR, at);

/** Formats 2026-11-23 as "Mon, Nov 23". */
export const day = (text) => DAY.format(new Date(`${text}T00:00:00Z`));
export const longDay = (text) => LONG_DAY.format(new Date(`${text}T00:00:00Z`));

/** The earliest date that any calendar can still have: only the API knows the calendar's time zone. */
export const earliestToday = () => new Date(Date.now() - 12 * 3_600_000).toISOString().slice(0, 10);

/** Adds days to a date; returns YYYY-MM-DD. */
export function dayAfter(text, days) {
  const at = new Date(`${text}T00:00:00Z`);
  at.setUTCDate(at.getUTCDate() + days);
  return at.toISOString().slice(0, 10);
}

/** Formats seconds as "4m 05s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return null;
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  if (hours) return `${hours}h ${two(minutes)}m ${two(rest)}s`;
  return minutes ? `${minutes}m ${two(rest)}s` : `${rest}s`;
}

/** Formats an expected duration: "12 min". */
export const minutes = (seconds) => (seconds < 5400 ? `${Math.max(1, Math.round(seconds / 60))} min` : `${short(seconds / 3600)} h`);

export const seconds = (value) => (value === null || value === undefined ? null : `${value.toFixed(1)} s`);
/** Formats a recovery time: "3.1 s", or from a minute on "4m 05s". */
export const recoveryTime = (value) => (value < 60 ? seconds(value) : duration(value));
export const count = (value) => value.toLocaleString("en");

/** A measured number with three significant digits, or all before the point, as in reports: 20,833, 9.31 and 0.0423. */
export const short = (value) => value.toLocaleString("en", Math.abs(value) < 1000 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });

/** An amount as in reports: `$12.30`, and less than a dollar with more digits: `$0.0423`. */
export function money(amount, currency) {
  if (amount === null || amount === undefined) return null;
  const size = Math.abs(amount);
  const digits = size > 0 && size < 1 ? Math.min(6, 2 - Math.floor(Math.log10(size))) : 2;
  const sign = (amount < 0 ? "\u2212" : "") + (currency === "USD" ? "$" : `${currency}\u00a0`);
  return sign + size.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: digits });
}

/** The cost of a run or fleet, or its estimate. */
export function cost(run) {
  if (run.cost) return [money(run.cost.amount, run.cost.currency), run.cost.unknown.length > 0 && h("small", { class: "source" }, "without items of unknown price")];
  return run.estimate ? [money(run.estimate.expected, run.estimate.currency), h("small", { class: "source" }, "expected")] : null;
}

/** The setting of a point, and its repeat: "threads=50, mix=read:80/write:20, #2"; "" of none. */
export function setting({ parameters, repeat }) {
  const values = Object.entries(parameters ?? {}).map(([key, value]) => `${key}=${settingValue(value)}`);
  return [...values, repeat > 1 && `#${repeat}`].filter(Boolean).join(", ");
}

function settingValue(value, between = "/") {
  if (Array.isArray(value)) return value.join(between);
  if (value === null || typeof value !== "object") return String(value);
  return Object.keys(value).sort().map((key) => `${key}:${settingValue(value[key], "+")}`).join("/");
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  return `${short(value)} ms`;
}

/** Ends a text with a full stop, if it does not end a sentence. */
export const sentence = (text) => text.replace(/[.?!]?$/, (end) => end || ".");

/** The source of a policy value, in words. */
export const sourceName = (source) => (source === "item" ? "item in GroupTags" : source);

/** The number of shown items and of all, such as "3 of 8 units". */
export const share = (shown, all, noun, more) => `${shown === all ? "" : `${count(shown)} of `}${count(all)} ${all === 1 ? noun : `${noun}s`}${more ? " loaded so far" : ""}`;

/** Formats a policy value. */
export function plain(value) {
  if (value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length)) return "–";
  if (value === true) return "yes";
  if (value === false) return "no";
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** The last part of an ARN. */
export const who = (arn) => String(arn).split(/[/:]/).pop();

/** Who has halted the deployment, when and why; of an older API, and without a halt by people, who changed the switch last. */
export const halter = (now) => now.halt ?? { at: now.changed_at, by: now.changed_by, reason: now.reason };

const STATUS = {
  RECOVERED: "good", SUCCEEDED: "good",
  CLAIMED: "warn", TERMINATED: "warn", PARTIAL: "warn", RUNNING: "info", ADMITTED: "info", STOPPING: "warn",
  UNRECOVERED: "bad", FAILED: "bad", INVALID: "bad",
  HELD: "good", BROKEN: "bad", UNKNOWN: "warn",
  LEASHED: "info", PENDING: "quiet",
};
export const kind = (status) => STATUS[status] ?? "quiet";
const STATE = { "taking part": "good", malformed: "bad", unrecovered: "bad", broken: "bad", protected: "quiet", "too small": "quiet" };
/** The kind of badge for a unit's state. */
export const stateKind = (state) => STATE[state] ?? "info";
/** Formats a status as words. */
export const words = (status) => String(status).toLowerCase().replaceAll("_", " ");

const PLAIN = /^[A-Za-z0-9_.-]$/;

/** Encodes a name as one path segment, as the API does: with ~ instead of %. */
function segment(text) {
  const dots = /^\.*$/.test(text); // a segment of dots only would be a relative path
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => {
    const char = String.fromCharCode(byte);
    return PLAIN.test(char) && !(dots && char === ".") ? char : `~${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return bytes.join("");
}

/** The address of a unit's view. */
export const unitAddress = (unit) => `#/units/${segment(unit)}`;

/** The unit of an event, by its id: `<day>#<unit>`, or `od#<unit>#<key>`. */
export const unitOf = (eventId) => (eventId.startsWith("od#") ? eventId.slice(3, eventId.lastIndexOf("#")) : eventId.slice(eventId.indexOf("#") + 1));

/** The address of an event's view. */
export function eventAddress(eventId) {
  const [head, ...rest] = eventId.split("#");
  return `#/events/${head}~${segment(rest.join("#"))}`;
}
