// Draws results over a parameter: a line for each value of another one.

class ParameterChart {
  constructor(box, data) {
    this.box = box;
    this.data = data;
    this.fixed = {};
    this.controls = make("div", { class: "controls" });
    this.filters = make("div", { class: "controls" });
    this.legend = make("div");
    this.ways = [
      ...data.axes.map((axisName, axis) => ({ name: axisName, axis, isRate: false })),
      ...data.axes.map((axisName, axis) => ({ name: `throughput, by ${axisName}`, axis, isRate: true })),
    ];
    [this.group, this.measure, this.way] = [0, 0, this.ways[0]];
    this.controls.append(
      choice("Operation", data.groups, (place) => { this.group = place; this.show(); }),
      choice("Show", data.measures.map((one) => one[0]), (place) => { this.measure = place; this.show(); }),
      choice("Over", this.ways.map((one) => one.name), (place) => { this.way = this.ways[place]; this.by = undefined; this.show(); }),
    );
    this.byBox = make("div");
    this.controls.append(this.byBox);
    box.before(this.controls, this.filters);
    box.after(this.legend);
    this.show();
  }

  // Returns the axes with several values among rows that agree in the axes of `given`.
  open(rows, given) {
    const values = new Map();
    for (const row of rows) {
      const key = JSON.stringify(given.map((axis) => row[2][axis]));
      if (!values.has(key)) values.set(key, this.data.axes.map(() => new Set()));
      values.get(key).forEach((its, axis) => its.add(row[2][axis]));
    }
    const groups = [...values.values()];
    return this.data.axes.map((_, axis) => axis).filter((axis) => groups.some((its) => its[axis].size > 1));
  }

  show() {
    let rows = this.data.rows.filter((row) => row[0] === this.group);
    const x = this.way.axis;
    const others = this.open(rows, [x]);
    if (this.by === undefined || !others.includes(this.by)) [this.by] = others;
    const by = choice("A line for each", others.map((axis) => this.data.axes[axis]), (place) => {
      this.by = others[place];
      this.show();
      this.byBox.querySelector("select").focus();
    });
    const select = by.querySelector("select");
    select.selectedIndex = others.indexOf(this.by);
    this.byBox.replaceChildren(by);

    // What else varies is fixed at one value, because results that differ in it must not be on one line.
    const given = this.by === undefined ? [x] : [x, this.by];
    const filters = [];
    for (let rest = this.open(rows, given); rest.length; rest = this.open(rows, given)) {
      const axis = rest[0];
      const values = sorted([...new Set(rows.map((row) => row[2][axis]))]);
      const chosen = values.includes(this.fixed[axis]) ? this.fixed[axis] : values[0];
      const name = this.data.axes[axis];
      const filter = choice(`Where ${name} is`, values.map(shown), (place) => {
        this.fixed[axis] = values[place];
        this.show();
        const again = [...this.filters.querySelectorAll("label")].find((label) => label.textContent === `Where ${name} is`);
        if (again) again.nextElementSibling.focus();
      });
      filter.querySelector("select").selectedIndex = values.indexOf(chosen);
      filters.push(filter);
      rows = rows.filter((row) => row[2][axis] === chosen);
      given.push(axis);
    }
    this.filters.replaceChildren(...filters);

    const labels = this.by === undefined ? [null] : sorted([...new Set(rows.map((row) => row[2][this.by]))]);
    const found = labels.map((label) => this.line(label, rows.filter((row) => this.by === undefined || row[2][this.by] === label)));
    this.lines = new Lines(found.filter((line) => line.data.length), () => this.chart.draw(), true);
    this.legend.replaceChildren(this.lines.element);
    const [measure, unit] = this.data.measures[this.measure];
    this.box.dataset.label = `Chart: ${measure} over ${this.way.name}; the table of results contains the values of each cell`;
    this.box.setAttribute("aria-label", this.box.dataset.label);
    this.unit = unit;
    if (this.chart) this.chart.draw();
    else this.chart = new Chart(this.box, this.box.dataset.label, () => this.option());
  }

  // Returns a line: for each value of the axis the median of its repetitions, and all of them as points.
  line(label, rows) {
    const data = [];
    const points = [];
    for (const at of sorted([...new Set(rows.map((row) => row[2][this.way.axis]))])) {
      const its = rows.filter((row) => row[2][this.way.axis] === at && row[3][this.measure] !== null && row[3][0] !== null);
      if (!its.length) continue;
      const xOf = (row) => (this.way.isRate ? row[3][0] : at);
      const x = this.way.isRate ? median(its.map(xOf)) : at;
      data.push([x, median(its.map((row) => row[3][this.measure])), at, its.length]);
      if (its.length > 1) points.push(...its.map((row) => [xOf(row), row[3][this.measure], at, row[1]]));
    }
    const name = this.by === undefined ? this.data.groups[this.group] : `${this.data.axes[this.by]} ${shown(label)}`;
    return { name, data, points };
  }

  option() {
    const lines = this.lines.chosen();
    const all = lines.flatMap((line) => [...line.data, ...line.points]);
    const xs = all.map((point) => point[0]);
    const isNumber = this.way.isRate || xs.every((x) => typeof x === "number");
    const [measure, unit] = this.data.measures[this.measure];
    const axisName = this.data.axes[this.way.axis];
    const name = this.way.isRate ? `throughput in ${this.data.measures[0][1]}, by ${axisName}` : axisName;
    const across = isNumber
      ? { ...valueAxis(xs, ""), ...below(name), type: valueAxis(xs, "").type, scale: valueAxis(xs, "").type === "log" }
      : { ...below(name), type: "category", data: sorted([...new Set(xs)]).map(shown), axisLabel: { color: colour("soft"), hideOverlap: true } };
    const place = (point) => [isNumber ? point[0] : shown(point[0]), point[1]];
    return basis({
      xAxis: across,
      yAxis: measure === "Throughput" ? { ...axis(unit), type: "value", min: 0 } : valueAxis(all.map((point) => point[1]), unit),
      tooltip: tooltip({
        trigger: "item",
        formatter: ({ data, seriesName, color }) => tip(`${axisName} ${shown(data.at)}`, [
          ...(this.way.isRate ? [[color, "throughput", plain(data.value[0])]] : []),
          [color, `${seriesName}${data.of ? `, ${data.of}` : ""}`, `${plain(data.value[1])} ${unit}`],
        ]),
      }),
      series: lines.flatMap((line) => [
        lineSeries(line, line.data.map((point) => ({
          value: place(point), at: point[2], of: point[3] > 1 ? `median of ${point[3]}` : "",
          label: { show: this.way.isRate && !isNarrow(), formatter: shown(point[2]), position: "top", fontSize: 10, color: colour("soft") },
        })), { showSymbol: true, showAllSymbol: true }),
        {
          type: "scatter", name: line.name, symbol: "circle", symbolSize: 4, itemStyle: { color: lineColour(line.style), opacity: 0.5 },
          data: line.points.map((point) => ({ value: place(point), at: point[2], of: point[3] })),
        },
      ]),
    });
  }
}

function median(values) {
  const ordered = [...values].sort((a, b) => a - b);
  const middle = ordered.length >> 1;
  return ordered.length % 2 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2;
}

// Numbers by size, otherwise in their order.
function sorted(values) {
  return values.every((value) => typeof value === "number") ? values.sort((a, b) => a - b) : values;
}

function shown(value) {
  return value === null || value === undefined ? "–" : typeof value === "number" ? value.toLocaleString("en-US") : value;
}
