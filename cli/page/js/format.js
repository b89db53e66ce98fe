// Moments, times and amounts as people read them.

const MOMENT = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
  hourCycle: "h23", timeZoneName: "short",
});
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZoneName: "short" });
const DAY = new Intl.DateTimeFormat("en", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
const LONG_DAY = new Intl.DateTimeFormat("en", { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });

/** An element for a moment of the API, on this machine's clock; null when there is none. */
export function moment(text) {
  if (!text) return null;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  const element = document.createElement("time");
  element.dateTime = at.toISOString();
  element.title = at.toISOString();
  element.textContent = MOMENT.format(at);
  return element;
}

/** A time of this day, on this machine's clock: "03:58:10 UTC". */
export const clock = (at) => CLOCK.format(at);

/** "Mon, Nov 23" of 2026-11-23. */
export const day = (text) => DAY.format(new Date(`${text}T00:00:00Z`));
export const longDay = (text) => LONG_DAY.format(new Date(`${text}T00:00:00Z`));

/** The first day that it can still be: on which calendar's clock it ends, the API knows. */
export const stillToday = () => new Date(Date.now() - 12 * 3_600_000).toISOString().slice(0, 10);

/** A day so many days after another, as YYYY-MM-DD. */
export function dayAfter(text, days) {
  const at = new Date(`${text}T00:00:00Z`);
  at.setUTCDate(at.getUTCDate() + days);
  return at.toISOString().slice(0, 10);
}

/** "4m 05s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return null;
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  if (hours) return `${hours}h ${two(minutes)}m ${two(rest)}s`;
  return minutes ? `${minutes}m ${two(rest)}s` : `${rest}s`;
}

export const seconds = (value) => (value === null || value === undefined ? null : `${value.toFixed(1)} s`);
export const count = (value) => value.toLocaleString("en");

export function money(amount, currency) {
  if (amount === null || amount === undefined) return null;
  const digits = amount !== 0 && Math.abs(amount) < 1 ? 4 : 2;
  return `${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: digits })} ${currency}`;
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  return value < 100 ? `${Number(value.toPrecision(3))} ms` : `${Math.round(value).toLocaleString("en")} ms`;
}

/** With a full stop. */
export const sentence = (text) => text.replace(/\.?$/, ".");

/** Where a value of a policy comes from, in words. */
export const whence = (source) => (source === "item" ? "item in GroupTags" : source);

/** How many of how many are shown, such as "3 of 8 units". */
export const share = (shown, all, what, more) => `${shown === all ? "" : `${count(shown)} of `}${count(all)} ${all === 1 ? what : `${what}s`}${more ? " loaded so far" : ""}`;

/** A value of a policy. */
export function plain(value) {
  if (value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length)) return "–";
  if (value === true) return "yes";
  if (value === false) return "no";
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** Who: of an ARN the last part. */
export const who = (arn) => String(arn).split(/[/:]/).pop();

const STATUS = {
  RECOVERED: "good", SUCCEEDED: "good",
  CLAIMED: "warn", TERMINATED: "warn", PARTIAL: "warn", RUNNING: "info", ADMITTED: "info", STOPPING: "warn",
  UNRECOVERED: "bad", FAILED: "bad", INVALID: "bad",
  LEASHED: "info", PENDING: "quiet",
};
export const kind = (status) => STATUS[status] ?? "quiet";
/** A status as words. */
export const words = (status) => String(status).toLowerCase().replaceAll("_", " ");

const PLAIN = /^[A-Za-z0-9_.-]$/;

/** The API's form of a name as one segment of a path, ~ in place of %. */
function segment(text) {
  const dots = /^\.*$/.test(text); // a segment of nothing but dots would be a step along the path
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => {
    const char = String.fromCharCode(byte);
    return PLAIN.test(char) && !(dots && char === ".") ? char : `~${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return bytes.join("");
}

/** The address of a unit's view. */
export const unitAddress = (unit) => `#/units/${segment(unit)}`;

/** The address of an event's view. */
export function eventAddress(eventId) {
  const [head, ...rest] = eventId.split("#");
  return `#/events/${head}~${segment(rest.join("#"))}`;
}
