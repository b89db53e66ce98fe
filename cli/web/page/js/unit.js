// One unit, in the order of its owner's questions: what comes next, how it recovered, its policy, and what happened.

import { address, lastOf } from "./address.js";
import { change, get } from "./api.js";
import { changeWords } from "./changes.js";
import { table as folded } from "./charts.js";
import { ask, once } from "./dialogs.js";
import { badge, field, fill, flash, h, heading, headline, leftOut, link, loading, name, problem, table } from "./dom.js";
import { ending, lapse, recoveredIn, verdictOf } from "./event_words.js";
import { stamp } from "./freshness.js";
import { day as shortDay, dayAfter, earliestToday, eventAddress, kind, longDay, moment, plain, sentence, soon, sourceName, stateKind, timed, unitAddress, who, words } from "./format.js";
import { recoveries } from "./recoveries.js";
import { updateRow } from "./units.js";

export const LABELS = {
  takes_part: "Takes part by policy", until: "Opted out until", probability: "Probability per business day", min_healthy: "Minimum healthy",
  min_days_between: "Business days between hits", method: "Faults", calendar: "Calendar", stop_alarms: "Stop alarms", success_alarms: "Success alarms", recovery_within: "Recovers within, in seconds", under_load: "Hits by benchmarks under load", reason: "Reason", owner: "Owner",
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
  const [place, rest] = [h("div", {}), h("div", {})];
  const decision = decisionPanel(unit.unit, signal);
  const next = nextPanel(() => unit, signal);
  const past = recoveryPanel(unit.unit, signal);
  fill(main, place, next.element, past.element, next.days, decision.element, rest);
  draw();
  decision.refresh();
  next.load();
  past.load();

  function draw() {
    fill(place, head(unit, () => once(optOut), () => once(optIn)));
    stamp(place, new Date(), OLD);
    fill(rest, details(unit));
    next.draw();
  }

  async function changed(message, after) {
    unit = after;
    updateRow(unit);
    draw();
    flash(message);
    main.querySelector(".actions button")?.focus();
    decision.refresh();
    next.load();
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
        h("p", {}, `From the next decision on, no roll hits an instance of ${groupsOf(now)}. The opt-out lasts until the last day below, or until someone opts the unit in.`),
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
        h("p", {}, `From the next decision on, Troop can hit instances of ${groupsOf(now)}. This removes an opt-out with its end and reason.`),
        now.unrecovered && h("p", {}, now.left_for === "broken" ? "The hypothesis was broken by " : "The unit has not recovered from ", lapse(now), ". Opting in again clears this state."),
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
const LEFT = ["unrecovered", "broken"]; // reasons that opting in again ends

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
        (out || LEFT.includes(reason)) && h("button", { type: "button", class: "primary", onclick: optIn }, unit.unrecovered ? "Opt in again …" : "Opt in …"),
        !out && h("button", { type: "button", onclick: optOut }, "Opt out …"),
        link(`${unitAddress(unit.unit)}/policy`, "Change policy …"),
      ),
    ),
    !unit.known && h("p", { class: "problem" }, "This unit has no groups. Its policy was set in advance, or its name is misspelled."),
    why && h("p", { class: stateKind(state) === "bad" ? "problem" : "muted" }, part ? "Not now: " : "Skipped: ", h("bdi", { class: "name" }, timed(why)), unit.unrecovered && [" (", lapse(unit), ")"]),
    unit.unrecovered && departure(unit),
    (unit.missing_alarms ?? []).map((alarm) => h("p", { class: "problem" }, "The alarm ", name(alarm), " does not exist. The unit is skipped until it does.")),
  ];
}

/** What led to the unit's leaving chaos, as far as its last events tell, and how it returns. */
function departure({ unrecovered, events }) {
  const event = events.find((one) => one.event_id === unrecovered);
  const why = event && ending(event);
  return h("p", {}, why && [h("span", { class: "capital" }, name(timed(sentence(why)))), " "], "It stays out of chaos until its owner opts it in again.");
}

const EVENTS = [
  { label: "Time", cell: (event) => link(eventAddress(event.event_id), soon(event.at)) },
  {
    label: "Outcome", wide: true,
    cell: (event) => [badge(words(event.status), kind(event.status)), event.recovery_seconds !== null && recoveredIn(event), [" ", verdictOf(event)], ending(event) && h("small", { class: "source" }, name(timed(ending(event))))],
  },
];

