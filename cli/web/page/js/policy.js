// The form for the whole policy of a unit: it previews what a change would do, and then makes it.

import { change, get } from "./api.js";
import { badge, field, fill, flash, h, heading, link, loading, name, problem, select, table } from "./dom.js";
import { longDay, moment, plain, sentence, sourceName } from "./format.js";
import { LABELS, groupsOf, outcome } from "./unit.js";
import { updateRow } from "./units.js";

const DAY = /^\d{4}-\d\d-\d\d$/;

// What a unit's own values can say of its participation, as the keys that are set.
const PARTICIPATION = [["in", "Takes part", { opt_in: "true" }], ["out", "Opted out until", { opt_out: "true" }], ["tags", "As tags and settings say", {}]];

// The other keys of a policy in the order of the form; `choices` makes a list.
const FIELDS = [
  { key: "probability", label: LABELS.probability, hint: "A number from 0 to 1." },
  { key: "min_healthy", label: LABELS.min_healthy },
  { key: "min_days_between", label: LABELS.min_days_between },
  { key: "method", label: LABELS.method, hint: "One or more faults with commas between them, with parameters as in: crash, latency delay=200 seconds=60. The roll of the day chooses one.", listed: ({ methods }) => methods },
  { key: "calendar", label: LABELS.calendar, choices: ({ calendars }) => calendars && [["", "not set"], ...calendars.map((one) => [one, one])] },
  { key: "stop_alarms", label: LABELS.stop_alarms, hint: "Names of CloudWatch alarms, with commas between them. All must be OK for a hit; one that goes off stops chaos for the unit." },
  { key: "success_alarms", label: LABELS.success_alarms, hint: "Like stop alarms. Besides, a hit is broken if one of them goes off until its verdict." },
  { key: "recovery_within", label: LABELS.recovery_within, hint: "A whole number up to 86400. A hit is broken if the recovery takes longer." },
  { key: "under_load", label: LABELS.under_load, choices: () => [["", "not set"], ["true", "yes"], ["false", "no"]] },
  { key: "reason", label: LABELS.reason },
  { key: "owner", label: LABELS.owner },
];

const text = (value) => (value === null || value === undefined ? "" : Array.isArray(value) ? value.join(", ") : String(value));

