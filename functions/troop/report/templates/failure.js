// Draws what a planned fault did: panels of values by second, one below the other, on one axis of time.

const FAULT_ROW = 16; // height of a mark's label
const FAULT_GAP = 14; // between panels
const FAULT_SIDES = [62, 14]; // left and right of the panels

// Places each mark's label above the panels, right of its line. Lines of earlier marks are longer, so none crosses a label.
function placedMarks(view, width) {
  const scale = (width - FAULT_SIDES[0] - FAULT_SIDES[1]) / (view.to - view.from);
  const marks = view.marks.filter((mark) => mark.at >= view.from && mark.at <= view.to).sort((a, b) => b.at - a.at);
  const placed = [];
  for (const mark of marks) {
    const x = FAULT_SIDES[0] + (mark.at - view.from) * scale;
    const size = widest([mark.what], 12) + 10;
    const turned = x + size > width;
    const [low, high] = turned ? [x - size, x] : [x, x + size];
    const met = placed.filter((other) => other.low <= high && other.high >= low);
    placed.push({ ...mark, low, high, turned, row: met.reduce((row, other) => Math.max(row, other.row + 1), 0) });
  }
  return placed;
}

// Returns a chart of `panels` [{name, height, series, axis, level}] over the time of `view` {from, to, marks, windows}.
function faultOption(view, panels, width, clocked, rows) {
  const marks = placedMarks(view, width);
  const top = (1 + Math.max(0, ...marks.map((mark) => mark.row))) * FAULT_ROW + 8;
  let bottom = top;
  const grids = panels.map((panel) => {
    const grid = { left: FAULT_SIDES[0], right: FAULT_SIDES[1], top: bottom, height: panel.height, outerBoundsMode: "none" };
    bottom += panel.height + FAULT_GAP;
    return grid;
  });
  const every = nice(view.to - view.from);
  const ticks = Array.from({ length: Math.floor(view.to / every) - Math.ceil(view.from / every) + 1 }, (_, n) => (Math.ceil(view.from / every) + n) * every);
  const last = panels.length - 1;
  const lines = marks.map((mark) => [
    {
      xAxis: mark.at, y: bottom - FAULT_GAP, name: mark.what,
      lineStyle: { color: mark.side === undefined ? colour("ink") : colour(`s${mark.side + 1}`), type: mark.dash || (mark.side ? "dashed" : "solid"), width: 1.2 },
      label: { formatter: "{b}", position: "end", distance: [0, -13], padding: [0, 5], align: mark.turned ? "right" : "left", color: colour("ink"), fontSize: 12 },
    },
    { xAxis: mark.at, y: top - 4 - mark.row * FAULT_ROW - 12 },
  ]);
  const shades = { before: colour("shade"), during: colour("bad-back"), after: colour("good-back") };
  const about = panels.map((panel, n) => ({
    type: "line", data: [], silent: true, xAxisIndex: n, yAxisIndex: n,
    markArea: {
      silent: true,
      data: view.windows.map(([from, until, name]) => [
        {
          name, xAxis: Math.max(from, view.from), itemStyle: { color: shades[name] },
          label: { show: n === 0, position: "insideTop", color: colour("soft"), fontSize: 12 },
        },
        { xAxis: Math.min(until, view.to) },
      ]),
    },
    markLine: {
      silent: true, symbol: "none", z: 4,
      data: [
        ...(n === 0 ? lines : []),
        ...(panel.level
          ? [{ yAxis: panel.level.value, name: panel.level.name, lineStyle: { color: colour("ink"), type: "dashed" }, label: { formatter: "{b}", position: "insideEndBottom", color: colour("ink"), backgroundColor: colour("surface"), padding: [1, 4], fontSize: 11 } }]
          : []),
      ],
    },
  }));
  return {
    height: bottom + 24,
    option: basis({
      grid: grids,
      aria: { enabled: true, label: { enabled: false }, decal: { show: true, decals: [{ symbol: "none" }] } },
      axisPointer: { link: [{ xAxisIndex: "all" }] },
      xAxis: panels.map((_, n) => ({
        ...axis(""), gridIndex: n, type: "value", min: view.from, max: view.to, containShape: false, splitLine: { show: false },
        axisLabel: { show: n === last, color: colour("soft"), hideOverlap: true, formatter: clocked, customValues: ticks },
        axisTick: { show: n === last, lineStyle: { color: colour("soft") }, customValues: ticks },
      })),
      yAxis: panels.map((panel, n) => ({
        ...axis(panel.name), gridIndex: n, ...panel.axis,
        nameLocation: "middle", nameGap: 46, nameTextStyle: { color: colour("soft"), align: "center" },
      })),
      tooltip: tooltip({ trigger: "axis", formatter: (points) => tip(clocked(points[0].axisValue), rows(points[0].axisValue)) }),
      series: [...about, ...panels.flatMap((panel, n) => panel.series.map((one) => ({ ...one, xAxisIndex: n, yAxisIndex: n })))],
    }),
  };
}

