// Charts. No text becomes HTML or a script, so the page's Content-Security-Policy stays strict.

import { clean, h } from "./dom.js";
import { count, day as shortDay, dayAfter, duration, longDay } from "./format.js";

const MONTH = new Intl.DateTimeFormat("en", { month: "short", timeZone: "UTC" });
const DATE = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });
const DAY_MS = 86_400_000;
const LEAST_DAYS = 8 * 7;
const time = (day) => Date.parse(`${day}T00:00:00Z`);

/** Creates an SVG element. */
function s(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(name, clean(value));
  for (const child of children.flat(Infinity)) if (child) element.append(child instanceof Node ? child : clean(child));
  return element;
}

class PageChart extends Chart {
  /** Removes the chart, but not the content of its box: ECharts would use HTML, which the page's policy forbids. */
  remove() {
    Object.assign(this.drawn.getZr().painter, { root: null, clear() {} });
    super.remove();
  }
}

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
    new PageChart(box, label, () => basis({ grid: GRID, tooltip: hint(), ...option() })); // follows its box until that is removed
  });
  sized.observe(box);
  return box;
}

// Plain text: the page's Content-Security-Policy forbids ECharts to write HTML.
const hint = () => tooltip({ trigger: "item", renderMode: "richText", formatter: ({ data }) => data.name ?? "" });

/** A square chart that is drawn for the width that it has. */
function fitted(label, draw) {
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

/**
 * The axes of a chart of seconds, up to `most`, from the first day with data: a new deployment's year is mostly empty.
 * With `beyond`, a band above all seconds has this label: for what has no number of seconds.
 */
function overDays(first, until, most, beyond = "") {
  const latest = dayAfter(until, 1 - LEAST_DAYS);
  const since = first < latest ? first : latest;
  const short = time(until) - time(since) < 2 * LEAST_DAYS * DAY_MS;
  const customValues = short ? mondays(since, until) : months(since, until).map(([begin]) => begin); // ECharts' own are irregular
  const labels = short ? DATE : MONTH;
  const step = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200].find((one) => most / one <= 4) ?? 14_400;
  const top = (Math.floor(most / step) + 1) * step;
  const ticks = Array.from({ length: top / step + 1 }, (_, n) => n * step);
  const seconds = (one) => (one > top ? beyond : one ? duration(one).replace(/ 00s$/, "").replace(/ 00m$/, "") : "0");
  return {
    useUTC: true,
    xAxis: { ...axis(""), type: "time", min: time(since), max: time(until) + DAY_MS, axisTick: { customValues }, splitLine: { show: false }, axisLabel: { customValues, color: colour("soft"), hideOverlap: true, formatter: (at) => labels.format(at) } },
    yAxis: {
      ...axis(""), type: "value", min: 0, max: beyond ? top + step : top, interval: step, axisTick: { customValues: ticks },
      axisLabel: { color: colour("soft"), customValues: beyond ? [...ticks, top + step / 2] : ticks, formatter: seconds },
    },
  };
}

/** The band of `overDays` for what has no number of seconds: [from, middle, to]. */
const band = ({ yAxis: { max, interval } }) => [max - interval, max - interval / 2, max];

const GRID = { left: 4, right: 14, top: 12, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" };
const [BLUE, ORANGE] = [{ colour: 0, dash: 0, symbol: 0 }, { colour: 1, dash: 1, symbol: 0 }];
const CROSS = "path://M0 0L10 10M10 0L0 10";

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

/**
 * One unit's recoveries over a year, with the threshold above which each was slow.
 * @param {Array<{at: string, day: string, seconds: number|null, slow_above: number|null, slow: boolean, status: string}>} points oldest first
 * @param {string} until last day
 */
export function recoveries(points, until) {
  const known = points.filter((one) => one.seconds !== null);
  const missing = points.length - known.length;
  const slow = known.filter((one) => one.slow).length;
  const text = `${count(known.length)} ${known.length === 1 ? "recovery" : "recoveries"} in a year, ${count(slow)} of them slow, and ${count(missing)} not in time`;
  const thresholds = points.filter((one) => one.slow_above !== null);
  const most = Math.max(30, ...known.map((one) => one.seconds), ...thresholds.map((one) => one.slow_above));
  const drawn = chart(text, 220, () => {
    const axes = overDays(dayAfter(points[0].day, -1), until, most, missing ? "not in time" : ""); // east of UTC, a day begins the day before
    const [from, middle, to] = band(axes);
    const dots = (list, symbolSize, itemStyle, words, more = {}) => ({ type: "scatter", symbolSize, itemStyle, data: list.map((one) => ({ value: [Date.parse(one.at), one.seconds ?? middle], name: `${longDay(one.day)}: ${words(one)}` })), ...more });
    const stairs = thresholds.map((one) => [Date.parse(one.at), one.slow_above]);
    return {
      ...axes,
      series: [
        stairs.length && lineSeries({ name: "", style: ORANGE }, [...stairs, [time(until) + DAY_MS, stairs.at(-1)[1]]], { step: "end", silent: true }),
        dots(known.filter((one) => !one.slow), 8, { color: colour("s1") }, (one) => duration(one.seconds)),
        dots(known.filter((one) => one.slow), 10, { color: colour("s2") }, (one) => `${duration(one.seconds)}, slow`),
        dots(points.filter((one) => one.seconds === null), 11, { color: "none", borderColor: colour("bad"), borderWidth: 2.5 }, () => "not recovered in time", { symbol: CROSS, markArea: { silent: true, itemStyle: { color: colour("bad"), opacity: 0.08 }, data: missing ? [[{ yAxis: from }, { yAxis: to }]] : [] } }),
      ].filter(Boolean),
    };
  });
  return [
    h("p", { class: "muted" }, `${text}.`),
    drawn,
    h("ul", { class: "key" },
      h("li", { class: "dot" }, "recovery"), h("li", { class: "slow" }, "slow recovery"), missing > 0 && h("li", { class: "lost" }, "not recovered in time"),
      thresholds.length ? h("li", { class: "threshold" }, "slow above this: twice the usual time, at least a minute more") : h("li", {}, "5 earlier recoveries by the same method give a threshold for slow")),
    table("Recoveries as a table", ["Day", "Recovery time", "Slow above"], points.toReversed().map((one) => [one.day, one.seconds === null ? "not recovered" : duration(one.seconds), one.slow_above === null ? null : duration(one.slow_above)])),
  ];
}

/** The median and the longest recovery of each week of a year. */
export function trend(weeks, until) {
  const lately = weeks.at(-1);
  const text = `Median recovery of each week; in the week of ${shortDay(lately.week)}: ${duration(lately.median)}, longest ${duration(lately.longest)}`;
  const most = Math.max(30, ...weeks.map((one) => one.longest));
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
  const drawn = fitted(text, (width) => {
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
  drawn.classList.add("heat");
  const listed = Object.entries(days).toReversed();
  return [
    h("p", { class: "muted" }, `${text}.`),
    drawn,
    h("ul", { class: "key" }, h("li", { class: "l2" }, "few"), h("li", { class: "l4" }, "many"), h("li", { class: "unrecovered" }, "not recovered"), h("li", { class: "leashed" }, "leashed: would be terminated")),
    listed.length > 0 && table("Days as a table", ["Day", "Events"], listed.map(([day, one]) => [h("a", { href: to(day) }, longDay(day)), dayText(one)])),
  ];
}
