"use strict";
// Draws each graph of the board from the curves beside it.

const COLOURS = 10;
const MOST_NAMED = 9;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Whole numbers where all values are; fourths of an axis that has none.
function steps(curves) {
  const values = curves.flatMap((curve) => curve.values.map((point) => point[1]));
  if (!values.length) return { max: 1, interval: 0.25 };
  const most = Math.max(...values);
  return { max: most ? undefined : 1, minInterval: values.every(Number.isInteger) ? 1 : 0 };
}

function valueAxis(name, position, curves) {
  return {
    type: "value",
    name,
    position,
    min: 0,
    splitNumber: 4,
    ...steps(curves),
    nameTextStyle: { color: colour("soft"), align: position },
    axisLabel: { color: colour("soft") },
    splitLine: { show: position === "left", lineStyle: { color: colour("line"), opacity: 0.6 } },
  };
}

for (const place of document.querySelectorAll(".chart")) {
  const graph = JSON.parse(place.dataset.graph);
  const named = graph.axes.some((name) => name);
  const label = (curve, place) =>
    graph.curves.findIndex((other) => other.name === curve.name) === place ? curve.name : `${curve.name} (right)`;
  graph.curves = graph.curves.map((curve, place) => ({ ...curve, name: label(curve, place) }));
  const drawn = graph.curves.filter((curve) => curve.values.length);
  const shown = (drawn.length ? drawn : graph.curves).slice(0, MOST_NAMED);
  const lines = Math.ceil(shown.reduce((sum, curve) => sum + 32 + 6 * curve.name.length, 0) / place.clientWidth);
  const clock = (value) => new Date(value).toISOString().slice(11, 16);
  echarts.init(place, null, { renderer: "svg" }).setOption({
    animation: false,
    color: Array.from({ length: COLOURS }, (_, place) => colour(`s${place + 1}`)),
    grid: { left: 48, right: graph.axes[1] === null ? 16 : 40, top: named ? 30 : 12, bottom: 30 + 17 * lines },
    legend: {
      type: "plain",
      bottom: 0,
      left: 0,
      right: 0,
      itemWidth: 12,
      itemHeight: 8,
      itemGap: 8,
      icon: "roundRect",
      textStyle: { color: colour("soft"), fontSize: 11 },
      data: shown.map((curve) => curve.name),
    },
    xAxis: {
      type: "time",
      min: graph.start,
      max: graph.end,
      minInterval: 60000,
      axisLabel: { color: colour("soft"), formatter: clock, hideOverlap: true },
      axisLine: { lineStyle: { color: colour("line") } },
    },
    yAxis: graph.axes
      .map((name, side) => name !== null && valueAxis(name, side ? "right" : "left", drawn.filter((curve) => curve.right === Boolean(side))))
      .filter(Boolean),
    series: graph.curves.map((curve) => ({
      type: "line",
      name: curve.name,
      data: curve.values,
      yAxisIndex: curve.right ? 1 : 0,
      stack: graph.stacked ? "all" : undefined,
      areaStyle: graph.stacked ? { opacity: 0.35 } : undefined,
      symbol: "circle",
      symbolSize: 5,
      lineStyle: { width: 2, type: curve.right ? "dashed" : "solid" },
    })),
  });
}
document.documentElement.dataset.drawn = "true";
