// Draws the charts of a report.

const PAPER_CELLS = 4;
const WARM_UP_LABEL = 75; // in CSS pixels, with margin
const PANELS = [
  { title: "Throughput", unit: "operations/s", large: true, names: { per_second: "" } },
  { title: "Latency", unit: "ms", large: true, names: { p50_ms: "p50", p99_ms: "p99", max_ms: "max" } },
  { title: "Errors", unit: "errors/s", names: { errors_per_second: "errors" } },
  { title: "CPU", unit: "%, mean of the nodes", names: { cpu: "CPU", iowait: "iowait" } },
  { title: "Disk operations", unit: "operations/s, all nodes", names: { disk_reads: "reads", disk_writes: "writes" } },
  { title: "Disk", unit: "MB/s, all nodes", part: 1e6, names: { disk_read_bytes: "read", disk_write_bytes: "written" } },
  {
    title: "Network", unit: "MB/s, all nodes", part: 1e6,
    names: { network_received_bytes: "received", network_sent_bytes: "sent" },
  },
];

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

// Returns the lines of a panel: a colour for each operation or role, a dash for each measure.
function panelLines(panel, series) {
  const whose = [];
  return series.filter((one) => one.name in panel.names && one.values.some((value) => value !== null)).map((one) => {
    const owner = one.operation === null ? one.role : one.operation;
    const key = JSON.stringify([one.role, one.operation]);
    if (!whose.includes(key)) whose.push(key);
    const dash = Object.keys(panel.names).indexOf(one.name);
    return {
      name: `${owner} ${panel.names[one.name]}`.trim(),
      style: { colour: whose.indexOf(key), dash },
      data: one.values.map((value, n) => [one.start + n * one.step, value === null ? null : value / (panel.part || 1)]),
    };
  });
}

function panelOption(panel, cell, lines, width) {
  const ends = lines.flatMap((line) => [line.data[0][0], line.data[line.data.length - 1][0]]);
  const [from, to] = [Math.min(0, ...ends), Math.max(cell.measured || 0, ...ends)];
  const warm = from < 0
    ? [{
        type: "line", data: [], silent: true,
        markArea: {
          silent: true, itemStyle: { color: colour("warm") },
          label: { show: (width * -from) / (to - from) > WARM_UP_LABEL, color: colour("soft"), position: "insideTop", fontSize: 11 },
          data: [[{ name: "warm-up", xAxis: from }, { xAxis: 0 }]],
        },
        markLine: {
          silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colour("soft"), type: "dashed" }, data: [{ xAxis: 0 }],
        },
      }]
    : [];
  const values = lines.flatMap((line) => line.data.map((point) => point[1]));
  return basis({
    grid: { left: 4, right: 16, top: 12, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    xAxis: {
      ...axis(""), type: "value", min: from, max: to, interval: nice(to - from),
      axisLabel: { color: colour("soft"), hideOverlap: true, formatter: clock }, splitLine: { show: false },
    },
    yAxis: panel.title === "Latency" ? valueAxis(values, "") : { ...axis(""), type: "value", min: 0 },
    tooltip: tooltip({
      trigger: "axis",
      formatter: (points) => {
        const at = points[0].data[0];
        return tip(at < 0 ? `warm-up, ${clock(at)}` : clock(at), points.map(({ color, seriesName, data }) => [
          color, seriesName, data[1] === null ? "–" : plain(data[1]),
        ]));
      },
    }),
    series: [...warm, ...lines.map((line) => lineSeries(line, line.data))],
  });
}

function nice(seconds) {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].find((step) => seconds / step <= 12) || 43200;
}

function drawPanels(box, cell, paper) {
  const made = [];
  for (const panel of PANELS) {
    const found = panelLines(panel, cell.series);
    if (!found.length || (panel.title === "Errors" && !found.some((line) => line.data.some((point) => point[1] > 0)))) continue;
    const lines = new Lines(found, () => chart.draw());
    const drawing = make("div", { class: "drawing" });
    const caption = make("figcaption", {}, `${panel.title} `, make("small", {}, panel.unit));
    box.append(make("figure", panel.large ? { class: "large" } : {}, caption, lines.element, drawing));
    const chart = new Chart(
      drawing,
      `Chart: ${panel.title} over time, ${cell.name}`,
      () => panelOption(panel, cell, lines.chosen(), paper ? paper(panel).width : drawing.clientWidth),
      paper && paper(panel),
    );
    made.push(chart);
  }
  return made;
}

async function unpacked(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function overTime(box) {
  const packed = [...document.querySelectorAll("script.over-time")];
  const panels = make("div", { class: "panels for-screen" });
  const paper = make("div", { class: "for-print" });
  let made = [];
  let wanted = 0;
  const show = async (place) => {
    wanted = place;
    const cell = await unpacked(packed[place]);
    if (wanted !== place) return;
    for (const chart of made) {
      charts.splice(charts.indexOf(chart), 1);
      chart.drawn.dispose();
    }
    panels.replaceChildren();
    made = drawPanels(panels, cell);
  };
  box.append(choice("Cell", packed.map((one) => one.dataset.name), show), panels, paper);

  // Paper shows several cells one below the other. They are unpacked in advance, because printing does not wait.
  const firsts = packed.filter((one) => "first" in one.dataset).slice(0, PAPER_CELLS);
  const printed = Promise.all((firsts.length ? firsts : packed.slice(0, PAPER_CELLS)).map(unpacked));
  let cells = [];
  let onSheet = [];
  beforePaper.push(() => {
    for (const cell of cells) {
      const sheet = make("div", { class: "panels sheet" });
      paper.append(make("div", { class: "one-cell" }, make("h3", {}, cell.name), sheet));
      onSheet.push(...drawPanels(sheet, cell, (panel) => ({
        width: panel.large ? PAPER_WIDTH : PAPER_WIDTH / 2 - 5, height: panel.large ? 165 : 125,
      })));
    }
  });
  afterPaper.push(() => {
    for (const chart of onSheet.splice(0)) chart.drawn.dispose();
    paper.replaceChildren();
  });
  return Promise.all([show(0), printed.then((found) => { cells = found; })]);
}

function drawReport() {
  const data = readData("chart-data");
  const scaling = document.getElementById("scaling-chart");
  if (scaling) {
    const views = data.scaling.map((one) => ({
      ...one, dashes: false, lines: one.lines.map((line) => ({ ...line, name: line.name || one.operation })),
    }));
    chartOf(scaling, "Operation", views, scalingOption);
  }
  const latency = document.getElementById("latency-chart");
  if (latency) chartOf(latency, "Operation", data.distributions, distributionOption);
  const time = document.getElementById("time-charts");
  return time ? overTime(time).catch(() => {
    time.append(make("p", { class: "note" }, "This browser cannot unpack the values over time: use a newer browser."));
  }) : Promise.resolve();
}

drawReport().then(() => document.documentElement.setAttribute("data-drawn", ""));
