// Draws values over time: the panels of one cell, and the lines of several cells, nodes or devices on one chart.

const WARM_UP_LABEL = 75; // in CSS pixels, with margin
const MARK_LABEL = 110;
const MOST_PAIRS = 3; // of both sides of a comparison
const MOST_OVERLAID = 14; // lines that are shown at first
const TOTAL = "all operations";
const GROUPS = { role: "all nodes of a role together", node: "each node", device: "each device" };

const isWhole = (one) => !one.node && !one.device;
const groupOf = (one) => (one.device ? "device" : one.node ? "node" : "role");
const ownerOf = (one) => (one.operation === null ? one.role : one.operation);

function dataOf(one, panel) {
  return one.values.map((value, n) => [one.start + n * one.step, value === null ? null : value / panel.part]);
}

// Returns the lines of a panel: a colour for each operation or role, a dash for each measure.
function panelLines(panel, series) {
  const whose = [];
  const names = Object.keys(panel.names);
  const its = series.filter((one) => isWhole(one) && one.name in panel.names);
  const hasTotal = its.some((one) => one.operation === TOTAL);
  its.sort((a, b) => (b.operation === TOTAL) - (a.operation === TOTAL));
  const lines = its.map((one) => {
    const key = JSON.stringify([one.role, one.operation]);
    if (!whose.includes(key)) whose.push(key);
    return {
      name: `${ownerOf(one)} ${panel.names[one.name]}`.trim(),
      style: { colour: whose.indexOf(key), dash: names.indexOf(one.name) + 2 * Math.floor(whose.indexOf(key) / COLOURS) },
      measure: one.operation === null ? names.indexOf(one.name) : undefined,
      off: panel.off.includes(one.name),
      first: !hasTotal || one.operation === TOTAL, // of very many lines, those of the total are shown
      data: dataOf(one, panel),
    };
  });
  // Values of nodes are compared between roles, and those of an operation with one another.
  return lines.sort((a, b) => (a.measure ?? 0) - (b.measure ?? 0) || a.style.colour - b.style.colour || a.style.dash - b.style.dash);
}

