// One termination or lasting fault: its course as a picture and in words, its hypothesis with the verdict, and why it was made.

import { get } from "./api.js";
import { badge, facts, fill, h, heading, kept, link, loading, name } from "./dom.js";
import { recoveredIn, verdictOf } from "./event_words.js";
import { stamp } from "./freshness.js";
import { clock, duration, kind, moment, recoveryTime, sentence, timed, unitAddress, words } from "./format.js";
import { awaitsVerdict, faultOf, faultSteps, hitAt, inFlight, least, recoversFrom, stages, staysOf } from "./stages.js";
import { legend, statesOf, timeline } from "./timeline.js";

const [SOON, LATE, WORST] = [3_000, 30_000, 60_000]; // milliseconds until the next update: after news, without any, after errors
const OLD = 120_000; // milliseconds, after which the view of an event in progress is marked as old

export async function show(main, signal, id) {
  fill(main, heading("Event"), loading("the event"));
  const path = `events/${encodeURIComponent(id)}`;
  let event = await get(path, {}, signal);
  let [wait, before, timer] = [SOON, "", undefined];
  const liveness = h("p", { class: "muted", id: "liveness" });
  const age = h("span", { class: "age" });
  const badges = h("span", { class: "badges" });
  const content = h("div", {});
  fill(main, h("p", { class: "back" }, link("#/events", "← Events"), age), h("div", { class: "headline" }, heading(`${event.injection ? `Fault ${event.method} on` : "Termination of"} ${event.instance_id || "an instance"}`), badges, liveness), content);
  document.addEventListener("visibilitychange", () => (document.hidden ? stop("Not live while the page is hidden.") : open() && update()), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  draw();
  later(new Date());

  function open() {
    return inFlight(event) || awaitsVerdict(event);
  }

  function stop(text) {
    clearTimeout(timer);
    if (open()) fill(liveness, text);
  }

  /** Requests the event until it has ended and has its verdict. */
  async function update() {
    clearTimeout(timer);
    try {
      event = await get(path, {}, signal);
      draw();
      later(new Date());
    } catch (error) {
      if (signal.aborted) return;
      wait = Math.min(WORST, wait * 2);
      stop(`Not live: ${sentence(error.message)} Next attempt in ${Math.round(wait / 1000)} s.`);
      if (error.status !== 401 && !document.hidden) timer = setTimeout(update, wait);
    }
  }

  function later(at) {
    clearTimeout(timer);
    if (open()) stamp(main.querySelector(".back"), at, OLD);
    fill(liveness, open() && `Live: updated at ${clock(at)}.`);
    if (open() && !document.hidden && !signal.aborted) timer = setTimeout(update, wait);
  }

  function draw() {
    const now = JSON.stringify(event);
    wait = now === before ? Math.min(LATE, wait * 1.5) : SOON;
    if (before && now !== before) fill(document.getElementById("news"), `${event.unit} ${words(event.status)}${event.verdict ? `, ${words(event.verdict.value)}` : ""}.`);
    before = now;
    fill(badges, badge(words(event.status), kind(event.status)), event.verdict && [" ", verdictOf(event)]);
    kept(content, () => fill(content, details(event)));
  }
}

function details(event) {
  const end = event.recovery_seconds === null ? "." : `, recovered${recoveredIn(event)}.`;
  const { detail, launch_failure: failure } = event;
  const bad = event.status === "UNRECOVERED";
  const beside = hitAt(event) || event.hypothesis;
  return [
    h("p", {}, "Of the unit ", link(unitAddress(event.unit), name(event.unit)), ", on ", moment(event.at), end),
    (detail || failure) && h("p", { class: bad ? "problem" : null }, detail && h("span", { class: "capital" }, name(timed(sentence(detail)))), failure && [detail && " ", "The last launch failed: ", name(sentence(failure))]),
    event.status !== "LEASHED" && h("div", { class: beside ? "split" : null }, courseOf(event), beside && h("div", { class: "beside" }, hypothesisOf(event), hitAt(event) && verdictPanel(event))),
    h("h2", {}, "Reason"),
    h("p", {}, reason(event)),
    h("h2", {}, "Instance"),
    facts([
      ["Instance", h("code", {}, event.instance_id || "–")],
      ["Group", name(event.group)],
      ["Availability Zone", event.zone],
      ["Desired capacity at the claim", event.desired],
      ["Fault", faultOf(event)],
      ["Installed for it, and stays", event.injection?.packages.join(", ")],
      ["Operating system", (event.os_shutdown ?? null) === null ? null : event.os_shutdown ? "shut down first" : "not shut down"],
      ["Launched from", event.build && [event.build.template, event.build.instance_type, event.build.image].filter(Boolean).join(", ")],
      ["Replacement", event.replacement?.summary],
    ]),
  ];
}

/** Why the instance was chosen: by the roll of the day, or because somebody asked. */
function reason({ rolled, probability, day, status, benchmark }) {
  if (benchmark) return ["The benchmark ", link(`#/runs/${encodeURIComponent(benchmark)}`, benchmark), " requested it while it loaded the unit: there was no roll. A broken unit then halts nothing."];
  if ((rolled ?? null) === null) return "Somebody requested it: there was no roll. The event does not say who.";
  return `The schedule rolled ${rolled.toFixed(4)} for ${day}, below the probability ${probability}, and no guard objected.${status === "LEASHED" ? " The deployment was leashed, so nothing was hit." : ""}`;
}

/** The course as a picture, and as a list of moments. */
function courseOf(event) {
  const key = hitAt(event) ? legend(event) : [];
  return h(
    "section", { class: "panel", "aria-labelledby": "course" },
    h("h2", { id: "course" }, "Course"),
    hitAt(event) && timeline(event, Date.now()),
    key.length > 0 && h("ul", { class: "key" }, key.map(([mark, label]) => h("li", { class: mark }, label))),
    recoversFrom(event) && !staysOf(event) && !event.stages && !inFlight(event) && h("p", { class: "muted" }, "The stages of this recovery were not recorded."),
    h("ol", { class: "course" }, course(event).map((one) => step(one, hitAt(event)))),
  );
}

const NO_RECOVERY = { CLAIMED: "not yet", RUNNING: "not yet", TERMINATED: "not yet", UNRECOVERED: "not in time", GROUP_DELETED: "the group was deleted" };

/** The steps from the claim to the verdict: their names, their moments, what is said without a moment, and what more is known. */
function course(event) {
  const { status, recover_by: until, abort, verdict } = event;
  const claimed = { what: "Claimed", at: event.at };
  const went = abort && { what: ["Alarm ", name(abort.alarm), " went off"], at: abort.at };
  const { injection } = event;
  const what = injection ? "Injected" : "Terminated";
  if (!hitAt(event)) return [claimed, ...faultSteps(event), went, { what, without: status === "CLAIMED" ? "not yet" : injection ? "not injected" : "not by Troop" }].filter(Boolean);
  const bound = least(event);
  const steps = [
    claimed,
    ...(injection ? faultSteps(event) : [{ what: "AWS accepted the request", at: event.terminated_at }]),
    ...(staysOf(event) || !recoversFrom(event) ? [] : stages(event)),
    { what: "Recovered", at: event.recovered_at, more: injection ? event.recovered_at && (staysOf(event) && event.recovery ? `the group ${event.recovery}` : `${recoveryTime(event.recovery_seconds)} after ${event.terminated_at ? "the termination" : "the proof"}`) : bound && `or earlier, after +${recoveryTime(bound)}`, without: [NO_RECOVERY[status], inFlight(event) && until && [": it has time until ", moment(until)]] },
    verdict && { what: "Verdict given", at: verdict.at },
    awaitsVerdict(event) && { what: "Verdict", without: ["expected at ", moment(event.settles_at)] },
  ].filter(Boolean);
  const later = abort ? steps.findIndex(({ at }) => at > abort.at) : -1;
  if (went) steps.splice(later < 0 ? steps.length : later, 0, went);
  return steps;
}

function step({ what, at, without, more }, since) {
  const seconds = (Date.parse(at) - Date.parse(since ?? at)) / 1000;
  const sign = seconds < 0 ? "\u2212" : "+";
  const beside = [at && since && `${sign}${recoveryTime(Math.abs(seconds))}`, more].filter(Boolean).join(", ");
  return h("li", { class: at ? "done" : null }, h("strong", {}, what), at ? moment(at) : h("span", { class: "muted" }, without), at && beside && h("span", { class: more ? "muted long" : "muted" }, name(timed(beside))));
}

/** What had to stay true, as the policy said at the claim. */
function hypothesisOf({ hypothesis, recover_by: until, ...event }) {
  const begin = recoversFrom(event);
  const names = (list) => h("ul", { class: "names" }, list.map((one) => h("li", {}, name(one))));
  const timeout = until && begin && `within the recovery timeout of ${duration((Date.parse(until) - Date.parse(begin)) / 1000)}`;
  return h(
    "section", { class: "panel", "aria-labelledby": "hypothesis" },
    h("h2", { id: "hypothesis" }, "Hypothesis"),
    !hypothesis
      ? h("p", { class: "muted" }, "An earlier version claimed this event, without a hypothesis.")
      : h("dl", { class: "pairs" }, [
          ["The group recovers", hypothesis.recovery_within ? `within ${duration(hypothesis.recovery_within)}` : (timeout ?? "in time")],
          ["These alarms do not go off", hypothesis.success_alarms.length ? names(hypothesis.success_alarms) : h("span", { class: "muted" }, "none: the recovery alone decides")],
          hypothesis.stop_alarms.length > 0 && ["These alarms stop chaos, and do not count", names(hypothesis.stop_alarms)],
        ].filter(Boolean).map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value)))),
  );
}