/** The texts about wrong values that are about a key of the policy: they name it before the first quote. */
const wrongs = (unit, key) => unit.problems.filter((text) => new RegExp(`\\b${key === "takes_part" ? "opt_(out|in)" : key} `).test(text.split("'")[0]));

function details(unit) {
  const [set, unset] = [[], []];
  for (const row of Object.entries(unit.policy)) (plain(row[1].value) === plain(null) && row[1].source === "settings" && !wrongs(unit, row[0]).length ? unset : set).push(row);
  const policy = [
    h("h2", {}, "Policy"),
    table("Policy values and their sources", [
      { label: "Setting", cell: ([key]) => LABELS[key] ?? key },
      { label: "Value", cell: ([key, { value }]) => [key === "takes_part" ? badge(value ? "yes" : "no", value ? "good" : "info") : name(plain(value)), wrongs(unit, key).map((text) => h("p", { class: "wrong small" }, name(text)))] },
      { label: "Source", cell: ([, { source }]) => name(sourceName(source)) },
    ], set, undefined, "plain"),
    unset.length > 0 && h("p", { class: "muted small" }, `Not set: ${unset.map(([key]) => (LABELS[key] ?? key).toLowerCase()).join(", ")}.`),
  ];
  const past = [
    h("h2", {}, "Groups"),
    unit.groups.length
      ? h("ul", { class: "states" }, unit.groups.map((group) => h("li", {}, name(group.group), group.in_service === undefined ? null : `: ${group.in_service} of ${group.desired} in service`, group.inside && name(insideOf(group.inside)), group.protected && [" ", badge("protected", "info")])))
      : h("p", { class: "muted" }, "There are no groups yet."),
    leftOut(unit),
    h("p", {}, link(address("#/risks", { unit: unit.unit }), "Risks of this unit")),
    h("h2", {}, "Last events"),
    unit.events.length ? [table("Last events", EVENTS, unit.events, undefined, "plain"), h("p", {}, link(address("#/events", { q: unit.unit }), "All events"))] : h("p", { class: "muted" }, "There are no events."),
    h("h2", {}, "Last changes"),
    unit.changes.length
      ? table("Last changes", [
          { label: "Time", cell: (change) => moment(change.at) },
          { label: "By", cell: (change) => h("span", { title: change.caller }, name(who(change.caller))) },
          { label: "Changes", wide: true, cell: changeWords },
        ], unit.changes, undefined, "plain")
      : h("p", { class: "muted" }, "There are no changes through the API."),
    unit.changes.length > 0 && h("p", {}, link(address("#/changes", { unit: unit.unit }), "All changes of this unit")),
  ];
  return h("div", { class: "halves" }, h("div", {}, policy), h("div", {}, past));
}

/** Whether lasting faults can hit a group, to follow its name. */
const insideOf = ({ consent, fit, why }) => [consent && `, faults inside: ${consent}`, consent && `, ${fit ?? "unknown how many"} fit`, why && `; it ${why}`].filter(Boolean).join("");

const percent = (chance, digits = 2) => `${Number((chance * 100).toPrecision(digits))} %`;

/** The probability of a hit, and the business days from one to the next that follow from it; null if unknown. */
function odds({ probability, min_days_between: distance }) {
  const chance = probability?.value;
  if (typeof chance !== "number") return null;
  const days = chance && Math.max(distance?.value ?? 0, 1) - 1 + 1 / chance;
  const often = !days ? "" : days === 1 ? "; on average every business day" : `; on average every ${Number(days.toPrecision(2))} business days`;
  return [h("strong", {}, percent(chance, 3)), ` chance a business day${often}`];
}

/** The last hit of the unit among its last events, in words; null if there is none. */
function latest({ events }) {
  const last = events.find((event) => event.recovery_seconds !== null || event.status === "UNRECOVERED");
  return last && h("p", { class: "muted" }, "Last: ", link(eventAddress(last.event_id), longDay(last.day)), last.recovery_seconds === null ? ", not recovered in time." : `, recovered${recoveredIn(last)}.`);
}

/** The outcome of a day's decision about a unit. */
export function outcome(one) {
  if (!one) return "not decided";
  if (one.hit) return badge(`${one.leashed ? "would be hit" : "hit"} at ${one.at}`, one.leashed ? "info" : "live");
  return [one.reason.replaceAll("-", " "), h("small", { class: "source" }, name(one.detail))];
}

