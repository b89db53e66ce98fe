// What could make a recovery fail, and leftovers that cost money: by severity, each rule with what to do. Changes nothing.

import { filtersOf, remember } from "./address.js";
import { get } from "./api.js";
import { badge, fill, field, h, headline, leftOut, link, loading, name, problem, refreshButton, select, table } from "./dom.js";
import { loaded, loadedLine } from "./freshness.js";
import { count, eventAddress, moment, money, plain, sentence, unitAddress, who } from "./format.js";

const OLD = 3_600_000; // milliseconds, after which the view is marked as old
const MOST = 100; // rows of a rule, until somebody asks for the others
const DEFAULTS = { unit: "", q: "", severity: "", exempt: "", gone: "" }; // in the address

/** The kinds of badges of severities. */
export const SEVERITY = { high: "bad", medium: "warn", low: "quiet" };
const MEANING = { high: "A recovery fails.", medium: "A recovery takes longer, or nobody knows of it.", low: "It costs order." };
const SEVERITIES = [["", "All severities"], ...Object.keys(SEVERITY).map((one) => [one, one])];

const isLeftover = ({ kind }) => !["unit", "instance", ""].includes(kind);
const capital = (text) => text[0].toUpperCase() + text.slice(1);
/** A text of the API, with its commands as such. */
const exact = (text) => text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
const date = (text) => h("time", { datetime: text, title: text }, text.slice(0, 10));

function state({ gone_since: gone, exemption, unknown }) {
  return [
    gone && h("p", {}, badge("gone", "good"), " since ", date(gone)),
    exemption && h("p", {}, badge("exempt", "info"), ` until ${exemption.until} by `, h("span", { title: exemption.by }, name(who(exemption.by))), ": ", name(exemption.reason)),
    !gone && unknown && h("p", {}, badge("not known now", "warn"), " ", name(unknown)),
  ].filter(Boolean);
}

const COLUMNS = [
  { label: "Subject", cell: ({ kind, subject }) => (kind === "unit" ? link(unitAddress(subject), name(subject)) : name(subject)) },
  { label: "Owner", cell: ({ owner }) => owner && name(owner) },
  { label: "Evidence", wide: true, cell: ({ evidence }) => Object.entries(evidence).map(([term, value]) => h("p", {}, `${term}: `, name(plain(value)))) },
  { label: "First seen", cell: (risk) => date(risk.first_seen) },
];
const CONFIRMED = { label: "Confirmed by chaos", cell: ({ confirmed }) => confirmed && link(eventAddress(confirmed), name(confirmed)) };
const STATE = { label: "State", wide: true, cell: (risk) => (state(risk).length ? state(risk) : null) };

