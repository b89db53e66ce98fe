// Draws the charts of a history.

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

function historyOption(data, lines, xAxis, place, medians) {
  const values = lines.flatMap((line) => line.values.map((one) => one.value));
  const scattered = (line) => ({
    type: "scatter", name: line.name, symbolSize: 8, symbol: SYMBOLS[line.style.symbol % SYMBOLS.length],
    itemStyle: { color: lineColour(line.style), opacity: medians ? 0.55 : 1 },
    data: line.values.map((one) => ({ value: [place(one), one.value], run: one })),
  });
  const joined = (line) => lineSeries(
    line,
    medians ? line[medians].map((one) => [one.place, one.median]) : line.values.map((one) => [place(one), one.value]),
    { silent: true, z: 1 },
  );
  return {
    ...basis({
      xAxis,
      yAxis: valueAxis(values, data.unit),
      tooltip: tooltip({
        trigger: "item",
        formatter: ({ data: point, seriesName, color }) =>
          tip(`${point.run.at} · ${point.run.run}`, [[color, seriesName, point.run.text]]),
      }),
      series: [...lines.map(joined), ...lines.map(scattered)],
    }),
    useUTC: true, // moments are the wall clock's of the zone
  };
}

function drawHistory() {
  const data = readData("chart-data");
  const topics = [...new Set(data.series.map((one) => one.topic))];
  // Operations of one measurement are compared with each other. If each has only one, all measurements share a chart.
  const views = topics.length === data.series.length
    ? [{ title: "", lines: data.series }]
    : topics.map((title) => ({ title, lines: data.series.filter((one) => one.topic === title) }));
  const draw = (id, xAxis, place, medians) =>
    chartOf(document.getElementById(id), "Measurement", views, (_, lines) => historyOption(data, lines, xAxis(), place, medians));
  const time = () => {
    const { formatter, ...label } = axis("").axisLabel;
    return { ...axis(""), type: "time", axisLabel: label };
  };
  const hours = () => ({
    ...below("hour"), type: "value", min: 0, max: 24, interval: isNarrow() ? 6 : 3,
    axisLabel: { color: colour("soft"), formatter: (hour) => `${String(hour).padStart(2, "0")}:00` },
  });
  const days = () => ({
    ...axis(""), type: "value", min: -0.5, max: 6.5, splitLine: { show: false }, axisTick: { show: false },
    axisLabel: { color: colour("soft"), customValues: DAYS.map((_, n) => n), formatter: (n) => DAYS[n] },
  });
  draw("runs-chart", time, (one) => one.wall, null);
  draw("hours-chart", hours, (one) => one.hour, "by_hour");
  draw("weekdays-chart", days, (one) => one.weekday, "by_weekday");
}

if (document.getElementById("runs-chart")) drawHistory();
document.documentElement.setAttribute("data-drawn", "");
