// Charts as SVG elements. No text becomes HTML or a script, so the page's Content-Security-Policy stays strict.

import { clean, h } from "./dom.js";
import { count, day as shortDay, dayAfter, duration, longDay } from "./format.js";

const MONTH = new Intl.DateTimeFormat("en", { month: "short", timeZone: "UTC" });
const DAY_MS = 86_400_000;
const time = (day) => Date.parse(`${day}T00:00:00Z`);

/** Creates an SVG element. */
export function s(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(name, clean(value));
  for (const child of children.flat(Infinity)) if (child) element.append(child instanceof Node ? child : clean(child));
  return element;
}

/** A chart that is drawn for the width that it has. */
export function fitted(label, height, draw) {
  const place = h("div", { class: "chart" });
  let before = 0;
  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (!width || Math.round(width) === before) return;
    before = Math.round(width);
    const [content, tall] = draw(before);
    place.replaceChildren(s("svg", { role: "img", "aria-label": label, width: before, height: tall ?? height, viewBox: `0 0 ${before} ${tall ?? height}` }, content));
  }).observe(place);
  return place;
}

/** Round steps of seconds for an axis up to `most`, at most five. */
function steps(most) {
  const step = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200].find((one) => most / one <= 4) ?? 14_400;
  return Array.from({ length: Math.floor(most / step) + 2 }, (_, index) => index * step);
}

/** The months between two days: [first day, name]. */
function months(since, until) {
  const list = [];
  const at = new Date(time(since));
  at.setUTCDate(1);
  while (at.getTime() <= time(until)) {
    if (at.getTime() >= time(since)) list.push([at.getTime(), MONTH.format(at)]);
    at.setUTCMonth(at.getUTCMonth() + 1);
  }
  return list;
}

/** The axes of a chart of seconds over days; returns them and the scales. */
function frame(width, height, since, until, most) {
  const [left, right, top, bottom] = [58, 12, 10, 24];
  const ticks = steps(most);
  const begin = time(since);
  const x = (at) => left + ((at - begin) / (time(until) + DAY_MS - begin)) * (width - left - right);
  const y = (seconds) => height - bottom - (seconds / ticks.at(-1)) * (height - top - bottom);
  const axes = [
    ticks.map((one) => [
      s("line", { class: "grid", x1: left, x2: width - right, y1: y(one), y2: y(one) }),
      s("text", { x: left - 8, y: y(one) + 4, "text-anchor": "end" }, one ? duration(one).replace(/ 00s$/, "").replace(/ 00m$/, "") : "0"),
    ]),
    months(since, until).filter((_, index) => width > 560 || index % 3 === 0).map(([at, name]) => s("text", { x: x(at), y: height - 6 }, name)),
  ];
  return { axes, x, y };
}

/** A table that is folded up until a viewer opens it. */
export const table = (summary, head, rows) =>
  h(
    "details",
    {},
    h("summary", {}, summary),
    h("div", { class: "scroll" }, h("table", { class: "few plain" },
      h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value) => h("td", {}, value ?? "–")))))),
    ),
  );

/**
 * One unit's recoveries over a year, with the threshold above which each was slow.
 * @param {Array<{at: string, day: string, seconds: number|null, slow_above: number|null, slow: boolean, status: string}>} points oldest first
 * @param {string} since first day
 * @param {string} until last day
 */
export function recoveries(points, since, until) {
  const known = points.filter((one) => one.seconds !== null);
  const missing = points.length - known.length;
  const slow = known.filter((one) => one.slow).length;
  const text = `${count(known.length)} ${known.length === 1 ? "recovery" : "recoveries"} in a year, ${count(slow)} of them slow, and ${count(missing)} not in time`;
  const thresholds = points.filter((one) => one.slow_above !== null);
  const most = Math.max(30, ...known.map((one) => one.seconds), ...thresholds.map((one) => one.slow_above));
  const chart = fitted(text, 220, (width) => {
    const { axes, x, y } = frame(width, 220, since, until, most);
    const stairs = thresholds.map((one, index) => `${index ? `H${x(Date.parse(one.at)).toFixed(1)}V` : `M${x(Date.parse(one.at)).toFixed(1)} `}${y(one.slow_above).toFixed(1)}`).join("");
    return [[
      axes,
      stairs && s("path", { class: "threshold", d: `${stairs}H${width - 12}` }),
      known.map((one) => s("circle", { class: one.slow ? "slow" : "dot", cx: x(Date.parse(one.at)), cy: y(one.seconds), r: one.slow ? 5 : 4 }, s("title", {}, `${longDay(one.day)}: ${duration(one.seconds)}${one.slow ? ", slow" : ""}`))),
      points.filter((one) => one.seconds === null).map((one) => s("path", { class: "lost", d: cross(x(Date.parse(one.at)), y(most)) }, s("title", {}, `${longDay(one.day)}: not recovered in time`))),
    ]];
  });
  return [
    h("p", { class: "muted" }, `${text}.`),
    chart,
    h("ul", { class: "key" },
      h("li", { class: "dot" }, "recovery"), h("li", { class: "slow" }, "slow recovery"), missing > 0 && h("li", { class: "lost" }, "not recovered in time"),
      thresholds.length ? h("li", { class: "threshold" }, "slow above this: twice the usual time, at least a minute more") : h("li", {}, "5 earlier recoveries by the same method give a threshold for slow")),
    table("Recoveries as a table", ["Day", "Recovery time", "Slow above"], points.toReversed().map((one) => [one.day, one.seconds === null ? "not recovered" : duration(one.seconds), one.slow_above === null ? null : duration(one.slow_above)])),
  ];
}

