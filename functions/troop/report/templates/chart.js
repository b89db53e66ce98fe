"use strict";
// Shared by all charts of reports and of the page of `troop ui`: colours, axes, tips.

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
    if (!this.box.isConnected) this.remove();
    if (onPaper || !this.box.clientWidth) return;
    this.drawn.resize();
    if (this.narrow !== isNarrow()) this.draw(); // the phone was rotated
  }

  draw() {
    this.narrow = isNarrow();
    this.drawn.setOption(this.option(), { notMerge: true });
  }

  remove() {
    if (charts.includes(this)) charts.splice(charts.indexOf(this), 1);
    this.drawn.dispose();
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

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts) chart.draw();
});

// For the page, which imports this file as a module where it draws the first chart.
Object.assign(globalThis, { Chart, axis, basis, charts, colour, lineSeries, tooltip });