export async function show(main, signal, id) {
  fill(main, heading("Policy of ", name(id)), loading("the policy"));
  const [unit, choices] = await Promise.all([get(`groups/${id}`, {}, signal), get("ui/policy", {}, signal)]);
  const address = `#/units/${encodeURIComponent(id)}`;
  let round = 0; // of previews: a change of the form makes earlier ones invalid
  const inputs = new Map(FIELDS.map((one) => [one.key, input(one, text(unit.item[one.key]), choices)]));
  const part = participation(unit);
  const result = h("div", { "aria-live": "polite" });
  const form = h(
    "form",
    { class: "policy", novalidate: true, onsubmit: preview, oninput: outdated },
    part.element,
    FIELDS.map((one) => inputs.get(one.key).field(standing(unit, one.key))),
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Preview")),
  );
  fill(
    main,
    h("p", { class: "back" }, link(address, "← ", name(unit.unit))),
    heading("Policy of ", name(unit.unit)),
    h("p", {}, "These values are the unit's own. They override tags of its groups and the settings. An empty value is not set."),
    form,
    result,
  );

  function outdated() {
    round += 1;
    fill(result);
  }

  async function preview(event) {
    event.preventDefault();
    outdated();
    const mine = round;
    mark({});
    const others = Object.fromEntries([...inputs].filter(([, one]) => one.changed()).map(([key, one]) => [key, one.value()]));
    const values = { ...part.values(), ...others };
    if (!Object.keys(values).length) {
      fill(result, h("p", { role: "status" }, "You have changed nothing."));
      return;
    }
    fill(result, loading("the preview"));
    try {
      const answer = await change("POST", "ui/policy", { unit: unit.unit, values });
      if (mine !== round || signal.aborted) return;
      if (mark(answer.wrong)) fill(result);
      else if (answer.version !== unit.version) fill(result, elsewhere());
      else fill(result, effect(answer));
    } catch (error) {
      if (mine === round && !signal.aborted) fill(result, problem(error));
    }
  }

  /** Shows each message at its field, and goes to the first one; returns whether there is one. */
  function mark(wrong) {
    for (const [key, one] of inputs) one.wrong(wrong[key]);
    const first = part.wrong(wrong) ?? [...inputs].find(([key]) => wrong[key])?.[1].input;
    first?.focus();
    return Boolean(first);
  }

  function effect({ changes, version, effect: would, no_effect: reason }) {
    const save = h("button", { type: "button", class: "primary", onclick: () => apply({ ...changes, version }) }, "Save this policy");
    const alert = h("div", { role: "alert" });
    let busy = false;

    async function apply(body) {
      if (busy) return;
      busy = save.disabled = true;
      fill(alert);
      try {
        const after = await change("PATCH", `groups/${id}`, body);
        updateRow(after);
        if (signal.aborted) return;
        addEventListener("hashchange", () => setTimeout(() => flash(`The policy of ${after.unit} is saved.`)), { once: true });
        location.hash = address;
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 409) fill(result, elsewhere());
        else if (mark(Object.fromEntries(error.problems.map((one) => [one.where.replace(/^body\./, ""), one.problem])))) fill(result);
        else fill(alert, problem(error));
      } finally {
        busy = save.disabled = false;
      }
    }

    return h(
      "section",
      { class: "why", "aria-labelledby": "effect" },
      h("h2", { id: "effect" }, "What would change"),
      would ? forecast(would) : h("p", {}, `The effect cannot be computed: ${sentence(reason)}`),
      h("p", {}, "Nothing is saved yet."),
      alert,
      h("div", { class: "buttons" }, save),
    );
  }

  function forecast(would) {
    const [before, after] = would.next_possible;
    return [
      would.problems.map((one) => h("p", { class: "problem" }, `The unit would be skipped, because its policy is malformed: ${one}`)),
      would.values.length
        ? table("Values in force before and after the change", [
            { label: "Setting", cell: (row) => LABELS[row.key] ?? row.key },
            { label: "Now", cell: (row) => sourced(row.before) },
            { label: "Then", cell: (row) => sourced(row.after) },
          ], would.values)
        : h("p", {}, "No value in force changes."),
      h("p", {}, "Next possible hit: ", possible(before), before !== after && [" → ", h("strong", {}, possible(after))], "."),
      days(would),
    ];
  }

  function days(would) {
    if (would.not_expected) return h("p", { class: "muted" }, `The decisions of coming days cannot be predicted: ${sentence(would.not_expected)}`);
    if (!would.days.length) return h("p", { class: "muted" }, unit.groups.length ? "No tick decides about the unit in the next two weeks." : "The unit has no groups, so nothing is decided about it.");
    const same = would.days.every((row) => !differs(row));
    return [
      h("h3", {}, "Decisions of the next two weeks"),
      would.halted && h("p", {}, "Chaos is halted. This is what would happen if someone resumed it now."),
      same && h("p", {}, "They stay the same."),
      h(
        "details",
        { open: !same },
        h("summary", {}, same ? "Every day" : `${would.days.filter(differs).length} of ${would.days.length} days change`),
        table("Decisions before and after the change", [
          { label: "Day", cell: (row) => [longDay(row.day), differs(row) && [" ", badge("changes", "warn")]] },
          { label: "Now", cell: (row) => outcome(row.before) },
          { label: "Then", cell: (row) => outcome(row.after) },
        ], would.days),
      ),
      h("p", { class: "muted small" }, `Assumptions: ${would.assumptions.join("; ")}.`),
    ];
  }

  function elsewhere() {
    return h("div", { class: "problem", role: "alert" }, h("p", {}, `Somebody else has changed ${groupsOf(unit)} meanwhile. Load the current policy, and enter your changes again.`), h("button", { type: "button", onclick: () => show(main, signal, id) }, "Load the current policy"));
  }
}

