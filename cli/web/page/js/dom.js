// Creates elements without parsing HTML: names and texts of others stay text.

// Control characters and changes of text direction must not rearrange the page.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export const clean = (text) => String(text).replace(UNSEEN, "\ufffd");

/**
 * Creates an element.
 * @param {string} tag such as "td"
 * @param {object} attributes null, undefined and false are omitted; functions become listeners ("onclick")
 * @param {...any} children elements, texts, arrays of these; null, undefined and false are omitted
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

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/**
 * Redraws a list that can grow at the top, and keeps the focused link and the scroll position.
 * @param {Element} list
 * @param {function} draw
 */
export function still(list, draw) {
  const like = (one) => [...list.querySelectorAll("a")].filter((other) => other.href === one.href);
  const focused = list.contains(document.activeElement) && document.activeElement.matches("a") ? document.activeElement : null;
  const fromEnd = focused && like(focused).length - like(focused).indexOf(focused);
  const height = list.offsetHeight;
  draw();
  if (list.getBoundingClientRect().top < 0) scrollBy({ top: list.offsetHeight - height, behavior: "instant" });
  if (focused) like(focused).at(-fromEnd)?.focus({ preventScroll: true });
}

/** Redraws an element, and keeps the focus on the same link or button. */
export function kept(place, draw) {
  const focused = place.contains(document.activeElement) ? focusName(document.activeElement) : null;
  draw();
  if (focused) [...place.querySelectorAll("a, button, summary")].find((one) => focusName(one) === focused)?.focus({ preventScroll: true });
}
const focusName = (one) => one.getAttribute("href") ?? one.getAttribute("aria-label") ?? one.textContent;

export const link = (to, ...children) => h("a", { href: to }, ...children);

/** A highlighted word; `kind` is good, warn, bad, info or quiet. */
export const badge = (text, kind = "quiet") => h("span", { class: `badge ${kind}` }, text);

/** A name, or another text that somebody else wrote. */
export const name = (text) => h("bdi", { class: String(text).length <= SHORT ? "name short" : "name" }, text);

const FEW = 3; // columns: such a table does not fill the page's width
const SHORT = 24; // characters: such a name does not wrap

/**
 * A table; on a narrow screen its rows become cards.
 * @param {string} caption for screen readers
 * @param {Array<{label: string, cell: function, number?: boolean, wide?: boolean, sort?: string}>} columns
 * @param {Array} rows the argument of each `cell`
 * @param {{by: string, down: boolean, change: function}} [order] for sortable columns
 * @param {string} [kind] "plain" for a table that is one on narrow screens too
 */
export function table(caption, columns, rows, order, kind = "") {
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
  // Some screen readers need the roles: CSS that lays out rows as cards removes the table's semantics.
  const whole = h(
    "table",
    { role: "table", class: [columns.length <= FEW && "few", kind].filter(Boolean).join(" ") || null },
    h("caption", { class: "unseen" }, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
    h("tbody", { role: "rowgroup" }, rows.map((row) => line(columns, row))),
  );
  return h("div", { class: "scroll" }, whole); // a wide table scrolls; the page does not
}

/** A row of a table, see {@link table}. */
export function line(columns, row) {
  return h(
    "tr",
    { role: "row" },
    columns.map((column, index) => {
      const value = column.cell(row);
      const none = value === null || value === undefined || value === false || value === "";
      const classes = [column.number && "number", index === 0 && "first", column.wide && "wide", none && "none"].filter(Boolean).join(" ");
      return h("td", { role: "cell", "data-label": column.label, class: classes || null }, h("div", {}, none ? "–" : value));
    }),
  );
}

const sorted = (column, order) =>
  column.sort && order && order.by === column.sort ? (order.down ? "descending" : "ascending") : null;

/** A list of terms and values; pairs without a value are omitted. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "facts" }, shown.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))));
}

/** A field with its label. `grow` is whether it takes the width that is left. */
export function field(label, input, hint, grow = false) {
  input.id ||= `f${++fields}`;
  const note = hint ? h("small", { id: `${input.id}-hint` }, hint) : null;
  if (note) input.setAttribute("aria-describedby", note.id);
  return h("div", { class: grow ? "field grow" : "field" }, h("label", { for: input.id }, label), input, note);
}
let fields = 0;

export const select = (options, chosen, change) =>
  h(
    "select",
    { onchange: (event) => change(event.target.value) },
    options.map(([value, label]) => h("option", { value, selected: value === chosen }, label)),
  );

/** The heading of a view; receives the focus when the view opens. */
export const heading = (...children) => h("h1", { tabindex: "-1" }, ...children);

/** The first line of a view: its heading, and what can be done there. */
export const headline = (title, ...more) => h("div", { class: "headline" }, heading(title), more);

export const refreshButton = (refresh) => h("button", { type: "button", "data-refresh": true, onclick: () => refresh() }, "Refresh");

const NAMED = /^\S*[._:]/; // a line that begins with the name of a file, a setting or a key

/** An error message, a paragraph for each of its lines, with a button to retry. */
export function problem(error, retry) {
  return h(
    "div",
    { class: "problem", role: "alert" },
    error.message.split("\n").map((line) => h("p", { class: NAMED.test(line) && "exact" }, line)),
    retry && h("button", { type: "button", onclick: retry }, "Try again"),
  );
}

/** The items that a response leaves out because somebody edited them; null without any. */
export const leftOut = ({ malformed = [] }) => malformed.length > 0 && h("p", { class: "old" }, "Left out, because they are malformed: ", malformed.map(({ item, why }) => `${item}: ${why}`).join("; "));

export const loading = (what) => h("p", { class: "loading", role: "status" }, `Loading ${what} …`);

/** A place with the size of so many lines that are still loading. */
export const skeleton = (lines) => h("div", { class: "loading skeleton" }, h("span", { class: "unseen" }, "Loading …"), Array.from({ length: lines }, () => h("span", { class: "bar", "aria-hidden": "true" })));

let timer;
/** Shows the result of an action above the view for 12 s, or so many milliseconds. */
export function flash(text, time = 12_000) {
  const place = document.getElementById("flash");
  clearTimeout(timer);
  fill(place, text);
  timer = setTimeout(() => fill(place), time);
}
