// Charts. No text becomes HTML or a script, so the page's Content-Security-Policy stays strict.

import { clean, h } from "./dom.js";
import { count, day as shortDay, dayAfter, duration, longDay } from "./format.js";

const MONTH = new Intl.DateTimeFormat("en", { month: "short", timeZone: "UTC" });
export const DATE = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });
const DAY_MS = 86_400_000;
const LEAST_DAYS = 8 * 7;
export const time = (day) => Date.parse(`${day}T00:00:00Z`);

/** Creates an SVG element. */
export function s(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(name, clean(value));
  for (const child of children.flat(Infinity)) if (child) element.append(child instanceof Node ? child : clean(child));
  return element;
}

let library;

/** Loads the chart library, most of the page's bytes, before the first chart is drawn. Returns the class of charts. */
const loadLibrary = () => (library ??= import("../report/echarts.js").then(() => import("../report/chart.js")).then(() => class extends Chart {
  /** Removes the chart, but not the content of its box: ECharts would use HTML, which the page's policy forbids. */
  remove() {
    Object.assign(this.drawn.getZr().painter, { root: null, clear() {} });
    super.remove();
  }
}));

/**
 * A chart of ECharts, drawn as those of reports: Chart, axis and other helpers come from report/chart.js.
 * @param {string} label for screen readers
 * @param {number} height in pixels
 * @param {function} option returns the options of ECharts, in the current colours
 */
export function chart(label, height, option) {
  const box = h("div", { class: "chart", role: "img", "aria-label": label });
  box.style.height = `${height}px`;
  const sized = new ResizeObserver(() => {
    if (!box.clientWidth) return;
    sized.disconnect();
    loadLibrary().then(
      (PageChart) => box.isConnected && new PageChart(box, label, () => basis({ grid: GRID, tooltip: hint(), ...option() })), // follows its box until that is removed
      () => box.replaceChildren(h("p", { class: "muted" }, "The chart cannot be drawn: its program could not be loaded.")),
    );
  });
  sized.observe(box);
  return box;
}

// Plain text: the page's Content-Security-Policy forbids ECharts to write HTML.
const hint = () => tooltip({ trigger: "item", renderMode: "richText", formatter: ({ data }) => data.name ?? "" });

/** A chart that is drawn for the width that it has. `draw` returns its content and its height. */
export function fitted(label, draw) {
  const place = h("div", { class: "chart" });
  let before = 0;
  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (!width || Math.round(width) === before) return;
    before = Math.round(width);
    const [content, height] = draw(before);
    place.replaceChildren(s("svg", { role: "img", "aria-label": label, width: before, height, viewBox: `0 0 ${before} ${height}` }, content));
  }).observe(place);
  return place;
}

/** The axes of a chart of seconds, up to `most`, from the first day with data: a new deployment's year is mostly empty. */
function overDays(first, until, most) {
  const latest = dayAfter(until, 1 - LEAST_DAYS);
  const since = first < latest ? first : latest;
  const short = time(until) - time(since) < 2 * LEAST_DAYS * DAY_MS;
  const customValues = short ? mondays(since, until) : months(since, until).map(([begin]) => begin); // ECharts' own are irregular
  const labels = short ? DATE : MONTH;
  const step = stepTo(most);
  return {
    useUTC: true,
    xAxis: { ...axis(""), type: "time", min: time(since), max: time(until) + DAY_MS, axisTick: { customValues }, splitLine: { show: false }, axisLabel: { customValues, color: colour("soft"), hideOverlap: true, formatter: (at) => labels.format(at) } },
    yAxis: { ...axis(""), type: "value", min: 0, max: Math.ceil(most / step) * step, interval: step, axisLabel: { color: colour("soft"), formatter: tickText } },
  };
}