/** The choice whether the unit takes part, and the last day of an opt-out: three keys of the policy, which exclude each other. */
function participation(unit) {
  const stored = Object.fromEntries(["opt_out", "until", "opt_in"].map((key) => [key, text(unit.item[key])]));
  const initial = stored.until || stored.opt_out === "true" ? "out" : stored.opt_in === "true" ? "in" : stored.opt_out || stored.opt_in ? "kept" : "tags";
  const kept = Object.entries(stored).map(([key, value]) => value && `${key}: ${value}`).filter(Boolean).join(", ");
  const choices = [...PARTICIPATION, ...(initial === "kept" ? [["kept", `As stored (${kept})`, stored]] : [])];
  const until = h("input", { name: "until", "aria-label": "Last day of the opt-out", autocomplete: "off", value: stored.until, type: !stored.until || DAY.test(stored.until) ? "date" : "text", disabled: initial !== "out" });
  const message = h("small", { class: "wrong", id: "wrong-participation" });
  const hint = h("small", { id: "participation-hint" }, `The last day of an opt-out; empty for no end. ${standing(unit, "takes_part")}`);
  const radios = choices.map(([value, label]) => {
    const radio = h("input", { type: "radio", name: "participation", value, checked: value === initial, onchange: () => (until.disabled = chosen() !== "out") });
    return h("span", {}, h("label", { class: "check" }, radio, label), value === "out" && until);
  });
  const element = h("fieldset", { class: "choice", "aria-describedby": hint.id }, h("legend", {}, "Participation"), h("div", { class: "choices" }, radios), hint, message);
  const chosen = () => element.querySelector(":checked").value;
  return {
    element,
    /** The keys to change with their values; null removes a key. */
    values() {
      const choice = chosen();
      const day = choice === "out" ? until.value.trim() : "";
      if (choice === initial && day === stored.until) return {};
      const set = { until: day, ...choices.find(([value]) => value === choice)[2] };
      return Object.fromEntries(Object.keys(stored).filter((key) => (set[key] ?? "") !== stored[key]).map((key) => [key, set[key] || null]));
    },
    /** Shows the message about one of the keys; returns the input to correct, or undefined. */
    wrong(problems) {
      const problem = problems.until ?? problems.opt_out ?? problems.opt_in;
      fill(message, problem);
      until.removeAttribute("aria-invalid");
      until.setAttribute("aria-describedby", problem ? message.id : hint.id);
      if (!problem) return undefined;
      if (problems.until) until.setAttribute("aria-invalid", "true");
      return problems.until ? until : element.querySelector(":checked");
    },
  };
}

/** A field of the form, with its value at first. */
function input({ key, label, hint, choices, listed }, initial, known) {
  const options = choices?.(known);
  const element = options
    ? select(options.some(([value]) => value === initial) ? options : [...options, [initial, initial]], initial, () => {})
    : h("input", { value: initial, autocomplete: "off", spellcheck: "false" });
  element.name = key;
  const message = h("small", { class: "wrong", id: `wrong-${key}` });
  return {
    input: element,
    value: () => element.value.trim() || null,
    changed: () => element.value.trim() !== initial,
    field(now) {
      const place = field(label, element, [hint, now].filter(Boolean).join(" "));
      place.append(message);
      if (listed) place.append(h("details", {}, h("summary", {}, "All faults, with their defaults"), h("ul", { class: "small" }, listed(known).map(([usage, summary]) => h("li", {}, h("code", {}, usage), `: ${summary}`)))));
      return place;
    },
    wrong(problem) {
      fill(message, problem);
      element.toggleAttribute("aria-invalid", false);
      if (problem) element.setAttribute("aria-invalid", "true");
      const hints = [problem && message.id, `${element.id}-hint`].filter(Boolean);
      element.setAttribute("aria-describedby", hints.join(" "));
    },
  };
}

/** The value in force and its source, in words. */
function standing(unit, key) {
  const now = unit.policy[key];
  const value = key === "takes_part" ? (now?.value ? "takes part" : "skipped") : plain(now?.value);
  if (!now || value === plain("")) return "";
  return `In force: ${value} (${sourceName(now.source)}).`;
}

const sourced = ({ value, source }) => [name(plain(value)), h("small", { class: "source" }, name(sourceName(source)))];
const possible = (at) => (at ? moment(at) : "not until someone changes the unit");
const differs = ({ before, after }) => before?.reason !== after?.reason || before?.at !== after?.at;
