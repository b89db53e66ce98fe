// Marks data that is old: a tab can sleep for hours, and the API can stop answering.

import { fill, h } from "./dom.js";
import { clock } from "./format.js";

const EVERY = 5_000;

/**
 * Notes when an element's data was read. The class `old` marks it once it is older than the limit, and its descendant
 * `.age` says how old.
 * @param {Element} element
 * @param {Date} at
 * @param {number} limit milliseconds
 */
export function stamp(element, at, limit) {
  element.dataset.at = at.getTime();
  element.dataset.limit = limit;
  check(element);
}

/** A line that says when the content of a view was loaded, see {@link loaded}. */
export const loadedLine = () => h("p", { class: "muted" }, h("span", {}), h("span", { class: "age" }));

/** Notes in the line of a view that its content was loaded at `at`, and marks it once it is older than the limit. */
export function loaded(line, at, limit, word = "Loaded") {
  fill(line.firstChild, `${word} at ${clock(at)}`);
  stamp(line, at, limit);
}

function check(element) {
  const age = Date.now() - element.dataset.at;
  const old = age > element.dataset.limit;
  element.classList.toggle("old", old);
  const text = old ? ` · ${ago(age)}` : "";
  const place = element.querySelector(".age");
  if (place && place.textContent !== text) place.textContent = text;
}

/** Formats milliseconds as "8 hours ago". */
export function ago(milliseconds) {
  const [value, unit] = milliseconds < 90_000 ? [milliseconds / 1000, "second"] : milliseconds < 5_400_000 ? [milliseconds / 60_000, "minute"] : milliseconds < 172_800_000 ? [milliseconds / 3_600_000, "hour"] : [milliseconds / 86_400_000, "day"];
  const rounded = Math.round(value);
  return `${rounded} ${unit}${rounded === 1 ? "" : "s"} ago`;
}

const all = () => document.querySelectorAll("[data-at]").forEach(check);
setInterval(all, EVERY);
// Before anything is requested: a tab that wakes up shows at once that its data is old.
document.addEventListener("visibilitychange", all);
addEventListener("pageshow", all);
