// Elements, made without HTML in texts: whatever others have named something stays text.

// Control characters and those that turn the direction of what follows must not rearrange the page.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export const clean = (text) => String(text).replace(UNSEEN, "\ufffd");

/**
 * An element.
 * @param {string} tag such as "td"
 * @param {object} attributes; those that are null, undefined or false are left out, functions listen ("onclick")
 * @param {...any} children elements, texts, arrays of such; null and false are left out
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : clean(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : clean(child));
  }
}

/** Puts these children in place of those that are there. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/**
 * Draws a list anew, on top of which there may be more then: whoever stands on a link in it, or has scrolled into it, stays there.
 * @param {Element} list
 * @param {function} draw
 */
export function still(list, draw) {
  const like = (one) => [...list.querySelectorAll("a")].filter((other) => other.href === one.href);
  const stood = list.contains(document.activeElement) && document.activeElement.matches("a") ? document.activeElement : null;
  const fromEnd = stood && like(stood).length - like(stood).indexOf(stood);
  const height = list.offsetHeight;
  draw();
  if (list.getBoundingClientRect().top < 0) scrollBy({ top: list.offsetHeight - height, behavior: "instant" });
  if (stood) like(stood).at(-fromEnd)?.focus({ preventScroll: true });
}

export const link = (to, ...children) => h("a", { href: to }, ...children);

/** A word that stands out; `kind` is good, warn, bad, info or quiet. */
export const badge = (text, kind = "quiet") => h("span", { class: `badge ${kind}` }, text);

/** A name or another text of somebody else's. */
export const name = (text) => h("bdi", { class: String(text).length <= SHORT ? "name short" : "name" }, text);

const FEW = 3; // columns, which need not be as wide as the page
const SHORT = 24; // letters, in which no line is broken

/**
 * A table that is one of cards on a narrow screen.
 * @param {string} caption for those who cannot see it
 * @param {Array<{label: string, cell: function, number?: boolean, wide?: boolean, sort?: string}>} columns
 * @param {Array} rows what each `cell` is given
 * @param {{by: string, down: boolean, change: function}} [order] of columns that can be sorted by
 */
export function table(caption, columns, rows, order) {
  const head = columns.map((column) =>
    h(
      "th",
      { scope: "col", role: "columnheader", class: column.number && "number", "aria-sort": sorted(column, order) },
      column.sort && order
        ? h(
            "button",
            { type: "button", class: "sort", "data-sort": column.sort, onclick: () => order.change(column.sort) },
            column.label,
            h("span", { "aria-hidden": "true", class: "arrow" }, order.by === column.sort ? (order.down ? "▾" : "▴") : ""),
          )
        : column.label,
    ),
  );
  // A table whose rows are laid out otherwise is none any more to some readers, unless its parts say so.
  const whole = h(
    "table",
    { role: "table", class: columns.length <= FEW && "few" },
    h("caption", { class: "unseen" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
    h("tbody", { role: "rowgroup" }, rows.map((row) => line(columns, row))),
  );
  return h("div", { class: "scroll" }, whole); // what is too wide moves by itself, not the page
}

function line(columns, row) {
  return h(
    "tr",
    { role: "row" },
    columns.map((column, index) => {
      const value = column.cell(row);
      const none = value === null || value === undefined || value === "";
      const classes = [column.number && "number", index === 0 && "first", column.wide && "wide", none && "none"].filter(Boolean).join(" ");
      return h("td", { role: "cell", "data-label": column.label, class: classes || null }, h("div", {}, none ? "–" : value));
    }),
  );
}

const sorted = (column, order) =>
  column.sort && order && order.by === column.sort ? (order.down ? "descending" : "ascending") : null;

/** Pairs of a term and what it is; pairs without the latter are left out. */
export function facts(pairs) {
  const told = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "facts" }, told.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))));
}

/** A field with its label. */
export function field(label, input, hint) {
  input.id ||= `f${++fields}`;
  const told = hint ? h("small", { id: `${input.id}-hint` }, hint) : null;
  if (told) input.setAttribute("aria-describedby", told.id);
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input, told);
}
let fields = 0;

export const select = (options, chosen, change) =>
  h(
    "select",
    { onchange: (event) => change(event.target.value) },
    options.map(([value, label]) => h("option", { value, selected: value === chosen }, label)),
  );

/** The heading of a view; takes the focus when the view is new. */
export const heading = (...children) => h("h1", { tabindex: "-1" }, ...children);

/** What went wrong, and a way to try again. */
export function problem(error, again) {
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, error.message),
    again && h("button", { type: "button", onclick: again }, "Try again"),
  );
}

export const loading = (what) => h("p", { class: "loading", role: "status" }, `Loading ${what} …`);

let told;
/** Says what has been done, where everybody notices it. */
export function flash(text) {
  const place = document.getElementById("flash");
  clearTimeout(told);
  fill(place, text);
  told = setTimeout(() => fill(place), 12_000);
}