/** Whether the hypothesis held, why, and what each alarm did. */
function verdictPanel(event) {
  const { verdict, abort, unit } = event;
  return h(
    "section", { class: "panel", "aria-labelledby": "verdict" },
    h("h2", { id: "verdict" }, "Verdict"),
    verdict
      ? [h("p", {}, badge(words(verdict.value), kind(verdict.value))), h("p", {}, h("span", { class: "capital" }, name(sentence(verdict.why))))]
      : awaitsVerdict(event)
        ? h("p", {}, "Expected at ", moment(event.settles_at), ": until then, alarms still have time to go off.")
        : h("p", { class: "muted" }, inFlight(event) ? "It follows the recovery." : "None was recorded."),
    verdict?.value === "BROKEN" && h("p", {}, "A broken unit leaves chaos until its owner returns it: see ", link(unitAddress(unit), name(unit)), "."),
    abort && h("p", { class: "wrong" }, "The alarm ", name(abort.alarm), " went off at ", moment(abort.at), event.injection ? ". That stopped further chaos for the unit, and the fault was asked to end." : ". That stopped further chaos for the unit; the termination itself cannot be undone."),
    verdict && verdict.alarms.length > 0 && [
      h("p", { class: "muted small" }, "Watched from ", moment(verdict.since), " to ", moment(verdict.until), "."),
      h("ul", { class: "alarms" }, verdict.alarms.map(alarmOf)),
    ],
    verdict && !verdict.alarms.length && h("p", { class: "muted small" }, "The unit had no success alarms."),
  );
}

function alarmOf(one) {
  const states = statesOf(one);
  return h(
    "li", {},
    h("strong", {}, name(one.name)), ": ",
    states.length ? states.map(([state, at], index) => [index > 0 && ", then ", state, index > 0 && ` at ${clock(new Date(at))}`]) : "its states are not known",
    ".", one.doubt && h("small", { class: "source" }, name(timed(sentence(one.doubt)))),
  );
}
