"use strict";
// Shared by all charts: colours of the page, selectable lines, tips, paper.

document.querySelector(".unscripted").remove();

const MOST_LINES = 7;
const PAPER_WIDTH = 690; // CSS pixels between the margins of A4
const COLOURS = 7;
const DASHES = [[], [7, 4], [2, 3], [12, 3, 2, 3], [12, 3, 2, 3, 2, 3]];
const SYMBOLS = ["circle", "rect", "triangle", "diamond"];
const charts = [];
let onPaper = false;

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function lineColour(style) {
  return colour(`s${(style.colour % COLOURS) + 1}`);
}

function plain(value) {
  const size = Math.abs(value);
  if (size >= 99.95 || size === 0) return Math.round(value).toLocaleString("en-US");
  if (size >= 9.995) return String(Number(value.toFixed(1)));
  return String(Number(value.toFixed(size >= 0.0995 ? 2 : 4)));
}

function tick(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${Number((value / 1e9).toPrecision(4))}G`;
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(4))}k`;
  return String(Number(value.toPrecision(6)));
}

function clock(seconds) {
  const size = Math.round(Math.abs(seconds));
  const parts = [Math.floor(size / 60) % 60, size % 60];
  if (size >= 3600) parts.unshift(Math.floor(size / 3600));
  const text = parts.map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":");
  return (seconds < 0 ? "−" : "") + text;
}

// Returns a logarithmic axis if values spread over more than two decades, otherwise one from 0.
function valueAxis(values, unit) {
  const known = values.filter((value) => value > 0);
  const least = known.reduce((a, b) => Math.min(a, b), Infinity);
  const most = known.reduce((a, b) => Math.max(a, b), 0);
  const spread = most > 100 * least;
  return {
    ...axis(unit),
    type: spread ? "log" : "value",
    ...(spread ? { min: 10 ** Math.floor(Math.log10(least)) } : {}),
  };
}

function axis(name) {
  return {
    name,
    nameTextStyle: { color: colour("soft"), align: "left" },
    nameGap: 10,
    axisLine: { show: true, onZero: false, lineStyle: { color: colour("soft") } },
    axisTick: { lineStyle: { color: colour("soft") } },
    axisLabel: { color: colour("soft"), hideOverlap: true, formatter: tick },
    splitLine: { show: true, lineStyle: { color: colour("line") } },
    minorTick: { show: false },
  };
}

function below(name) {
  return { ...axis(name), nameLocation: "middle", nameGap: 26, nameTextStyle: { color: colour("soft") } };
}

function lineSeries(line, data, more = {}) {
  const shade = lineColour(line.style);
  return {
    type: "line",
    name: line.name,
    data,
    symbol: SYMBOLS[line.style.symbol % SYMBOLS.length],
    symbolSize: 6,
    showSymbol: false,
    lineStyle: { width: 2, color: shade, type: line.style.dash % DASHES.length ? DASHES[line.style.dash % DASHES.length] : "solid" },
    itemStyle: { color: shade },
    emphasis: { disabled: true },
    ...more,
  };
}

// Builds rows of [colour, name, value] under a head from elements, so that names are always text.
function tip(head, rows) {
  const box = make("div", { class: "tip" }, make("strong", {}, head));
  for (const [shade, name, value] of rows) {
    const mark = make("span", {}, "■ ");
    mark.style.color = shade;
    box.append(make("div", {}, make("span", {}, mark, name), make("b", {}, value)));
  }
  return box;
}

function tooltip(more) {
  return {
    confine: true,
    backgroundColor: colour("surface"),
    borderColor: colour("line"),
    textStyle: { color: colour("ink") },
    extraCssText: "max-width: 90vw",
    ...more,
  };
}