const cross = (x, y) => `M${x - 5} ${y - 5}l10 10M${x + 5} ${y - 5}l-10 10`;

/** The median and the longest recovery of each week of a year. */
export function trend(weeks, since, until) {
  const lately = weeks.at(-1);
  const text = `Median recovery of each week; in the week of ${shortDay(lately.week)}: ${duration(lately.median)}, longest ${duration(lately.longest)}`;
  const most = Math.max(30, ...weeks.map((one) => one.longest));
  const middle = (one) => time(one.week) + 3.5 * DAY_MS;
  const chart = fitted(text, 200, (width) => {
    const { axes, x, y } = frame(width, 200, dayAfter(weeks[0].week < since ? weeks[0].week : since, 0), until, most);
    const line = weeks.map((one, index) => `${index ? "L" : "M"}${x(middle(one)).toFixed(1)} ${y(one.median).toFixed(1)}`).join("");
    return [[
      axes,
      weeks.map((one) => s("line", { class: "range", x1: x(middle(one)), x2: x(middle(one)), y1: y(one.median), y2: y(one.longest) })),
      s("path", { class: "median", d: line }),
      weeks.map((one) => s("circle", { class: "dot", cx: x(middle(one)), cy: y(one.median), r: 3 }, s("title", {}, `Week of ${longDay(one.week)}: median ${duration(one.median)}, longest ${duration(one.longest)}, ${count(one.recoveries)} ${one.recoveries === 1 ? "recovery" : "recoveries"}`))),
    ]];
  });
  return [
    chart,
    h("ul", { class: "key" }, h("li", { class: "dot" }, "median of the week"), h("li", { class: "range" }, "up to the longest")),
    table("Weeks as a table", ["Week of", "Recoveries", "Median", "Longest"], weeks.toReversed().map((one) => [one.week, count(one.recoveries), duration(one.median), duration(one.longest)])),
  ];
}

/** The counts of one day, in words. */
export function dayText({ terminations, unrecovered, leashed }) {
  const parts = [`${count(terminations)} ${terminations === 1 ? "termination" : "terminations"}`];
  if (unrecovered) parts.push(`${count(unrecovered)} not recovered`);
  if (leashed) parts.push(`${count(leashed)} prevented by the leash`);
  return parts.join(", ");
}

/**
 * A heat map of a year: a column for each week, a row for each weekday.
 * @param {object} days counts by day
 * @param {string} since first day
 * @param {string} until last day
 * @param {function} to the address of a day's events
 */
export function heatMap(days, since, until, to) {
  const most = Math.max(1, ...Object.values(days).map((one) => one.terminations));
  const first = dayAfter(since, -((new Date(time(since)).getUTCDay() + 6) % 7));
  const total = Object.values(days).reduce((sum, one) => sum + one.terminations, 0);
  const unrecovered = Object.values(days).reduce((sum, one) => sum + one.unrecovered, 0);
  const text = `${count(total)} ${total === 1 ? "termination" : "terminations"} in a year, ${count(unrecovered)} not recovered; the most on one day: ${count(total ? most : 0)}`;
  const chart = fitted(text, 120, (width) => {
    const columns = Math.floor((time(until) - time(first)) / DAY_MS / 7) + 1;
    const left = width > 560 ? 34 : 0;
    const size = Math.min(18, Math.max(5, (width - left) / columns));
    const at = (day) => { const n = Math.round((time(day) - time(first)) / DAY_MS); return [left + Math.floor(n / 7) * size, 16 + (n % 7) * size]; };
    const cells = [];
    for (let day = since; day <= until; day = dayAfter(day, 1)) {
      const [x, y] = at(day);
      const one = days[day];
      const level = one?.terminations ? Math.ceil((one.terminations / most) * 4) : 0;
      const kind = one?.unrecovered ? "unrecovered" : level ? `l${level}` : one?.leashed ? "leashed" : "l0";
      const cell = s("rect", { class: kind, x: x + 0.75, y: y + 0.75, width: size - 1.5, height: size - 1.5, rx: size > 9 ? 2.5 : 1 }, s("title", {}, `${longDay(day)}: ${one ? dayText(one) : "none"}`));
      if (one) cell.addEventListener("click", () => (location.hash = to(day)));
      cells.push(cell);
    }
    return [[
      months(since, until).filter((_, index) => width > 560 || index % 2 === 0).map(([begin, name]) => s("text", { x: at(new Date(begin).toISOString().slice(0, 10))[0], y: 11 }, name)),
      left ? ["Mon", "", "Wed", "", "Fri"].map((name, row) => name && s("text", { x: 0, y: 16 + row * size + size * 0.75 }, name)) : null,
      cells,
    ], 18 + 7 * size];
  });
  chart.classList.add("heat");
  const listed = Object.entries(days).toReversed();
  return [
    h("p", { class: "muted" }, `${text}.`),
    chart,
    h("ul", { class: "key" }, h("li", { class: "l2" }, "few"), h("li", { class: "l4" }, "many"), h("li", { class: "unrecovered" }, "not recovered"), h("li", { class: "leashed" }, "leashed: would be terminated")),
    listed.length > 0 && table("Days as a table", ["Day", "Events"], listed.map(([day, one]) => [h("a", { href: to(day) }, longDay(day)), dayText(one)])),
  ];
}
