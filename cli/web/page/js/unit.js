// One unit: the decision of a day, its policy with sources, groups, events and changes; opting out and in.

import { address, lastOf } from "./address.js";
import { change, get } from "./api.js";
import { heatMap, recoveries } from "./charts.js";
import { ask, once } from "./dialogs.js";
import { badge, facts, field, fill, flash, h, heading, headline, leftOut, link, loading, name, problem, table } from "./dom.js";
import { lapse } from "./event.js";
import { stamp } from "./freshness.js";
import { COLUMNS as EVENT_COLUMNS } from "./events.js";
import { dayAfter, earliestToday, longDay, moment, plain, sourceName, stateKind, unitAddress, who } from "./format.js";
import { updateRow } from "./units.js";

export const LABELS = {
  takes_part: "Takes part by policy", until: "Opted out until", probability: "Probability per business day", min_healthy: "Minimum healthy",
  min_days_between: "Business days between terminations", method: "Method", calendar: "Calendar", stop_alarms: "Stop alarms", reason: "Reason", owner: "Owner",
};

const OLD = 600_000; // milliseconds, after which the view is marked as old

export async function show(main, signal, id) {
  const path = `groups/${id}`;
  fill(main, heading(name(id)), loading("the unit"));
  let unit;
  try {
    unit = await get(path, {}, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    missing(main, id);
    return;
  }
  const place = h("div", {});
  const decision = decisionPanel(unit.unit, signal);
  fill(main, place, decision.element);
  const rest = h("div", {});
  const year = yearPanel(unit.unit, signal);
  main.append(year.element, rest);
  draw();
  decision.refresh();
  year.load();

  function draw() {
    fill(place, head(unit, () => once(optOut), () => once(optIn)));
    stamp(place, new Date(), OLD);
    fill(rest, details(unit));
  }

  async function changed(message, after) {
    unit = after;
    updateRow(unit);
    draw();
    flash(message);
    main.querySelector(".actions button")?.focus();
    decision.refresh();
  }

  /** Confirms a change of the unit's current state, and sends its version, so that it does not undo somebody else's change. */
  async function decide(title, yes, content, changes, message) {
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
        after = await change("PATCH", path, { ...changes(unit), version: unit.version });
      },
      conflict: async () => {
        unit = await get(path, {}, signal);
        draw();
        return content(unit);
      },
    });
    if (done) await changed(message(after), after);
  }

  function optOut() {
    const reason = h("input", { maxlength: "256", name: "reason", autocomplete: "off" });
    const until = h("input", { type: "date", name: "until", min: earliestToday() });
    const owner = h("input", { maxlength: "256", name: "owner", autocomplete: "off" });
    return decide(
      `Opt out ${unit.unit}?`,
      "Opt out",
      (now) => [
        h("p", {}, `From the next decision on, no roll terminates an instance of ${groupsOf(now)}. The opt-out lasts until the last day below, or until someone opts the unit in.`),
        standing(now),
        field("Reason", reason, "Shown wherever the unit is skipped."),
        field("Until", until, "Last day of the opt-out. Leave empty for an opt-out without end."),
        field("Owner", owner, "Leave empty to keep the current owner."),
      ],
      () => ({
        opt_out: true,
        until: until.value || null,
        reason: reason.value.trim() || null,
        ...(owner.value.trim() && { owner: owner.value.trim() }),
      }),
      (now) => `${now.unit} is opted out${until.value ? ` until the end of ${until.value}` : ""}.`,
    );
  }

  function optIn() {
    return decide(
      unit.unrecovered ? `Opt in ${unit.unit} again?` : `Opt in ${unit.unit}?`,
      unit.unrecovered ? "Opt in again" : "Opt in",
      (now) => [
        h("p", {}, `From the next decision on, Troop can terminate instances of ${groupsOf(now)}. This removes an opt-out with its end and reason.`),
        now.unrecovered && h("p", {}, "The unit has not recovered from ", lapse(now), ". Opting in again clears this state."),
        standing(now),
      ],
      (now) => ({ opt_in: true, opt_out: null, until: null, reason: null, ...(now.unrecovered && { unrecovered: false }) }),
      (now) => (now.outlook.takes_part ? `${now.unit} takes part.` : `${now.unit} is changed, but still skipped: ${now.outlook.why}.`),
    );
  }
}

function missing(main, id) {
  let unit = id;
  try {
    unit = decodeURIComponent(id.replaceAll("~", "%"));
  } catch {
    // not an encoded name
  }
  fill(
    main,
    h("p", { class: "back" }, link("#/units", "← Units")),
    heading("There is no unit ", name(unit)),
    h("p", {}, "No Auto Scaling group in this account and region belongs to it, and it has no policy. See ", link("#/units", "the list of units"), "."),
  );
}

export const groupsOf = (unit) => unit.groups.map((group) => group.group).slice(0, 5).join(", ") + (unit.groups.length > 5 ? ` and ${unit.groups.length - 5} more` : "") || unit.unit;

const standing = ({ outlook: { takes_part: part, why } }) => h("p", { class: "muted" }, `Now: ${part ? "takes part" : "skipped"}${why && `; ${why}`}.`);

const OPTED_OUT = ["opted-out", "not-opted-in"]; // reasons that opting in ends