function basis(more) {
  return {
    animation: false,
    textStyle: { color: colour("ink"), fontFamily: getComputedStyle(document.body).fontFamily },
    grid: { left: 4, right: 16, top: 30, bottom: 28, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    ...more,
  };
}

const isNarrow = () => innerWidth < 600 && !onPaper;

// Returns the width of the longest of these names as a label, in pixels.
function widest(names, size) {
  const pen = make("canvas").getContext("2d");
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return names.reduce((most, name) => Math.max(most, Math.ceil(pen.measureText(name).width)), 0);
}

// A chart in `box`, drawn from the options that `option` returns at each call.
class Chart {
  // `paper` {width, height} is for charts that are only printed; others are as large as their box.
  constructor(box, label, option, paper = null) {
    this.box = box;
    this.option = option;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", label);
    this.drawn = echarts.init(box, null, { renderer: "svg", ...paper });
    this.draw();
    if (!paper) {
      charts.push(this);
      new ResizeObserver(() => this.fit()).observe(box);
    }
  }

  fit() {
    if (onPaper || !this.box.clientWidth) return;
    this.drawn.resize();
    if (this.narrow !== isNarrow()) this.draw(); // the phone was rotated
  }

  draw() {
    this.narrow = isNarrow();
    this.drawn.setOption(this.option(), { notMerge: true });
  }

  toPaper() {
    this.height = this.box.clientHeight;
    this.drawn.resize({ width: PAPER_WIDTH, height: this.box.style.height ? this.height : Math.min(this.height, 280) });
    this.draw();
  }

  toScreen() {
    this.drawn.resize({ width: "auto", height: "auto" });
    this.draw();
  }
}

// Returns the lines to show initially: those that are not off; of many, first repetitions from all over the list.
function shownAtFirst(lines, most = MOST_LINES) {
  const every = lines.map((_, place) => place);
  const on = every.filter((place) => !lines[place].off);
  const all = on.length ? on : every;
  const firsts = all.filter((place) => lines[place].first !== false);
  const from = all.length > most && firsts.length ? firsts : all;
  if (from.length <= most) return new Set(from);
  return new Set(Array.from({ length: most }, (_, n) => from[Math.round((n * (from.length - 1)) / (most - 1))]));
}

// The switches for lines beside a chart, which are also its legend. Lines without a style get the first free one.
class Lines {
  constructor(lines, changed, dashes = true, most = MOST_LINES) {
    this.lines = lines;
    this.dashes = dashes;
    this.count = make("legend", lines.length > MOST_LINES ? {} : { class: "unseen" }, "Lines shown");
    this.shown = shownAtFirst(lines, most);
    this.taken = [];
    this.element = make("fieldset", { class: lines.length > MOST_LINES ? "lines many" : "lines" }, this.count);
    this.labels = lines.map((line, place) => this.label(line, place, changed));
    this.element.append(...this.labels);
    this.element.hidden = lines.length < 2 && !lines.some((line) => line.style);
    this.mark();
  }

  label(line, place, changed) {
    const input = make("input", { type: "checkbox" });
    input.checked = this.shown.has(place);
    input.addEventListener("change", () => {
      if (input.checked) this.shown.add(place);
      else this.shown.delete(place);
      this.mark();
      changed();
    });
    return make("label", {}, input, make("span"), line.name);
  }

  mark() {
    this.taken = this.taken.map((place) => (this.shown.has(place) ? place : undefined));
    for (const place of this.shown) {
      if (this.taken.includes(place)) continue;
      const free = this.taken.findIndex((taken) => taken === undefined);
      this.taken[free === -1 ? this.taken.length : free] = place;
    }
    if (this.lines.length > MOST_LINES) this.count.textContent = `${this.shown.size} of ${this.lines.length} lines shown`;
    this.labels.forEach((label, place) => {
      label.classList.toggle("off", !this.shown.has(place));
      label.children[1].replaceChildren(swatch(this.style(place)));
    });
  }

  style(place) {
    const slot = Math.max(0, this.taken.indexOf(place));
    return this.lines[place].style || { colour: slot, dash: this.dashes ? slot : 0, symbol: slot };
  }

  chosen() {
    return this.lines.map((line, place) => ({ ...line, style: this.style(place) })).filter((_, place) => this.shown.has(place));
  }
}

function swatch(style) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 32 12");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(space, "path");
  line.setAttribute("d", "M0 6H32");
  line.setAttribute("stroke-dasharray", DASHES[style.dash % DASHES.length].join(" "));
  line.setAttribute("style", `stroke: var(--s${(style.colour % COLOURS) + 1}); stroke-width: 2.5; fill: none`);
  svg.append(line);
  if (style.symbol !== undefined) {
    const shapes = ["M16 2a4 4 0 1 0 .1 0", "M12 2h8v8h-8z", "M16 1l5 9h-10z", "M16 0l6 6-6 6-6-6z"];
    const shape = document.createElementNS(space, "path");
    shape.setAttribute("d", shapes[style.symbol % shapes.length]);
    shape.setAttribute("style", `fill: var(--s${(style.colour % COLOURS) + 1})`);
    svg.append(shape);
  }
  return svg;
}

