// The steps of a cell: those that are over, the present one with its time, and those that are ahead.

import { fill, h, name } from "./dom.js";
import { duration } from "./format.js";

const FEW = 6; // points of a phase up to which each is a step of its own
const BROKEN = { FAILED: "failed", INVALID: "failed", STOPPED: "stopped" }; // the state of the last step of such a cell
const AFTER = new Set(["collect", "teardown"]); // steps after the phases

/**
 * The steps of a cell in order: { name, state, began, seconds, expected, at, of }.
 * `state` is over, failed, stopped, now or ahead; `seconds` how long it took; `expected` in seconds, null if unknown; `at` and `of` count points that share a step.
 */
export function steps(cell, timetable) {
  const planned = [{ step: "launch", seconds: null, points: 0 }, ...timetable].flatMap(each);
  const begun = cell.steps.filter((one) => one.phase !== "over");
  const end = cell.steps.find((one) => one.phase === "over")?.at;
  const list = [];
  for (const { phase, at } of begun) {
    const step = place(phase, planned);
    const last = list.at(-1);
    if (last?.name === step) {
      if (!phase.endsWith(".between")) last.at += 1;
    } else list.push({ name: step, began: Date.parse(at), at: phase.endsWith(".between") ? 0 : 1, ...expectedOf(step, planned) });
  }
  list.forEach((one, index) => {
    const until = list[index + 1]?.began ?? (end && Date.parse(end));
    Object.assign(one, { state: until ? "over" : "now", seconds: until ? Math.max(0, (until - one.began) / 1000) : null });
  });
  const broken = BROKEN[cell.status];
  if (broken) Object.assign(list.findLast((one) => !AFTER.has(one.name)) ?? {}, { state: broken });
  if (end || broken) return list;
  const known = new Set(list.map((one) => one.name));
  const from = Math.max(-1, ...planned.map((one, index) => (known.has(one.name) ? index : -1)));
  return [...list, ...planned.slice(from + 1).filter((one) => !known.has(one.name)).map((one) => ({ ...one, state: "ahead" }))];
}

/** A planned step, or each of its points. */
function each({ step, seconds, points }) {
  if (!points) return [{ name: step, expected: seconds, of: 0 }];
  if (points > FEW) return [{ name: step, expected: seconds, of: points }];
  return Array.from({ length: points }, (_, n) => ({ name: `${step}.${n + 1}`, expected: seconds / points, of: 0 }));
}

/** The step in which a phase such as measure.3.between is shown. */
function place(phase, planned) {
  const point = phase.replace(/\.between$/, "");
  const whole = point.replace(/\.\d+$/, "");
  return planned.some((one) => one.name === whole) ? whole : point;
}

const expectedOf = (step, planned) => {
  const one = planned.find((other) => other.name === step);
  return { expected: one?.expected ?? null, of: one?.of ?? 0 };
};

/** The seconds that a cell is expected to take from now on; null if they are unknown. */
export function left(cell, timetable, now = Date.now()) {
  if (!timetable.length) return null;
  return steps(cell, timetable).reduce((sum, one) => {
    if (one.state === "ahead") return sum + (one.expected ?? 0);
    return one.state === "now" ? sum + Math.max(0, (one.expected ?? 0) - (now - one.began) / 1000) : sum;
  }, 0);
}

/** When a run probably ends, in milliseconds; null if that is unknown. Cells that have not started wait for others. */
export function end(run, cells, timetable, now = Date.now()) {
  const going = cells.filter((one) => one.status === "RUNNING");
  if (!timetable.length || !going.length) return null;
  const waiting = Math.max(0, run.cells - new Set(cells.filter((one) => one.status !== "PENDING").map((one) => one.cell.split("-")[0])).size);
  const whole = timetable.reduce((sum, one) => sum + one.seconds, 0);
  const present = Math.max(...going.map((one) => left(one, timetable, now)));
  return now + (present + Math.ceil(waiting / going.length) * whole) * 1000;
}

const STATES = { over: "over", failed: "failed here", stopped: "stopped here", now: "now", ahead: "ahead" };

/** The steps as a strip. `tick` brings the present step up to date. */
export function strip(cell, timetable) {
  const list = steps(cell, timetable);
  if (!list.length) return null;
  return h("ol", { class: "steps", "aria-label": `Steps of ${cell.cell}` }, list.map((one) => {
    const times = h("small", one.state === "now" ? { "data-began": String(one.began), "data-expected": String(one.expected ?? "") } : {}, one.state === "ahead" ? one.expected && `about ${duration(one.expected)}` : duration(one.seconds));
    return h("li", { class: one.state, "aria-current": one.state === "now" && "step" },
      h("span", {}, name(one.name), one.of > 0 && ` ${one.at ? `${one.at} of ` : ""}${one.of}`, h("span", { class: "unseen" }, `: ${STATES[one.state]}`)),
      times,
      one.state === "now" && one.expected && h("progress", { max: String(one.expected), "aria-label": `Progress of ${one.name}` }));
  }));
}

/** Brings the present steps inside an element up to date. */
export function tick(element, now = Date.now()) {
  for (const place of element.querySelectorAll("[data-began]")) {
    const seconds = Math.max(0, (now - place.dataset.began) / 1000);
    const expected = Number(place.dataset.expected);
    const text = `${duration(seconds)}${expected ? ` of about ${duration(expected)}` : ""}`;
    if (place.textContent !== text) fill(place, text);
    const bar = place.parentElement.querySelector("progress");
    if (bar) bar.value = Math.min(expected, seconds);
  }
}