export async function show(main, signal) {
  const filters = filtersOf(DEFAULTS);
  if (!SEVERITIES.some(([value]) => value === filters.severity)) filters.severity = "";
  const age = loadedLine();
  const reading = h("div", {});
  const summary = h("p", { class: "muted", role: "status" });
  const list = h("div", {});
  const whole = new Set(); // the rules whose every row is shown
  let answer = null;
  const text = h("input", { type: "search", id: "q", value: filters.q, placeholder: "unit, resource, owner or rule", autocomplete: "off", spellcheck: "false", oninput: () => choose({ q: text.value.trim() }, false) });
  const severity = select(SEVERITIES, filters.severity, (value) => choose({ severity: value }));
  severity.id = "severity";
  const box = (key, label) => h("label", { class: "check" }, h("input", { type: "checkbox", checked: filters[key] === "true", onchange: (event) => choose({ [key]: event.target.checked ? "true" : "" }) }), label);
  fill(
    main,
    headline("Risks", age, refreshButton(reload)),
    reading,
    h("div", { class: "filters", role: "search" }, field("Search", text, "", true), field("Severity", severity), box("exempt", "Also exempt ones"), box("gone", "Also those that are gone")),
    summary,
    list,
    h("p", { class: "muted small" }, "Troop reads the account once a day, and changes nothing of it. To accept a risk until a day: ", h("code", {}, "troop exempt RULE SUBJECT --until DAY --reason TEXT"), "."),
  );

  function choose(values, step = true) {
    Object.assign(filters, values);
    remember(filters, DEFAULTS, step);
    draw();
  }

  async function reload() {
    const at = new Date();
    if (!answer) fill(list, loading("risks"));
    try {
      answer = await get("ui/risks", {}, signal);
      if (signal.aborted) return;
      loaded(age, at, OLD);
      draw();
    } catch (error) {
      if (!signal.aborted) fill(list, problem(error, reload));
    }
  }

  function draw() {
    if (!answer) return;
    const wanted = filters.q.toLowerCase();
    const found = answer.risks.filter((risk) => (!filters.unit || risk.subject === filters.unit) && (!filters.severity || risk.severity === filters.severity) && (filters.gone || !risk.gone_since) && [risk.subject, risk.owner, risk.rule].some((one) => one.toLowerCase().includes(wanted)));
    const shown = filters.exempt ? found : found.filter((risk) => !risk.exemption);
    const hidden = found.length - shown.length;
    fill(reading, readingOf(answer), leftOut(answer));
    fill(summary, answer.reading && [shown.length ? `${count(shown.length)} ${shown.length === 1 ? "risk" : "risks"}` : "No risks match", filters.unit && [" (only of ", name(filters.unit), ")"], hidden > 0 && `; ${count(hidden)} more that somebody has accepted`, ". ", filters.unit && link("#/risks", "All risks")]);
    const graded = shown.filter((risk) => !isLeftover(risk));
    const leftovers = shown.filter(isLeftover);
    fill(
      list,
      Object.keys(SEVERITY).map((one) => section(graded.filter((risk) => risk.severity === one), MEANING[one], capital(one))),
      section(leftovers, [sum(leftovers), " Nothing is removed: that is for the owner to decide."], "Leftovers"),
    );
  }

  function section(risks, about, title) {
    if (!risks.length) return null;
    const rules = [...new Set(risks.map((risk) => risk.rule))];
    return h("section", { "aria-label": title }, h("h2", {}, title), h("p", {}, about), rules.map((rule) => ofRule(rule, risks.filter((risk) => risk.rule === rule))));
  }

  function ofRule(rule, risks) {
    const { title = rule, reason, remedy } = answer.rules.find((one) => one.name === rule) ?? {};
    const rows = whole.has(rule) ? risks : risks.slice(0, MOST);
    const price = isLeftover(risks[0]) && { label: "A month", number: true, cell: priceOf };
    const columns = [...COLUMNS, price, risks.some((risk) => risk.confirmed) && CONFIRMED, risks.some((risk) => state(risk).length) && STATE].filter(Boolean);
    return h(
      "div",
      { class: "rule" },
      h("h3", {}, title, " ", h("code", { class: "muted" }, rule)),
      remedy && h("p", {}, h("strong", {}, "What to do: "), exact(remedy), " ", h("span", { class: "muted" }, reason)),
      table(title, columns, rows),
      rows.length < risks.length && h("button", { type: "button", onclick: () => { whole.add(rule); draw(); } }, `Show all ${count(risks.length)}`),
    );
  }

  const priceOf = ({ kind, monthly }) => (monthly ? money(monthly.amount, monthly.currency) : answer.charged.includes(kind) ? "unknown" : null);

  /** What leftovers cost in a month, as far as that is known. */
  function sum(leftovers) {
    const held = leftovers.filter((risk) => !risk.gone_since);
    const sums = new Map();
    for (const { monthly } of held) if (monthly) sums.set(monthly.currency, (sums.get(monthly.currency) ?? 0) + monthly.amount);
    const unknown = held.filter((risk) => !risk.monthly && answer.charged.includes(risk.kind)).length;
    return [
      sums.size > 0 && ["At most ", h("strong", {}, [...sums].map(([currency, amount]) => money(amount, currency)).join(" + ")), " a month."],
      unknown > 0 && ` The price of ${count(unknown)} ${unknown === 1 ? "leftover" : "leftovers"} is unknown.`,
    ];
  }

  await reload();
}

/** How old the facts are, and what is not known. */
function readingOf({ reading }) {
  if (!reading) return h("p", {}, "The account is not read yet. That happens once a day, at 3:23 UTC.");
  const subjects = Object.entries(reading.subjects).filter(([, number]) => number > 0).map(([kind, number]) => `${count(number)} ${kind}${number === 1 ? "" : kind.endsWith("s") ? "es" : "s"}`);
  return [
    h("p", {}, "Read at ", moment(reading.at), `: ${subjects.join(", ") || "nothing"}.`),
    reading.unread.map((one) => h("p", { class: "old" }, "Not known: ", sentence(one))),
    reading.unrecorded > 0 && h("p", { class: "old" }, `${count(reading.unrecorded)} more of the lowest severities are not recorded.`),
  ];
}