function head(unit, optOut, optIn) {
  const { state, takes_part: part, reason, why } = unit.outlook;
  const out = OPTED_OUT.includes(reason);
  return [
    h("p", { class: "back" }, link(lastOf("#/units"), "← Units"), h("span", { class: "age" })),
    headline(
      name(unit.unit),
      badge(part ? "takes part" : state, stateKind(state)),
      h(
        "div",
        { class: "actions" },
        (out || reason === "unrecovered") && h("button", { type: "button", class: "primary", onclick: optIn }, unit.unrecovered ? "Opt in again …" : "Opt in …"),
        !out && h("button", { type: "button", onclick: optOut }, "Opt out …"),
        link(`${unitAddress(unit.unit)}/policy`, "Change policy …"),
      ),
    ),
    !unit.known && h("p", { class: "problem" }, "This unit has no groups. Its policy was set in advance, or its name is misspelled."),
    why && h("p", { class: stateKind(state) === "bad" ? "problem" : "muted" }, part ? "Not now: " : "Skipped: ", name(why), unit.unrecovered && [" (", lapse(unit), ")"]),
    (unit.missing_alarms ?? []).map((alarm) => h("p", { class: "problem" }, "The stop alarm ", name(alarm), " does not exist. The unit is skipped until it does.")),
  ];
}

function details(unit) {
  const policy = Object.entries(unit.policy);
  return [
    h("h2", {}, "Policy"),
    table("Policy values and their sources", [
      { label: "Setting", cell: ([key]) => LABELS[key] ?? key },
      { label: "Value", cell: ([key, { value }]) => (key === "takes_part" ? badge(value ? "yes" : "no", value ? "good" : "info") : name(plain(value))) },
      { label: "Source", cell: ([, { source }]) => name(sourceName(source)) },
    ], policy),
    facts([
      ["Next possible termination", unit.outlook.next_possible ? moment(unit.outlook.next_possible) : "not while this is so"],
      ["Last terminated on", unit.last_day],
    ]),
    h("h2", {}, "Groups"),
    unit.groups.length
      ? table("Groups of the unit", [
          { label: "Group", cell: (group) => [name(group.group), group.protected && [" ", badge("protected", "info")]] },
          { label: "In service", number: true, cell: (group) => (group.in_service === undefined ? null : `${group.in_service} of ${group.desired}`) },
        ], unit.groups)
      : h("p", { class: "muted" }, "There are no groups yet."),
    leftOut(unit),
    h("h2", {}, "Last events"),
    unit.events.length ? table("Last events", EVENT_COLUMNS.filter((column) => column.label !== "Unit"), unit.events) : h("p", { class: "muted" }, "There are no events."),
    h("h2", {}, "Last changes"),
    unit.changes.length
      ? table("Last changes", [
          { label: "Time", cell: (change) => moment(change.at) },
          { label: "By", cell: (change) => h("span", { title: change.caller }, name(who(change.caller))) },
          { label: "Changes", wide: true, cell: (change) => Object.entries(change.changes).map(([key, { old, new: now }]) => h("p", {}, `${key}: ${plain(old)} → ${plain(now)}`)) },
        ], unit.changes)
      : h("p", { class: "muted" }, "There are no changes through the API."),
  ];
}

/** The decision of a day and of each of its ticks; by default of the last recorded day. */
function decisionPanel(unit, signal) {
  const day = h("input", { type: "date", name: "day", "aria-label": "Day", onchange: () => day.value && refresh(day.value) });
  const step = (days) => () => day.value && refresh(dayAfter(day.value, days));
  const result = h("div", { "aria-live": "polite" });
  const element = h(
    "section",
    { class: "why", "aria-labelledby": "why" },
    h(
      "div",
      { class: "headline" },
      h("h2", { id: "why" }, "Decision"),
      h(
        "div",
        { class: "actions" },
        h("button", { type: "button", "aria-label": "Previous day", onclick: step(-1) }, "‹"),
        day,
        h("button", { type: "button", "aria-label": "Next day", onclick: step(1) }, "›"),
      ),
    ),
    result,
  );
  let round = 0; // of loading: responses to earlier rounds are dropped

  async function refresh(date = day.value) {
    const mine = ++round;
    fill(result, loading("the decision"));
    try {
      const explanation = await get("ui/why", { unit, day: date }, signal);
      if (mine !== round) return;
      day.value = explanation.day ?? earliestToday();
      fill(
        result,
        h("p", { class: "answer" }, explanation.answer),
        explanation.stretches.length > 0 &&
          h(
            "details",
            {},
            h("summary", {}, `Every tick of ${longDay(explanation.day)}`),
            table("Decision of each tick", [
              { label: `Time in ${explanation.time_zone}`, cell: (row) => row.time },
              { label: "Ticks", number: true, cell: (row) => row.ticks },
              { label: "Reason", cell: (row) => row.reason },
              { label: "Detail", wide: true, cell: (row) => row.detail || null },
            ], explanation.stretches),
          ),
      );
    } catch (error) {
      if (!signal.aborted && mine === round) fill(result, problem(error, () => refresh(date)));
    }
  }
  return { element, refresh };
}

/** The recoveries and terminations of the unit's last year. */
function yearPanel(unit, signal) {
  const result = h("div", {});
  const element = h("section", { "aria-labelledby": "year" }, h("h2", { id: "year" }, "Recovery in the last year"), result);
  async function load() {
    fill(result, loading("the last year"));
    try {
      const { since, until, complete_since: complete, recoveries: points, days } = await get("ui/year", { unit }, signal);
      fill(
        result,
        points.length ? recoveries(points, until) : h("p", { class: "muted" }, "No recovery in the last year."),
        Object.keys(days).length > 0 && [h("h3", {}, "Terminations"), heatMap(days, since, until, (day) => address("#/events", { q: unit, day }))],
        complete && h("p", { class: "muted small" }, `Events before ${complete} are not included.`),
      );
    } catch (error) {
      if (!signal.aborted) fill(result, problem(error, load));
    }
  }
  return { element, load };
}