// Draws the chosen one of `views` in `box`. `draw` returns the arguments of faultOption after the view.
function faultChart(box, views, draw) {
  if (!box) return;
  let view = views[0];
  const drawn = () => {
    const { option, height } = faultOption(view, ...draw(view, onPaper ? PAPER_WIDTH : box.clientWidth));
    if (box.style.height !== `${height}px`) {
      box.style.height = `${height}px`;
      if (chart) chart.drawn.resize();
    }
    return option;
  };
  let chart;
  box.before(choice("Fault", views.map((one) => one.title), (place) => {
    view = views[place];
    chart.draw();
  }));
  box.style.height = "26rem";
  chart = new Chart(box, box.dataset.label, drawn);
}

const logarithmic = (values) => {
  const known = values.filter((value) => value > 0);
  return { type: "log", min: 10 ** Math.floor(Math.log10(Math.min(...known))), max: 10 ** Math.ceil(Math.log10(Math.max(...known))) };
};

// Draws the faults of a report: successes and failures a second, stacked, and p99.
function drawFailures(data) {
  faultChart(document.getElementById("failure-chart"), data ? data.views : [], (view, width) => {
    const curve = data.curves[view.curve];
    const at = (n) => curve.start + n + 0.5;
    const points = (values) => values.map((value, n) => [at(n), value]).filter(([x]) => x >= view.from && x <= view.to);
    const bars = (name, values, itemStyle) => ({ type: "bar", name, data: points(values), stack: "all", barCategoryGap: "15%", silent: true, itemStyle });
    const style = { colour: 3, dash: 0, symbol: 0 };
    const p99 = points(curve.p99);
    const panels = [
      {
        name: "operations/s", height: 190, axis: { type: "value", min: 0, boundaryGap: [0, "16%"] }, level: view.level,
        series: [
          bars("succeeded", curve.rate, { color: colour("s1"), decal: { symbol: "none" } }),
          bars("failed", curve.failed.map((value) => value || null), {
            color: colour("bad"), decal: { symbol: "rect", color: colour("surface"), dashArrayX: [1, 0], dashArrayY: [2, 3], rotation: -0.78 },
          }),
        ],
      },
      ...(p99.some(([, value]) => value !== null)
        ? [{ name: "p99, ms", height: 110, axis: logarithmic(p99.map(([, value]) => value)), series: [lineSeries({ name: "p99", style }, p99)] }]
        : []),
    ];
    const rows = (x) => {
      const n = Math.round(x - curve.start - 0.5);
      return [
        [colour("s1"), "succeeded", `${plain(curve.rate[n])}/s`],
        [colour("bad"), "failed", curve.failed[n] === null ? "unknown" : `${plain(curve.failed[n])}/s`],
        [lineColour(style), "p99", curve.p99[n] === null ? "–" : `${plain(curve.p99[n])} ms`],
      ];
    };
    return [panels, width, clock, rows];
  });
}

// Draws the faults of both sides of a comparison over one another, from the moment of each fault.
function drawOverlaidFailures(views) {
  const signed = (seconds) => `${seconds > 0 ? "+" : seconds < 0 ? "−" : ""}${plain(Math.abs(seconds))} s`;
  faultChart(document.getElementById("failure-chart"), views, (view, width) => {
    const style = (n) => ({ colour: n, dash: n, symbol: n });
    const lines = (key) => view.sides.map((side, n) => lineSeries(
      { name: side.name, style: style(n) },
      side[key].map((value, place) => [side.start + place + 0.5, value]).filter(([x]) => x >= view.from && x <= view.to),
      { silent: true },
    ));
    const times = view.sides.flatMap((side) => side.p99);
    const panels = [
      { name: "succeeded/s", height: 150, axis: { type: "value", min: 0 }, series: lines("rate") },
      { name: "failed/s", height: 80, axis: { type: "value", min: 0, minInterval: 1 }, series: lines("failed") },
      ...(times.some((value) => value > 0) ? [{ name: "p99, ms", height: 110, axis: logarithmic(times), series: lines("p99") }] : []),
    ];
    const rows = (x) => view.sides.flatMap((side, n) => {
      const at = Math.round(x - side.start - 0.5);
      const known = at in side.rate ? [["succeeded", side.rate[at], "/s"], ["failed", side.failed[at], "/s"], ["p99", side.p99[at], " ms"]] : [];
      return known.map(([name, value, unit]) => [lineColour(style(n)), `${side.name} ${name}`, value === null ? "–" : `${plain(value)}${unit}`]);
    });
    return [panels, width, signed, rows];
  });
}
