// Draws the charts of a report.

const PAPER_CELLS = 4;

function scalingOption(view, lines) {
  const series = lines.flatMap((line) => {
    const shade = lineColour(line.style);
    const nodes = line.points.map((point) => point[0]);
    const [least, most] = [Math.min(...nodes), Math.max(...nodes)];
    const straight = (data, type, width) => ({
      type: "line", data, symbol: "none", silent: true, lineStyle: { color: shade, type, width }, tooltip: { show: false },
    });
    const drawn = [
      {
        type: "scatter", name: line.name, data: line.points, symbol: SYMBOLS[line.style.symbol % SYMBOLS.length], symbolSize: 10,
        itemStyle: { color: shade, borderColor: colour("surface"), borderWidth: 1 }, z: 3,
      },
    ];
    if (nodes.length && line.slope !== null && line.intercept !== null) {
      drawn.push(straight([least, most].map((n) => [n, line.intercept + line.slope * n]), "solid", 2));
    }
    if (nodes.length && line.ideal !== null) drawn.push(straight([[0, 0], [most, line.ideal * most]], [2, 4], 1.5));
    return drawn;
  });
  return basis({
    xAxis: { ...below(view.counted), type: "value", min: 0, minInterval: 1, boundaryGap: [0, "5%"] },
    yAxis: { ...axis(`${view.operation}/s`), type: "value", min: 0 },
    tooltip: tooltip({
      trigger: "item",
      formatter: ({ data, seriesName, color }) =>
        tip(`${data[0]} ${view.counted}`, [[color, `${seriesName} ${data[2]}`.trim(), `${plain(data[1])}/s`]]),
    }),
    series,
  });
}

// Returns the place of a percentile on an axis with equal room for 90 to 99 and 99 to 99.9. The maximum of all values
// is at the place of one in all of them.
function place(percentile, count, before) {
  return percentile < 100 ? -Math.log10(1 - percentile / 100) : Math.max(before, Math.log10(Math.max(count, 1)));
}

function percentileAt(place) {
  const rest = 10 ** -place;
  const digits = Math.max(0, Math.ceil(place - 2 - 1e-9)) + (place % 1 > 1e-9 && place > 1 ? 1 : 0);
  return `${Number((100 * (1 - rest)).toFixed(Math.min(digits, 8)))} %`;
}

function distributionOption(view, lines) {
  const drawn = lines.map((line) => {
    let before = 0;
    return line.points.map(([percentile, ms]) => {
      before = place(percentile, line.count, before);
      return [before, ms > 0 ? ms : null, percentile];
    });
  });
  const most = Math.max(2, ...drawn.flat().map((point) => point[0]));
  const marks = [0, Math.log10(2), ...Array.from({ length: Math.floor(most) }, (_, n) => n + 1)];
  return basis({
    xAxis: {
      ...below("percentile"),
      type: "value",
      min: 0,
      max: Math.ceil(most * 4) / 4,
      axisLabel: { color: colour("soft"), hideOverlap: true, customValues: marks, formatter: percentileAt },
      axisTick: { customValues: marks, lineStyle: { color: colour("soft") } },
    },
    yAxis: valueAxis(drawn.flat().map((point) => point[1]), "ms"),
    tooltip: tooltip({
      trigger: "axis",
      formatter: (points) => {
        const head = points[0].data[2];
        return tip(head === 100 ? "highest" : `${head} %`, points.map(({ color, seriesName, data }) => [
          color, data[2] === head ? seriesName : `${seriesName} (${data[2] === 100 ? "highest" : `${data[2]} %`})`, `${plain(data[1])} ms`,
        ]));
      },
    }),
    series: lines.map((line, n) => lineSeries(line, drawn[n], { showSymbol: true, showAllSymbol: true })),
  });
}

function overTime(box, kinds) {
  const packed = [...document.querySelectorAll("script.over-time")];
  const panels = make("div", { class: "panels for-screen" });
  const notes = make("div", { class: "for-screen" });
  const paper = make("div", { class: "for-print" });
  let made = [];
  let wanted = 0;
  const show = async (place) => {
    wanted = place;
    const cell = await unpacked(packed[place]);
    if (wanted !== place) return;
    for (const chart of made) chart.remove();
    panels.replaceChildren();
    notes.replaceChildren(...markList([cell], false));
    made = drawPanels(panels, kinds, cell);
  };
  const cells = choice("Cell", packed.map((one) => one.dataset.name), show);
  const at = Math.max(0, packed.findIndex((one) => "first" in one.dataset));
  cells.querySelector("select").value = at;
  box.append(cells, panels, notes, paper);

  // Paper shows several cells one below the other. They are unpacked in advance, because printing does not wait.
  const firsts = packed.filter((one) => "first" in one.dataset).slice(0, PAPER_CELLS);
  const printed = Promise.all((firsts.length ? firsts : packed.slice(0, PAPER_CELLS)).map(unpacked));
  let sheets = [];
  let onSheet = [];
  beforePaper.push(() => {
    for (const cell of sheets) {
      const sheet = make("div", { class: "panels sheet" });
      paper.append(make("div", { class: "one-cell" }, make("h3", {}, cell.name), sheet));
      onSheet.push(...drawPanels(sheet, kinds, cell, (panel) => ({
        width: panel.is_large ? PAPER_WIDTH : PAPER_WIDTH / 2 - 5, height: panel.is_large ? 165 : 125,
      })));
    }
  });
  afterPaper.push(() => {
    for (const chart of onSheet.splice(0)) chart.drawn.dispose();
    paper.replaceChildren();
  });
  return Promise.all([show(at), printed.then((found) => { sheets = found; })]);
}

function drawReport() {
  const data = readData("chart-data");
  const ratios = document.getElementById("ratio-chart");
  if (ratios) drawRatios(ratios, data.baseline, "throughput, candidate to baseline", null);
  drawFailures(data.failures);
  const scaling = document.getElementById("scaling-chart");
  if (scaling) {
    const views = data.scaling.map((one) => ({
      ...one, dashes: false, lines: one.lines.map((line) => ({ ...line, name: line.name || one.operation })),
    }));
    chartOf(scaling, "Operation", views, scalingOption);
  }
  const latency = document.getElementById("latency-chart");
  if (latency) chartOf(latency, "Operation", data.distributions, distributionOption);
  const parameters = document.getElementById("parameter-chart");
  if (parameters) new ParameterChart(parameters, data.parameters);
  const time = document.getElementById("time-charts");
  if (!time) return Promise.resolve();
  return Promise.all([overTime(time, data.over_time.panels), drawOverlay(data), drawDisks(data)]).catch(() => tooOld(time));
}

drawReport().then(() => document.documentElement.setAttribute("data-drawn", ""));
