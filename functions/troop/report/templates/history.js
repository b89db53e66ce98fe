// Draws the charts of a history.

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LABELLED = 3; // the most lines whose change points have a label
const MANY = 500; // values of a chart, from which on runs are small, or left out beside medians
const SPARK = [240, 32]; // width and height

function textOf(data, value) {
  return `${plain(value * data.scale)}${data.suffix}`;
}

// The values of a line in the order of its runs: ratios to the baseline if there are any.
function judged(line) {
  return line.ratios.length ? line.ratios : line.values;
}

function pointsOf(data, line, values, at) {
  return line.places.map((place, n) => ({
    value: [at(data.runs[place]), values[n]],
    run: data.runs[place],
    text: line.ratios.length ? `${line.ratios[n].toFixed(3)} · ${textOf(data, line.values[n])}` : textOf(data, line.values[n]),
  }));
}

function scattered(line, points, opacity, size = 8) {
  return {
    type: "scatter", name: line.name, symbolSize: size, symbol: SYMBOLS[line.style.symbol % SYMBOLS.length],
    itemStyle: { color: lineColour(line.style), opacity }, data: points,
  };
}

function shownTip({ data: point, seriesName, color }) {
  if (point.texts) return tip(`${point.run.at} · ${point.run.run}`, point.texts.map((text) => [color, text, ""]));
  return tip([point.run.at, point.run.run, point.run.version].filter(Boolean).join(" · "), [[color, seriesName, point.text]]);
}

function optionOf(xAxis, yAxis, series) {
  return {
    ...basis({ xAxis, yAxis, tooltip: tooltip({ trigger: "item", formatter: shownTip }), series }),
    useUTC: true, // moments are the wall clock's of the zone
  };
}

function groupOption(data, lines, xAxis, at, key) {
  const values = lines.flatMap((line) => line.values);
  const few = values.length > MANY ? [] : lines;
  return optionOf(xAxis, valueAxis(values, data.unit), [
    ...lines.map((line) => lineSeries(line, line[key], { silent: true, z: 1, showSymbol: !few.length })),
    ...few.map((line) => scattered(line, pointsOf(data, line, line.values, at).map((one) => ({ ...one, text: textOf(data, one.value[1]) })), 0.55)),
  ]);
}

// The levels between the change points of a line.
function levels(data, line) {
  const { places, changes } = line;
  const wall = (place) => data.runs[place].wall;
  const ends = [places[0], ...changes.map((one) => one.place)];
  return ends.flatMap((place, n) => {
    const level = n ? changes[n - 1].levels[1] : changes[0].levels[0];
    const until = n < changes.length ? changes[n].place : places.at(-1);
    return [[wall(place), level], [wall(until), level], [wall(until), null]];
  });
}

function changeLines(data, line, isLabelled) {
  const shade = lineColour(line.style);
  return {
    silent: true, symbol: "none", animation: false,
    data: line.changes.map((one) => ({
      xAxis: data.runs[one.place].wall,
      lineStyle: { color: shade, width: 1.5, type: "solid" },
      label: { show: isLabelled, formatter: one.text, color: colour(one.is_worse ? "bad" : "good"), fontWeight: "bold", position: "end", distance: 2 },
    })),
  };
}

