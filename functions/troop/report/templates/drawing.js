// Selectable lines, choices, tables, and paper.

document.querySelector(".unscripted").remove();

const MOST_LINES = 7;

// Returns the lines to show initially: those that are not off. Of many, first repetitions: those with the lowest ranks; or
// whole measures, so that the first one has a line for each role; or lines from all over the list.
function shownAtFirst(lines, most = MOST_LINES) {
  const every = lines.map((_, place) => place);
  const on = every.filter((place) => !lines[place].off);
  const all = on.length ? on : every;
  const firsts = all.filter((place) => lines[place].first !== false);
  const from = all.length > most && firsts.length ? firsts : all;
  if (from.length <= most) return new Set(from);
  if (lines[from[0]].rank !== undefined) return new Set(from.sort((a, b) => lines[a].rank - lines[b].rank).slice(0, most));
  const measures = [...new Set(from.map((place) => lines[place].measure))].sort((a, b) => a - b);
  if (measures[0] !== undefined) {
    const whole = measures.map((measure) => from.filter((place) => lines[place].measure === measure));
    return new Set(whole.filter((its, n) => !n || whole.slice(0, n + 1).flat().length <= most).flat());
  }
  return new Set(Array.from({ length: most }, (_, n) => from[Math.round((n * (from.length - 1)) / (most - 1))]));
}

// The switches for lines beside a chart, which are also its legend. Lines without a style get the first free one.
class Lines {
  constructor(lines, changed, dashes = true, most = MOST_LINES) {
    this.lines = lines;
    this.dashes = dashes;
    this.count = make("legend", lines.length > MOST_LINES ? {} : { class: "unseen" }, "Lines shown");
    this.shown = shownAtFirst(lines, most);
    this.taken = [];
    this.element = make("fieldset", { class: lines.length > MOST_LINES ? "lines many" : "lines" }, this.count);
    this.labels = lines.map((line, place) => this.label(line, place, changed));
    this.element.append(...this.labels);
    this.element.hidden = lines.length < 2 && !lines.some((line) => line.style);
    this.mark();
  }

  label(line, place, changed) {
    const input = make("input", { type: "checkbox" });
    input.checked = this.shown.has(place);
    input.addEventListener("change", () => {
      if (input.checked) this.shown.add(place);
      else this.shown.delete(place);
      this.mark();
      changed();
    });
    return make("label", {}, input, make("span"), line.name);
  }

  mark() {
    this.taken = this.taken.map((place) => (this.shown.has(place) ? place : undefined));
    for (const place of this.shown) {
      if (this.taken.includes(place)) continue;
      const free = this.taken.findIndex((taken) => taken === undefined);
      this.taken[free === -1 ? this.taken.length : free] = place;
    }
    if (this.lines.length > MOST_LINES) this.count.textContent = `${this.shown.size} of ${this.lines.length} lines shown`;
    this.labels.forEach((label, place) => {
      label.classList.toggle("off", !this.shown.has(place));
      label.children[1].replaceChildren(swatch(this.style(place)));
    });
  }

  style(place) {
    const slot = Math.max(0, this.taken.indexOf(place));
    return this.lines[place].style || { colour: slot, dash: this.dashes ? slot : 0, symbol: slot };
  }

  chosen() {
    return this.lines.map((line, place) => ({ ...line, style: this.style(place) })).filter((_, place) => this.shown.has(place));
  }
}

function swatch(style) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 32 12");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(space, "path");
  line.setAttribute("d", "M0 6H32");
  line.setAttribute("stroke-dasharray", DASHES[style.dash % DASHES.length].join(" "));
  line.setAttribute("style", `stroke: var(--s${(style.colour % COLOURS) + 1}); stroke-width: 2.5; fill: none`);
  svg.append(line);
  if (style.symbol !== undefined) {
    const shapes = ["M16 2a4 4 0 1 0 .1 0", "M12 2h8v8h-8z", "M16 1l5 9h-10z", "M16 0l6 6-6 6-6-6z"];
    const shape = document.createElementNS(space, "path");
    shape.setAttribute("d", shapes[style.symbol % shapes.length]);
    shape.setAttribute("style", `fill: var(--s${(style.colour % COLOURS) + 1})`);
    svg.append(shape);
  }
  return svg;
}

let choices = 0;

// A labelled choice of names; hidden if there is only one.
function choice(label, names, changed) {
  choices += 1;
  const id = `choice-${choices}`;
  const select = make("select", { id });
  names.forEach((name, place) => select.append(make("option", { value: place }, name)));
  select.addEventListener("change", () => changed(Number(select.value)));
  const box = make("div", { class: "choose" }, make("label", { for: id }, label), select);
  box.hidden = names.length < 2;
  return box;
}

// Draws one of `views` [{title, lines}] in `box`: the selected view, and its lines that are switched on.
function chartOf(box, label, views, option) {
  const legend = make("div");
  let view = views[0];
  let lines;
  let chart;
  const show = () => {
    lines = new Lines(view.lines, () => chart.draw(), view.dashes);
    legend.replaceChildren(lines.element);
  };
  show();
  box.before(choice(label, views.map((one) => one.title), (place) => {
    view = views[place];
    show();
    chart.draw();
  }));
  box.after(legend);
  chart = new Chart(box, box.dataset.label, () => option(view, lines.chosen()));
}

function readData(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

// Labels each value with its column, so that a phone can show each row as a card.
function toCards(table) {
  const columns = [...table.tHead.rows].at(-1).cells;
  const names = [...columns].flatMap((column) => Array(column.colSpan).fill(column.textContent.trim()));
  for (const body of table.tBodies) {
    const spans = []; // by column: rows that a cell above still covers
    for (const row of body.rows) {
      row.setAttribute("role", "row"); // a layout of cards would remove the table's semantics
      const cells = [...row.cells];
      for (let at = 0; at < names.length || cells.length; at += 1) {
        if (spans[at]) {
          spans[at] -= 1;
          continue;
        }
        const cell = cells.shift();
        if (!cell) continue;
        if (cell.tagName === "TD") cell.dataset.label = names[at] ?? "";
        cell.setAttribute("role", cell.tagName === "TD" ? "cell" : "rowheader");
        for (let n = 0; n < cell.colSpan; n += 1) spans[at + n] = cell.rowSpan - 1;
        at += cell.colSpan - 1;
      }
    }
    body.setAttribute("role", "rowgroup");
  }
  table.setAttribute("role", "table");
  table.classList.add("cards");
}

for (const table of document.querySelectorAll(".scroll > table:has(thead)")) toCards(table);

const closed = [];
const beforePaper = [];
const afterPaper = [];

function toPaper() {
  if (onPaper) return;
  onPaper = true;
  document.documentElement.classList.add("printing");
  for (const one of document.querySelectorAll("details:not([open])")) {
    one.open = true;
    closed.push(one);
  }
  for (const chart of charts) chart.toPaper();
  for (const step of beforePaper) step();
}

function toScreen() {
  if (!onPaper) return;
  onPaper = false;
  document.documentElement.classList.remove("printing");
  for (const one of closed.splice(0)) one.open = false;
  for (const step of afterPaper) step();
  for (const chart of charts) chart.toScreen();
}

window.addEventListener("beforeprint", toPaper);
window.addEventListener("afterprint", toScreen);
matchMedia("print").addEventListener("change", (event) => (event.matches ? toPaper() : toScreen()));
