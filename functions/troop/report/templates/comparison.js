// Draws the charts of a comparison.

function timesOption(view, lines) {
  const values = lines.flatMap((line) => line.data.flatMap((three) => three || []));
  const bars = lines.map((line, side) => ({
    type: "line", symbol: "none", silent: true, lineStyle: { color: lineColour(line.style), width: 5, opacity: 0.35, type: "solid" },
    data: line.data.flatMap((three, n) => (three ? [[n + shift(side), three[1]], [n + shift(side), three[2]], [null, null]] : [])),
  }));
  return basis({
    xAxis: {
      ...axis(""), type: "value", min: -0.5, max: view.names.length - 0.5, splitLine: { show: false },
      axisTick: { show: false },
      axisLabel: { color: colour("ink"), customValues: view.names.map((_, n) => n), formatter: (n) => view.names[n] },
    },
    yAxis: valueAxis(values, "ms"),
    tooltip: tooltip({
      trigger: "item",
      formatter: ({ data, seriesName, color }) => tip(view.names[Math.round(data[0])], [[color, seriesName, `${plain(data[1])} ms`]]),
    }),
    series: [
      ...bars,
      ...lines.map((line, side) => lineSeries(line, line.data.flatMap((three, n) => (three ? [[n + shift(side), three[0]]] : [])), {
        showSymbol: true, symbolSize: 9,
      })),
    ],
  });
}

function shift(side) {
  return side ? 0.08 : -0.08;
}

function drawComparison() {
  const data = readData("chart-data");
  const ratios = document.getElementById("ratio-chart");
  if (ratios) drawRatios(ratios, data.rows, "throughput, B to A", data.fail_below);
  drawOverlaidFailures(data.failures);
  const times = document.getElementById("times-chart");
  if (times) {
    const views = data.times.map((one) => ({
      ...one,
      lines: [["A", one.a], ["B", one.b]].map(([name, values], n) => ({
        name, data: values, style: { colour: n, dash: n, symbol: n },
      })),
    }));
    chartOf(times, "Operation", views, timesOption);
  }
}

drawComparison();
const overlay = document.getElementById("overlay");
drawOverlay(readData("chart-data")).catch(() => tooOld(overlay)).then(() => document.documentElement.setAttribute("data-drawn", ""));