// What is shown over time: from the lowest to the highest value, because a step of 5 % is hardly seen from 0.
function timeOption(data, lines) {
  const { formatter, ...label } = axis("").axisLabel;
  const values = lines.flatMap(judged);
  const isRatio = lines.some((line) => line.ratios.length);
  const scaled = { ...valueAxis(values, isRatio ? `to ${lines[0].against}` : data.unit), scale: true };
  if (!isRatio) scaled.axisLabel = { ...scaled.axisLabel, formatter: (value) => tick(value * data.scale) };
  const sizes = new Set(lines.map((line) => line.size));
  const versions = data.versions.filter((one) => sizes.has(one.size)).map((one) => ({ value: [data.runs[one.place].wall, 0], run: data.runs[one.place], texts: one.texts, symbolSize: one.texts.every((text) => text.startsWith("version ")) ? 4 : 9 })); // many runs have a version of their own
  const many = values.length > MANY;
  return optionOf(
    { ...axis(""), type: "time", axisLabel: label },
    [scaled, { type: "value", min: 0, max: 1, show: false }],
    [
      ...lines.map((line) => lineSeries(line, pointsOf(data, line, judged(line), (run) => run.wall).map((one) => one.value), { silent: true, z: 1, lineStyle: { width: many ? 1 : 2, color: lineColour(line.style), opacity: many ? 0.6 : 1 } })),
      ...lines.map((line) => scattered(line, pointsOf(data, line, judged(line), (run) => run.wall), 1, many ? 4 : 8)),
      ...lines.filter((line) => line.changes.length).map((line) => lineSeries(line, levels(data, line), { silent: true, z: 1, lineStyle: { width: 7, color: lineColour(line.style), opacity: 0.3 }, markLine: changeLines(data, line, lines.length <= LABELLED) })),
      { type: "scatter", name: "versions", yAxisIndex: 1, symbol: "triangle", symbolOffset: [0, -4], itemStyle: { color: colour("soft") }, data: versions },
    ],
  );
}

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// A small picture of a line: its values by run, and its change points.
function spark(data, line) {
  const [width, height] = SPARK;
  const values = judged(line);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const x = (place) => ((place / Math.max(1, data.runs.length - 1)) * width).toFixed(1);
  const y = (value) => (height - 2 - ((value - low) / (high - low || 1)) * (height - 4)).toFixed(1);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const one of line.changes) picture.append(svg("line", { class: one.is_worse ? "worse" : "better", x1: x(one.place), x2: x(one.place), y1: 0, y2: height }));
  picture.append(svg("polyline", { points: line.places.map((place, n) => `${x(place)},${y(values[n])}`).join(" ") }));
  return picture;
}

function drawHistory() {
  const data = readData("chart-data");
  const group = (key) => [...new Set(data.series.map(key))].map((title) => ({ title, lines: data.series.filter((one) => key(one) === title) }));
  // Operations of one measurement are compared with each other. If each has only one, measurements share a chart: those
  // with the same baseline.
  const topics = group((one) => one.topic);
  for (const one of data.series) one.first = one.changes.length > 0 || !data.series.some((other) => other.changes.length);
  // The baseline of most runs comes first: a comparison with itself is a run or two.
  const runs = (view) => Math.max(...view.lines.map((one) => one.places.length));
  const views = (topics.length === data.series.length ? group((one) => (one.against ? `against ${one.against}` : "without a baseline")) : topics).toSorted((one, other) => runs(other) - runs(one));
  const draw = (id, option) => chartOf(document.getElementById(id), "Measurement", views, (_, lines) => option(lines));
  const hours = () => ({
    ...below("hour"), type: "value", min: 0, max: 24, interval: isNarrow() ? 6 : 3,
    axisLabel: { color: colour("soft"), formatter: (hour) => `${String(hour).padStart(2, "0")}:00` },
  });
  const days = () => ({
    ...axis(""), type: "value", min: -0.5, max: 6.5, splitLine: { show: false }, axisTick: { show: false },
    axisLabel: { color: colour("soft"), customValues: DAYS.map((_, n) => n), formatter: (n) => DAYS[n] },
  });
  for (const cell of document.querySelectorAll(".spark")) cell.append(spark(data, data.series[cell.dataset.series]));
  draw("runs-chart", (lines) => timeOption(data, lines));
  draw("hours-chart", (lines) => groupOption(data, lines, hours(), (run) => run.hour, "by_hour"));
  draw("weekdays-chart", (lines) => groupOption(data, lines, days(), (run) => run.weekday, "by_weekday"));
}

if (document.getElementById("runs-chart")) drawHistory();
document.documentElement.setAttribute("data-drawn", "");