let choices = 0;

// A labelled choice of names; hidden if there is only one.
function choice(label, names, changed) {
  choices += 1;
  const id = `choice-${choices}`;
  const select = make("select", { id });
  names.forEach((name, place) => select.append(make("option", { value: place }, name)));
  select.addEventListener("change", () => changed(Number(select.value)));
  const box = make("div", { class: "choose" }, make("label", { for: id }, label), select);
  box.hidden = names.length < 2;
  return box;
}

// Draws one of `views` [{title, lines}] in `box`: the selected view, and its lines that are switched on.
function chartOf(box, label, views, option) {
  const legend = make("div");
  let view = views[0];
  let lines;
  let chart;
  const show = () => {
    lines = new Lines(view.lines, () => chart.draw(), view.dashes);
    legend.replaceChildren(lines.element);
  };
  show();
  box.before(choice(label, views.map((one) => one.title), (place) => {
    view = views[place];
    show();
    chart.draw();
  }));
  box.after(legend);
  chart = new Chart(box, box.dataset.label, () => option(view, lines.chosen()));
}

function readData(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

// Labels each value with its column, so that a phone can show each row as a card.
function toCards(table) {
  const columns = [...table.tHead.rows].at(-1).cells;
  const names = [...columns].flatMap((column) => Array(column.colSpan).fill(column.textContent.trim()));
  for (const body of table.tBodies) {
    const spans = []; // by column: rows that a cell above still covers
    for (const row of body.rows) {
      row.setAttribute("role", "row"); // a layout of cards would remove the table's semantics
      const cells = [...row.cells];
      for (let at = 0; at < names.length || cells.length; at += 1) {
        if (spans[at]) {
          spans[at] -= 1;
          continue;
        }
        const cell = cells.shift();
        if (!cell) continue;
        if (cell.tagName === "TD") cell.dataset.label = names[at] ?? "";
        cell.setAttribute("role", cell.tagName === "TD" ? "cell" : "rowheader");
        for (let n = 0; n < cell.colSpan; n += 1) spans[at + n] = cell.rowSpan - 1;
        at += cell.colSpan - 1;
      }
    }
    body.setAttribute("role", "rowgroup");
  }
  table.setAttribute("role", "table");
  table.classList.add("cards");
}

for (const table of document.querySelectorAll(".scroll > table:has(thead)")) toCards(table);

const closed = [];
const beforePaper = [];
const afterPaper = [];

function toPaper() {
  if (onPaper) return;
  onPaper = true;
  document.documentElement.classList.add("printing");
  for (const one of document.querySelectorAll("details:not([open])")) {
    one.open = true;
    closed.push(one);
  }
  for (const chart of charts) chart.toPaper();
  for (const step of beforePaper) step();
}

function toScreen() {
  if (!onPaper) return;
  onPaper = false;
  document.documentElement.classList.remove("printing");
  for (const one of closed.splice(0)) one.open = false;
  for (const step of afterPaper) step();
  for (const chart of charts) chart.toScreen();
}

window.addEventListener("beforeprint", toPaper);
window.addEventListener("afterprint", toScreen);
matchMedia("print").addEventListener("change", (event) => (event.matches ? toPaper() : toScreen()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts) chart.draw();
});