/** The next hit of the unit, and the decisions of the next two weeks. `current` returns the unit. */
function nextPanel(current, signal) {
  const result = h("div", { "aria-live": "polite" });
  const element = h("section", { class: "why", "aria-labelledby": "next" }, h("h2", { id: "next" }, "Next hit"), result);
  const days = h("div", {});
  let ahead = null;
  let failure = null;

  async function load() {
    failure = null;
    try {
      ahead = await get("ui/ahead", { unit: current().unit }, signal);
    } catch (error) {
      if (signal.aborted) return;
      failure = error;
    }
    draw();
  }

  function draw() {
    const unit = current();
    fill(result, unit.outlook.takes_part ? expected(unit) : skipped(unit.outlook), latest(unit));
    fill(days, unit.outlook.takes_part && ahead?.days && fortnight(ahead));
  }

  const skipped = ({ next_possible: possible }) => h("p", { class: "answer" }, "None while the unit is skipped", possible && [", so not before ", soon(possible)], ".");

  function expected({ policy, outlook: { next_possible: possible, why } }) {
    if (failure) return [h("p", {}, odds(policy)), problem(failure, load)];
    if (!ahead) return [h("p", {}, odds(policy)), loading("the forecast")];
    if (!ahead.days || ahead.not_expected) {
      return [
        h("p", { class: "large" }, odds(policy)),
        ahead.days && h("p", {}, `${percent(ahead.chance_of_any)} for at least one in the next two weeks.`),
        possible && h("p", {}, "Not before ", soon(possible), "."),
        h("p", { class: "muted small" }, `Nobody sees the moment without the deployment's salt: ${sentence(ahead.not_expected)}`),
      ];
    }
    const { day, expected: hit } = ahead.days.find(({ expected: one }) => one?.hit) ?? {};
    return [
      h("p", { class: "large" }, hit ? [h("strong", {}, h("time", { datetime: hit.tick }, `${shortDay(day)}, ${hit.at}`)), " ", h("span", { class: "muted" }, ahead.time_zone), " ", badge(ahead.halted ? "would be, if resumed" : hit.leashed ? "would be, if unleashed" : "expected", ahead.halted || hit.leashed ? "info" : "live")] : `None expected in the next two weeks${why && ", if this stays so"}.`),
      ahead.halted && h("p", {}, "Chaos is halted. This is what would happen if someone resumed it now."),
      h("p", {}, odds(policy)),
    ];
  }
  return { element, days, load, draw };
}

/** A cell for each of the next days, a column for each weekday: what happens, or the odds without the salt. */
function fortnight({ days, time_zone: zone, halted, assumptions }) {
  const text = ({ expected: one, reason, chance }) => (one?.hit ? one.at : one || reason ? (one?.reason ?? reason).replaceAll("-", " ") : percent(chance));
  const cells = days.map((one) => {
    const kind = one.expected?.hit ? (halted || one.expected.leashed ? "would" : "hit") : one.reason ? "shut" : null;
    return h("li", { class: kind, title: one.expected?.detail || one.detail }, h("time", { datetime: one.day }, shortDay(one.day).split(",")[0], ` ${Number(one.day.slice(8))}`), h("span", {}, text(one)));
  });
  cells[0].style.gridColumnStart = ((new Date(`${days[0].day}T00:00:00Z`).getUTCDay() + 6) % 7) + 1;
  const rows = folded("Days as a table", ["Day", `In ${zone}`], days.map((one) => [longDay(one.day), outcome(one.expected ?? (one.reason ? one : { reason: `${percent(one.chance)} chance`, detail: "" }))]));
  rows.append(h("p", { class: "muted small" }, `Assumptions: ${assumptions.join("; ")}.`));
  return [h("h2", {}, `Next two weeks, in ${zone}`), h("ol", { class: "fortnight" }, cells), rows];
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
      h("h2", { id: "why" }, "Decision of a day"),
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

/** The last recoveries of the unit. */
function recoveryPanel(unit, signal) {
  const result = h("div", {});
  const element = h("section", { "aria-labelledby": "recoveries" }, h("h2", { id: "recoveries" }, "Last recoveries"), result);
  async function load() {
    fill(result, loading("the recoveries"));
    try {
      const { points, usual, changes } = await get("ui/recoveries", { unit }, signal);
      fill(result, points.length ? recoveries(points, usual, changes) : h("p", { class: "muted" }, "There are none yet: no instance of the unit was hit."));
    } catch (error) {
      if (!signal.aborted) fill(result, problem(error, load));
    }
  }
  return { element, load };
}