// Returns a chart of lines over time. `times` {warm_up, measured, marks} are those of the cells that are drawn.
function timeOption(panel, times, lines, width) {
  const ends = lines.flatMap((line) => [line.data[0][0], line.data[line.data.length - 1][0]]);
  const [from, to] = [Math.min(0, ...ends), Math.max(times.measured || 0, ...ends)];
  const seconds = to - from || 1;
  const every = nice(seconds);
  const ticks = Array.from({ length: Math.floor(to / every) - Math.ceil(from / every) + 1 }, (_, n) => (Math.ceil(from / every) + n) * every);
  const room = (width * (to - Math.max(0, from))) / seconds;
  const marks = times.marks.filter((mark) => mark.at >= from && mark.at <= to);
  const shaded = from < 0
    ? {
        silent: true, itemStyle: { color: colour("warm") },
        label: { show: (width * -from) / seconds > WARM_UP_LABEL, color: colour("soft"), position: "insideTop", fontSize: 11 },
        data: [[{ name: times.warm_up === 0 ? "before" : "warm-up", xAxis: from }, { xAxis: 0 }]],
      }
    : undefined;
  const limits = [
    ...(from < 0 ? [{ xAxis: 0, name: "" }] : []),
    ...marks.map((mark) => ({
      xAxis: mark.at, name: mark.what,
      lineStyle: { color: colour(mark.kind === "lost" ? "bad" : "soft"), type: mark.kind === "lost" ? "solid" : "dotted" },
      label: {
        show: room > MARK_LABEL * (marks.length + 1) && mark.at > 0.03 * seconds, formatter: "{b}", position: "insideEndTop", fontSize: 10,
        color: colour(mark.kind === "lost" ? "bad" : "soft"), width: 160, overflow: "truncate",
      },
    })),
  ];
  const about = shaded || limits.length
    ? [{
        type: "line", data: [], silent: true, markArea: shaded,
        markLine: {
          silent: true, symbol: "none", label: { show: false }, lineStyle: { color: colour("soft"), type: "dashed" }, data: limits,
        },
      }]
    : [];
  const values = lines.flatMap((line) => line.data.map((point) => point[1]));
  return basis({
    grid: { left: 4, right: 16, top: 12, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    xAxis: {
      ...axis(""), type: "value", min: from, max: to,
      axisLabel: { color: colour("soft"), hideOverlap: true, formatter: clock, customValues: ticks },
      axisTick: { lineStyle: { color: colour("soft") }, customValues: ticks }, splitLine: { show: false },
    },
    yAxis: panel.may_be_logarithmic ? valueAxis(values, "") : { ...axis(""), type: "value", min: 0 },
    tooltip: tooltip({
      trigger: "axis",
      formatter: (points) => {
        const at = points[0].data[0];
        return tip(at < 0 && times.warm_up !== 0 ? `warm-up, ${clock(at)}` : clock(at), points.map(({ color, seriesName, data }) => [
          color, seriesName, data[1] === null ? "–" : plain(data[1]),
        ]));
      },
    }),
    series: [...about, ...lines.map((line) => lineSeries(line, line.data))],
  });
}

function nice(seconds) {
  return [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400].find((step) => seconds / step <= 12) || 43200;
}

function drawPanels(box, panels, cell, paper) {
  const made = [];
  for (const panel of panels) {
    const found = panelLines(panel, cell.series);
    if (!found.length || (panel.is_rare && !found.some((line) => line.data.some((point) => point[1] > 0)))) continue;
    const lines = new Lines(found, () => chart.draw());
    const drawing = make("div", { class: "drawing" });
    const caption = make("figcaption", {}, `${panel.title} `, make("small", {}, panel.unit));
    box.append(make("figure", panel.is_large ? { class: "large" } : {}, caption, lines.element, drawing));
    const chart = new Chart(
      drawing,
      `Chart: ${panel.title} over time, ${cell.name}`,
      () => timeOption(panel, cell, lines.chosen(), paper ? paper(panel).width : drawing.clientWidth),
      paper && paper(panel),
    );
    made.push(chart);
  }
  return made;
}

// Returns a list of what is marked, or nothing.
function markList(cells, several) {
  const marks = cells.flatMap((cell) => cell.marks.filter((mark) => !several || mark.kind === "lost").map((mark) => ({ ...mark, cell: cell.name })));
  if (!marks.length) return [];
  const text = marks.map((mark) => `${clock(mark.at)} ${mark.what}${several ? ` (${mark.cell})` : ""}`).join(" · ");
  return [make("p", { class: "marks" }, make("strong", {}, "Marked: "), text)];
}

async function unpacked(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Several checkboxes under a name; hidden if there is nothing to choose. `changed` gets the places that are on.
function switches(name, labels, on, changed) {
  const chosen = new Set(on);
  const boxes = labels.map((text, place) => {
    const input = make("input", { type: "checkbox" });
    input.checked = chosen.has(place);
    input.addEventListener("change", () => {
      if (input.checked) chosen.add(place);
      else chosen.delete(place);
      changed([...chosen].sort((a, b) => a - b));
    });
    return make("label", {}, input, text);
  });
  const element = make("fieldset", { class: labels.length > MOST_LINES ? "switches many" : "switches" }, make("legend", {}, name), ...boxes);
  element.hidden = labels.length < 2;
  return element;
}

// Returns the places of some cells of side A with those of side B that have the same settings; null without such.
function pairsOfSides(names, firsts) {
  const settings = names.map((name) => name.replace(/^[AB]: \S+/, ""));
  const pairs = names.flatMap((name, place) => {
    const other = names.findIndex((its, n) => its.startsWith("B: ") && firsts[n].first && settings[n] === settings[place]);
    return name.startsWith("A: ") && firsts[place].first && other !== -1 ? [[place, other]] : [];
  });
  const some = pairs.length ? [...shownAtFirst(pairs.map(() => ({})), MOST_PAIRS)].flatMap((n) => pairs[n]) : null;
  return some && some.sort((a, b) => a - b);
}

// Names lines by those of their parts that distinguish them, and always by the first part, the cell.
function named(lines) {
  const differ = (lines.length ? lines[0].parts : []).map((_, n) => n).filter((n) => n === 0 || new Set(lines.map((line) => line.parts[n])).size > 1);
  return lines.map((line) => ({ ...line, name: differ.map((n) => line.parts[n]).filter(Boolean).join(" · ") }));
}

// Returns the times of several cells that are drawn together.
function timesOf(cells) {
  return {
    warm_up: Math.max(0, ...cells.map((cell) => cell.warm_up || 0)),
    measured: Math.max(0, ...cells.map((cell) => cell.measured || 0)),
    marks: cells.flatMap((cell) => cell.marks.filter((mark) => mark.kind === "lost")),
  };
}

// What the disks of several cells did, with a line for each cell. A cache on instance store has figures of its own.
const DISK_FIGURES = [
  { name: "disk_reads", title: "Reads of all disks" },
  { name: "disk_writes", title: "Writes to all disks" },
  { name: "iowait", title: "Waiting for disks (iowait)" },
  { name: "disk_reads", title: "Reads of instance store", kind: "instance-store" },
  { name: "disk_writes", title: "Writes to instance store", kind: "instance-store" },
];

async function drawDisks(data) {
  const box = document.getElementById("disk-charts");
  if (!box) return;
  const packed = [...document.querySelectorAll("script.over-time")];
  const places = [...shownAtFirst(packed.map((one) => ({ first: "first" in one.dataset })))].sort((a, b) => a - b);
  const cells = await Promise.all(places.map((place) => unpacked(packed[place])));
  const times = timesOf(cells);
  for (const { name, title, kind } of DISK_FIGURES) {
    const panel = data.over_time.panels.find((one) => name in one.names);
    const wanted = (one) => one.name === name && !one.node && (kind ? one.kind === kind : !one.device);
    const found = cells.flatMap((cell, place) => cell.series.filter(wanted).map((one) => ({
      parts: [cell.name, one.role, one.device || ""], place, data: dataOf(one, panel),
    })));
    if (!found.some((line) => line.data.some((point) => point[1] > 0))) continue;
    const isOfCell = new Set(found.map((line) => line.place)).size === found.length; // then a cell has one colour everywhere
    const style = ({ place }) => (isOfCell ? { style: { colour: place, dash: place, symbol: place } } : {});
    const lines = new Lines(named(found).map((line) => ({ ...line, ...style(line) })), () => chart.draw());
    const drawing = make("div", { class: "drawing" });
    box.append(make("figure", {}, make("figcaption", {}, `${title} `, make("small", {}, panel.unit)), lines.element, drawing));
    const chart = new Chart(drawing, `Chart: ${title} over time, of ${cells.length} cells`, () => timeOption(panel, times, lines.chosen(), drawing.clientWidth));
  }
}

// One chart of any series: of the values, operations, roles, nodes, devices and cells that the reader chooses.
class Overlay {
  constructor(box, data, packed) {
    this.data = data;
    this.packed = packed;
    this.cells = new Map(); // those that were unpacked, by place
    const names = packed.map((one) => one.dataset.name);
    const firsts = packed.map((one) => ({ first: "first" in one.dataset }));
    this.shown = pairsOfSides(names, firsts) || [...shownAtFirst(firsts)].sort((a, b) => a - b);
    this.panels = data.panels.filter((panel) => data.tracks.some((track) => track[2] in panel.names));
    this.controls = make("div", { class: "controls" });
    this.caption = make("figcaption", {});
    this.legend = make("div");
    this.drawing = make("div", { class: "drawing" });
    this.notes = make("div");
    box.append(
      choice("Values", this.panels.map((panel) => panel.title), (place) => { this.choosePanel(place); this.load(); }),
      this.controls,
      switches("Cells", names, this.shown, (places) => { this.shown = places; this.load(); }),
      make("figure", { class: "large" }, this.caption, this.legend, this.drawing),
      this.notes,
    );
    this.choosePanel(0);
  }

  choosePanel(place) {
    this.panel = this.panels[place];
    const names = Object.keys(this.panel.names);
    const tracks = this.data.tracks.filter((track) => names.includes(track[2]));
    this.groups = Object.keys(GROUPS).filter((group) => tracks.some((track) => track[3] === group));
    this.group = this.groups[0];
    this.owners = [];
    for (const [role, operation] of tracks) {
      if (!this.owners.some((one) => one.role === role && one.operation === operation)) this.owners.push({ role, operation });
    }
    this.measures = names.filter((name) => tracks.some((track) => track[2] === name));
    this.wantedOwners = [0];
    this.wantedMeasures = [0];
    const owners = this.owners.map((one) => (one.operation === null ? one.role : `${one.operation} of ${one.role}`));
    this.controls.replaceChildren(
      switches("Measures", this.measures.map((name) => this.panel.names[name] || this.panel.title), [0], (places) => {
        this.wantedMeasures = places;
        this.show();
      }),
      switches("Of", owners, [0], (places) => { this.wantedOwners = places; this.show(); }),
      choice("A line for", this.groups.map((group) => GROUPS[group]), (chosen) => { this.group = this.groups[chosen]; this.show(); }),
    );
  }

  async load() {
    const wanted = this.shown;
    await Promise.all(wanted.filter((place) => !this.cells.has(place)).map(async (place) => {
      this.cells.set(place, await unpacked(this.packed[place]));
    }));
    if (wanted === this.shown) this.show();
  }

  found() {
    const owners = this.wantedOwners.map((place) => this.owners[place]);
    const measures = this.wantedMeasures.map((place) => this.measures[place]);
    const lines = [];
    for (const place of this.shown) {
      const cell = this.cells.get(place);
      if (!cell) continue;
      const ranks = new Map(); // nodes come in the order of their slowness
      for (const one of cell.series) {
        const isWanted = owners.some((owner) => owner.role === one.role && owner.operation === one.operation);
        if (!isWanted || !measures.includes(one.name) || groupOf(one) !== this.group) continue;
        const track = JSON.stringify([one.role, one.name]);
        const rank = ranks.get(track) || 0;
        ranks.set(track, rank + 1);
        const node = one.node && (this.group === "node" && rank === 0 ? `${one.node} (slowest)` : one.node);
        lines.push({
          parts: [cell.name, ownerOf(one), this.panel.names[one.name], node || "", one.device || ""],
          data: dataOf(one, this.panel),
          ...(one.node ? { rank } : {}),
        });
      }
    }
    return named(lines);
  }

  show() {
    const cells = this.shown.map((place) => this.cells.get(place)).filter(Boolean);
    const chosen = this.wantedMeasures.map((place) => this.panel.names[this.measures[place]]).filter(Boolean).join(", ");
    this.lines = new Lines(this.found(), () => this.draw(), true, MOST_OVERLAID);
    this.caption.replaceChildren(`${this.panel.title}${chosen ? `: ${chosen}` : ""} `, make("small", {}, this.panel.unit));
    this.legend.replaceChildren(this.lines.element);
    this.lines.element.hidden = !this.lines.lines.length;
    const left = cells.reduce((sum, cell) => sum + cell.left_out, 0);
    this.notes.replaceChildren(
      ...(this.lines.lines.length ? [] : [make("p", {}, "Nothing was recorded for this choice.")]),
      ...markList(cells, cells.length > 1),
      ...(left ? [make("p", {}, `${left.toLocaleString("en-US")} series of these cells are left out to keep the page small; report.json has them.`)] : []),
    );
    this.times = timesOf(cells);
    this.drawing.setAttribute("aria-label", `Chart: ${this.panel.title} over time, of ${cells.length} cells`);
    this.draw();
  }

  draw() {
    this.drawing.hidden = !this.lines.lines.length;
    if (this.drawing.hidden) return;
    if (this.chart) this.chart.fit();
    else this.chart = new Chart(this.drawing, this.drawing.getAttribute("aria-label"), () => this.option());
    this.chart.draw();
  }

  option() {
    return timeOption(this.panel, this.times, this.lines.chosen(), this.drawing.clientWidth);
  }
}

// Draws the overlay in its box, if there is one.
function drawOverlay(data) {
  const box = document.getElementById("overlay");
  if (!box) return Promise.resolve();
  return new Overlay(box, data.over_time, [...document.querySelectorAll("script.over-time")]).load();
}

function tooOld(box) {
  box.append(make("p", { class: "note" }, "This browser cannot unpack the values over time: use a newer browser."));
}
