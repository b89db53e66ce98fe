// Draws ratios with their intervals, and the pairs from which they are.

const MOST_RATIOS = 40;
const ROW_HEIGHT = 34;
const LABEL = 11; // font size of row names in pixels
const LINE_HEIGHT = 13;

// Returns round numbers from `least` to `most`, at most about `count` of them; 1 is always among them.
function ratioTicks(least, most, count) {
  const raw = (most - least) / count;
  const step = [1, 2, 5, 10].map((one) => one * 10 ** Math.floor(Math.log10(raw))).find((one) => one >= raw * 0.999);
  const clear = 0.6 * step; // the distance from 1 at which a tick has room
  const round = Array.from({ length: Math.floor(most / step) - Math.ceil(least / step) + 1 }, (_, n) => (Math.ceil(least / step) + n) * step);
  return [...round.filter((value) => Math.abs(value - 1) > clear), 1].map((value) => Number(value.toPrecision(6))).sort((a, b) => a - b);
}

const longestName = () => (isNarrow() ? 105 : 260);

// Returns the height of a row with room for the lines of the longest name, which end at words.
function rowHeight(rows) {
  const lines = Math.min(8, Math.ceil((1.25 * widest(rows.map((row) => row.name), LABEL)) / longestName()));
  return Math.max(ROW_HEIGHT, lines * LINE_HEIGHT + 8);
}

function ratioOption(rows, title, failBelow) {
  const width = Math.min(longestName(), widest(rows.map((row) => row.name), LABEL) + LABEL);
  const ends = rows.flatMap((row) => [row.ratio, row.low, row.high, failBelow, ...(row.pairs || [])]).filter((value) => value !== null && value > 0);
  const [least, most] = [Math.min(1, ...ends), Math.max(1, ...ends)];
  const room = Math.max(0.02, (most - least) * 0.08);
  const [min, max] = [Math.max(0, least - room), most + room];
  const ticks = ratioTicks(min, max, isNarrow() ? 4 : 8);
  const moods = { better: ["good", "triangle"], worse: ["bad", "rect"], same: ["soft", "circle"] };
  const caps = rows.flatMap((row, n) => (row.low === null || row.high === null ? [] : [[row.low, n], [row.high, n]]));
  const intervals = rows.flatMap((row, n) =>
    row.low === null || row.high === null ? [] : [[row.low, n], [row.high, n], [null, null]]);
  const limits = [{ xAxis: 1, name: "", lineStyle: { color: colour("ink"), type: "solid" } }];
  if (failBelow !== null) limits.push({ xAxis: failBelow, name: `limit ${failBelow}`, lineStyle: { color: colour("bad"), type: "dashed" } });
  return basis({
    grid: { left: 4, right: 16, top: 28, bottom: 30, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    xAxis: {
      ...below(title), type: "value", min, max,
      axisTick: { customValues: ticks, lineStyle: { color: colour("soft") } },
      splitLine: { customValues: ticks, lineStyle: { color: colour("line") } },
      axisLabel: { color: colour("soft"), customValues: ticks, formatter: String },
    },
    yAxis: {
      ...axis(""), type: "category", inverse: true, data: rows.map((row) => row.name), splitLine: { show: false },
      axisLabel: {
        color: colour("ink"), interval: 0, lineHeight: LINE_HEIGHT, fontSize: LABEL, width, overflow: "break",
      },
    },
    tooltip: tooltip({
      trigger: "item",
      formatter: ({ data }) => {
        const row = rows[data.value[1]];
        const interval = row.low === null ? [] : [[colour("soft"), "interval", `${row.low} to ${row.high}`]];
        return tip(row.name, [[colour(moods[row.mood][0]), "ratio", String(row.ratio)], ...interval]);
      },
    }),
    series: [
      {
        type: "line", data: intervals, symbol: "none", silent: true, lineStyle: { color: colour("soft"), width: 2 },
        markLine: {
          silent: true, symbol: "none", data: limits,
          label: { formatter: "{b}", color: colour("soft"), position: "start" },
        },
      },
      {
        type: "scatter", data: rows.flatMap((row, n) => (row.pairs || []).map((ratio) => [ratio, n])), symbol: "circle",
        symbolSize: 6, silent: true, itemStyle: { color: "transparent", borderColor: colour("soft"), borderWidth: 1 },
      },
      { type: "scatter", data: caps, symbol: "rect", symbolSize: [2, 10], silent: true, itemStyle: { color: colour("soft") } },
      {
        type: "scatter", name: "ratio", symbolSize: 11, z: 5,
        data: rows.map((row, n) => ({
          value: [row.ratio, n], symbol: moods[row.mood][1], itemStyle: { color: colour(moods[row.mood][0]) },
        })),
      },
    ],
  });
}

// Draws rows {name, ratio, low, high, mood, pairs}; the last may be missing.
function drawRatios(box, every, title, failBelow) {
  const apart = [...every].sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio))).slice(0, MOST_RATIOS);
  const rows = every.filter((row) => apart.includes(row));
  if (rows.length < every.length) {
    box.before(make("p", {}, `The ${rows.length} rows with the largest differences; the table contains all ${every.length}.`));
  }
  const fit = () => { box.style.height = `${rows.length * rowHeight(rows) + 90}px`; };
  fit();
  new Chart(box, box.dataset.label, () => ratioOption(rows, title, failBelow));
  addEventListener("resize", fit);
}
