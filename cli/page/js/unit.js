// One unit: why it was left alone or what became of it, what holds for it and why, opting out and in.

import { change, get } from "./api.js";
import { ask, once } from "./dialogs.js";
import { badge, facts, field, fill, flash, h, heading, link, loading, name, problem, table } from "./dom.js";
import { lapse } from "./event.js";
import { COLUMNS as EVENT_COLUMNS } from "./events.js";
import { dayAfter, longDay, moment, plain, stillToday, whence, who } from "./format.js";
import { noted } from "./units.js";

const MEANS = {
  takes_part: "Takes part", until: "Opted out until", probability: "Probability on each business day", min_healthy: "At least healthy",
  min_days_between: "Business days between", method: "Method", calendar: "Calendar", stop_alarms: "Stop alarms", reason: "Reason", owner: "Owner",
};

export async function show(main, signal, id) {
  const path = `groups/${id}`;
  fill(main, loading("the unit"));
  let unit;
  try {
    unit = await get(path, {}, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    nothing(main, id);
    return;
  }
  const place = h("div", {});
  const why = whyPanel(unit.unit, signal);
  fill(main, place, why.element);
  const rest = h("div", {});
  main.append(rest);
  draw();
  why.look();

  function draw() {
    fill(place, head(unit, () => once(optOut), () => once(optIn)));
    fill(rest, details(unit));
  }

  async function changed(told, after) {
    unit = after;
    noted(unit);
    draw();
    flash(told);
    main.querySelector(".actions button")?.focus();
    why.look();
  }

  /** Asks with the unit as it is now, and sends its version: what somebody else has changed in between is not undone. */
  async function decide(title, yes, content, wanted, told) {
    try {
      unit = await get(path, {}, signal);
    } catch (error) {
      if (!signal.aborted) flash(error.message);
      return;
    }
    let after;
    const done = await ask({
      title, yes,
      content: content(unit),
      act: async () => {
        after = await change("PATCH", path, { ...wanted(unit), version: unit.version });
      },
      conflict: async () => {
        unit = await get(path, {}, signal);
        draw();
        return content(unit);
      },
    });
    if (done) await changed(told(after), after);
  }

  function optOut() {
    const reason = h("input", { maxlength: "256", name: "reason", autocomplete: "off" });
    const until = h("input", { type: "date", name: "until", min: stillToday() });
    const owner = h("input", { maxlength: "256", name: "owner", autocomplete: "off" });
    return decide(
      `Leave ${unit.unit} alone?`,
      "Opt out",
      (now) => [
        h("p", {}, `No instance of ${groupsOf(now)} is terminated by a roll any more, from the next decision on, until the end given here or until somebody opts it in.`),
        standing(now),
        field("Why", reason, "Shown wherever the unit is left alone."),
        field("Until", until, "The last day of it; without one it has no end."),
        field("Whose it is", owner, "Left empty, the owner stays as it is."),
      ],
      () => ({
        opt_out: true,
        until: until.value || null,
        reason: reason.value.trim() || null,
        ...(owner.value.trim() && { owner: owner.value.trim() }),
      }),
      (now) => `${now.unit} is left alone${until.value ? ` until ${until.value}, that day included` : ""}.`,
    );
  }

  function optIn() {
    return decide(
      unit.unrecovered ? `Put ${unit.unit} back into chaos?` : `Let ${unit.unit} take part?`,
      unit.unrecovered ? "Put back" : "Opt in",
      (now) => [
        h("p", {}, `From the next decision on instances of ${groupsOf(now)} can be terminated again. An opt-out, its end and its reason are removed.`),
        now.unrecovered && h("p", {}, "It has not recovered from ", lapse(now), ": this puts it back all the same."),
        standing(now),
      ],
      (now) => ({ opt_in: true, opt_out: null, until: null, reason: null, ...(now.unrecovered && { unrecovered: false }) }),
      (now) => (now.policy.takes_part?.value ? `${now.unit} takes part.` : `${now.unit} is changed, and still left alone: ${now.policy.takes_part?.source}.`),
    );
  }
}

function nothing(main, id) {
  let called = id;
  try {
    called = decodeURIComponent(id.replaceAll("~", "%"));
  } catch {
    // no spelling of a name
  }
  fill(
    main,
    h("p", { class: "back" }, link("#/units", "← Units")),
    heading("There is no unit ", name(called)),
    h("p", {}, "No group of this account and region belongs to it, and nobody has set a policy for it. Those there are: ", link("#/units", "the list of units"), "."),
  );
}

const groupsOf = (unit) => unit.groups.map((group) => group.group).slice(0, 5).join(", ") + (unit.groups.length > 5 ? ` and ${unit.groups.length - 5} more` : "") || unit.unit;

function standing(unit) {
  const part = unit.policy.takes_part;
  return part && h("p", { class: "muted" }, `Now: ${part.value ? "takes part" : "left alone"} (${part.source})${unit.policy.reason?.value ? `: ${unit.policy.reason.value}` : ""}.`);
}

/** What protects all groups of a unit; null when one of them may be touched. */
function protection(unit) {
  const source = unit.policy.takes_part?.source ?? "";
  return source.startsWith("tag troop:") ? source : null;
}

function head(unit, optOut, optIn) {
  const part = unit.policy.takes_part;
  const out = part && !part.value;
  const shield = protection(unit);
  const malformed = unit.problems.length > 0;
  return [
    h("p", { class: "back" }, link("#/units", "← Units")),
    h(
      "div",
      { class: "headline" },
      heading(name(unit.unit)),
      shield ? badge("protected", "info") : malformed ? badge("malformed", "bad") : unit.unrecovered ? badge("has not recovered", "bad") : part && (out ? badge("left alone", "info") : badge("takes part", "good")),
      h(
        "div",
        { class: "actions" },
        ((out && !malformed) || unit.unrecovered) && !shield && h("button", { type: "button", class: "primary", onclick: optIn }, unit.unrecovered ? "Put back …" : "Opt in …"),
        (!out || shield || malformed) && h("button", { type: "button", onclick: optOut }, "Opt out …"),
      ),
    ),
    !unit.known && h("p", { class: "problem" }, "No group of this unit is known: it is set ahead, or misspelled."),
    shield && h("p", { class: "problem" }, `It is protected by the ${shield} of its groups: nothing terminates their instances, whatever its policy says.`),
    unit.unrecovered && h("p", { class: "problem" }, "It has not recovered from ", lapse(unit), ", and is left alone until it is put back."),
    (unit.missing_alarms ?? []).map((alarm) => h("p", { class: "problem" }, "There is no alarm ", name(alarm), ": until there is, it is left alone.")),
    unit.problems.map((text) => h("p", { class: "problem" }, `Malformed, so it is left alone until that is mended, whatever else its policy says: ${text}`)),
  ];
}

function details(unit) {
  const policy = Object.entries(unit.policy);
  return [
    h("h2", {}, "Policy"),
    table("What holds, and where each value comes from", [
      { label: "Value", cell: ([key]) => MEANS[key] ?? key },
      { label: "Holds", cell: ([key, { value }]) => (key === "takes_part" ? takesPart(unit, value) : name(plain(value))) },
      { label: "Comes from", cell: ([, { source }]) => name(whence(source)) },
    ], policy),
    facts([
      ["Next possible", unit.next_possible ? moment(unit.next_possible) : "not before somebody does something"],
      ["Last terminated on", unit.last_day],
    ]),
    h("h2", {}, "Groups"),
    unit.groups.length
      ? table("Groups of the unit", [
          { label: "Group", cell: (group) => [name(group.group), group.protected && [" ", badge("protected", "info")]] },
          { label: "In service", number: true, cell: (group) => (group.in_service === undefined ? null : `${group.in_service} of ${group.desired}`) },
        ], unit.groups)
      : h("p", { class: "muted" }, "None is known yet."),
    h("h2", {}, "Last events"),
    unit.events.length ? table("Last events", EVENT_COLUMNS.filter((column) => column.label !== "Unit"), unit.events) : h("p", { class: "muted" }, "None on record."),
    h("h2", {}, "Last changes"),
    unit.changes.length
      ? table("Last changes", [
          { label: "When", cell: (change) => moment(change.at) },
          { label: "By", cell: (change) => h("span", { title: change.caller }, name(who(change.caller))) },
          { label: "What", wide: true, cell: (change) => Object.entries(change.changes).map(([key, { old, new: now }]) => h("p", {}, `${key}: ${plain(old)} → ${plain(now)}`)) },
        ], unit.changes)
      : h("p", { class: "muted" }, "None through the API."),
  ];
}

/** Its policy's word, unless it is left alone all the same. */
const takesPart = (unit, value) =>
  value && unit.unrecovered ? [badge("not now", "bad"), h("small", { class: "source" }, "its policy says yes; it has not recovered")] : badge(value ? "yes" : "no", value ? "good" : "info");

/** Why it was left alone on a day, or what became of it: by default on the last day on record. */
function whyPanel(unit, signal) {
  const day = h("input", { type: "date", name: "day", "aria-label": "Day", onchange: () => day.value && look(day.value) });
  const step = (days) => () => day.value && look(dayAfter(day.value, days));
  const said = h("div", { "aria-live": "polite" });
  const element = h(
    "section",
    { class: "why", "aria-labelledby": "why" },
    h(
      "div",
      { class: "headline" },
      h("h2", { id: "why" }, "Why?"),
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", "aria-label": "The day before", onclick: step(-1) }, "‹"),
        day,
        h("button", { type: "button", "aria-label": "The day after", onclick: step(1) }, "›"),
      ),
    ),
    said,
  );
  let asked = 0;

  async function look(wanted = day.value) {
    const mine = ++asked;
    fill(said, loading("what was decided"));
    try {
      const told = await get("ui/why", { unit, day: wanted }, signal);
      if (mine !== asked) return;
      day.value = told.day ?? stillToday();
      fill(
        said,
        h("p", { class: "answer" }, told.answer),
        told.stretches.length > 0 &&
          h(
            "details",
            {},
            h("summary", {}, `Every tick of ${longDay(told.day)}`),
            table("What each tick decided", [
              { label: `Time in ${told.time_zone}`, cell: (row) => row.time },
              { label: "Ticks", number: true, cell: (row) => row.ticks },
              { label: "Reason", cell: (row) => row.reason },
              { label: "Detail", wide: true, cell: (row) => row.detail || null },
            ], told.stretches),
          ),
      );
    } catch (error) {
      if (!signal.aborted && mine === asked) fill(said, problem(error, () => look(wanted)));
    }
  }
  return { element, look };
}