const GRID = { left: 4, right: 14, top: 12, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" };
const BLUE = { colour: 0, dash: 0, symbol: 0 };

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

/** The Mondays between two days, in milliseconds. */
function mondays(since, until) {
  const list = [];
  for (let day = dayAfter(since, (8 - new Date(time(since)).getUTCDay()) % 7); day <= until; day = dayAfter(day, 7)) list.push(time(day));
  return list;
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

/** A step of an axis of seconds that starts at 0: at most three of them reach `most`, and a few seconds fill the axis. */
export const stepTo = (most) => [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200].find((one) => most / one <= 3) ?? 14_400;

/** A label of such an axis. */
export const tickText = (value) => (value < 60 ? `${Number(value.toFixed(1))} s` : duration(value).replace(/ 00s$/, "").replace(/ 00m$/, ""));

export const ENOUGH = 5; // values for a chart; fewer are words

/** The median and the longest recovery of each week of a year. */
export function trend(weeks, until) {
  const lately = weeks.at(-1);
  const text = `Median recovery of each week; in the week of ${shortDay(lately.week)}: ${duration(lately.median)}, longest ${duration(lately.longest)}`;
  const most = Math.max(...weeks.map((one) => one.longest));
  const middle = (one) => Math.min(time(one.week) + 3.5 * DAY_MS, time(until) + DAY_MS / 2); // the chart ends with today
  const drawn = chart(text, 200, () => ({
    ...overDays(weeks[0].week, until, most),
    series: [
      lineSeries({ name: "", style: BLUE }, weeks.flatMap((one) => [[middle(one), one.median], [middle(one), one.longest], [null, null]]), { silent: true, lineStyle: { width: 4, color: colour("s1"), opacity: 0.25 } }),
      lineSeries({ name: "", style: BLUE }, weeks.map((one) => ({ value: [middle(one), one.median], name: `Week of ${longDay(one.week)}: median ${duration(one.median)}, longest ${duration(one.longest)}, ${count(one.recoveries)} ${one.recoveries === 1 ? "recovery" : "recoveries"}` })), { showSymbol: true }),
    ],
  }));
  return [
    drawn,
    h("ul", { class: "key" }, h("li", { class: "dot" }, "median of the week"), h("li", { class: "range" }, "up to the longest")),
    table("Weeks as a table", ["Week of", "Recoveries", "Median", "Longest"], weeks.toReversed().map((one) => [one.week, count(one.recoveries), duration(one.median), duration(one.longest)])),
  ];
}

/** The counts of one day, in words. */
export function dayText({ hits, unrecovered, leashed }) {
  const parts = [`${count(hits)} ${hits === 1 ? "hit" : "hits"}`];
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
  const most = Math.max(1, ...Object.values(days).map((one) => one.hits));
  const first = dayAfter(since, -((new Date(time(since)).getUTCDay() + 6) % 7));
  const all = Object.values(days);
  const total = all.reduce((sum, one) => sum + one.hits, 0);
  const unrecovered = all.reduce((sum, one) => sum + one.unrecovered, 0);
  const text = `${count(total)} ${total === 1 ? "hit" : "hits"} in a year, ${count(unrecovered)} not recovered; the most on one day: ${count(total ? most : 0)}`;
  const drawn = fitted(text, (width) => {
    const columns = Math.floor((time(until) - time(first)) / DAY_MS / 7) + 1;
    const left = width > 560 ? 34 : 0;
    const size = Math.min(18, Math.max(5, (width - left) / columns));
    const at = (day) => { const n = Math.round((time(day) - time(first)) / DAY_MS); return [left + Math.floor(n / 7) * size, 16 + (n % 7) * size]; };
    const cells = [];
    for (let day = since; day <= until; day = dayAfter(day, 1)) {
      const [x, y] = at(day);
      const one = days[day];
      const level = one?.hits ? Math.ceil((one.hits / most) * 4) : 0;
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
  drawn.classList.add("heat");
  const listed = Object.entries(days).toReversed();
  const key = [["l2", "few", all.some((one) => one.hits && one.hits <= most / 2 && !one.unrecovered)], ["l4", most > 1 ? "many" : "one", all.some((one) => one.hits > most / 2 && !one.unrecovered)], ["unrecovered", "not recovered", unrecovered > 0], ["leashed", "leashed: would be hit", all.some((one) => one.leashed && !one.hits)]];
  return [
    h("p", { class: "muted" }, `${text}.`),
    drawn,
    h("ul", { class: "key" }, key.map(([kind, label, there]) => there && h("li", { class: kind }, label))),
    listed.length > 0 && table("Days as a table", ["Day", "Events"], listed.map(([day, one]) => [h("a", { href: to(day) }, longDay(day)), dayText(one)])),
  ];
}
