// One termination: why it was made, its course, and its outcome.

import { get } from "./api.js";
import { badge, facts, fill, h, heading, headline, link, loading, name } from "./dom.js";
import { eventAddress, kind, moment, recoveryTime, sentence, unitAddress, words } from "./format.js";

/** The termination from which a unit has not recovered, with a link. The response for one unit has details that the list lacks. */
export function lapse({ unrecovered, events = [] }) {
  const event = events.find((one) => one.event_id === unrecovered);
  const [head] = unrecovered.split("#");
  const text = event?.instance_id ? ["the termination of ", name(event.instance_id), " at ", moment(event.at)] : head === "od" ? "an on-demand termination" : `its termination of ${head}`;
  return link(eventAddress(unrecovered), text);
}

/** How an event ended and why the last launch failed, in words; "" if nothing is known. */
export const ending = ({ detail, launch_failure: failure }) => [detail, failure && `the last launch failed: ${failure}`].filter(Boolean).join("; ");

export async function show(main, signal, id) {
  fill(main, heading("Termination"), loading("the event"));
  const event = await get(`events/${encodeURIComponent(id)}`, {}, signal);
  fill(
    main,
    h("p", { class: "back" }, link("#/events", "← Events")),
    headline(`Termination of ${event.instance_id || "an instance"}`, badge(words(event.status), kind(event.status))),
    h("p", {}, "Of the unit ", link(unitAddress(event.unit), name(event.unit)), ", on ", moment(event.at), event.recovery_seconds === null ? "." : `, recovered in ${recoveryTime(event.recovery_seconds)}.`),
    event.detail && h("p", { class: event.status === "UNRECOVERED" ? "problem" : null }, h("span", { class: "capital" }, name(sentence(event.detail))), event.launch_failure && [" The last launch failed: ", name(sentence(event.launch_failure))]),
    event.status !== "LEASHED" && [h("h2", {}, "Course"), h("ol", { class: "course" }, course(event).map((one) => step(one, event.at)))],
    h("h2", {}, "Reason"),
    h("p", {}, reason(event)),
    h("h2", {}, "Instance"),
    facts([
      ["Instance", h("code", {}, event.instance_id || "–")],
      ["Group", name(event.group)],
      ["Availability Zone", event.zone],
      ["Desired capacity at the claim", event.desired],
      ["Method", event.method],
      ["Operating system", (event.os_shutdown ?? null) === null ? null : event.os_shutdown ? "shut down first" : "not shut down"],
      ["Launched from", event.build && [event.build.template, event.build.instance_type, event.build.image].filter(Boolean).join(", ")],
      ["Replacement", event.replacement?.summary],
    ]),
  );
}

/** Why the instance was chosen: by the roll of the day, or because somebody asked. */
function reason({ rolled, probability, day, status }) {
  if ((rolled ?? null) === null) return "Somebody requested it: there was no roll. The event does not say who.";
  return `The schedule rolled ${rolled.toFixed(4)} for ${day}, below the probability ${probability}, and no guard objected.${status === "LEASHED" ? " The deployment was leashed, so nothing was terminated." : ""}`;
}

const NO_RECOVERY = { CLAIMED: "not yet", TERMINATED: "not yet", UNRECOVERED: "not in time", GROUP_DELETED: "the group was deleted" };

/** The steps from the claim to the recovery: their names, their moments, and what is said without a moment. */
function course(event) {
  const claimed = { what: "Claimed", at: event.at };
  if (!event.terminated_at) return [claimed, { what: "Terminated", without: event.status === "CLAIMED" ? "not yet" : "not by Troop" }];
  const { status, recover_by: until } = event;
  return [
    claimed,
    { what: "AWS accepted the request", at: event.terminated_at },
    { what: "Recovered", at: event.recovered_at, without: [NO_RECOVERY[status], status === "TERMINATED" && until && [": it has time until ", moment(until)]] },
  ];
}

function step({ what, at, without }, since) {
  const seconds = (new Date(at) - new Date(since)) / 1000;
  return h("li", { class: at ? "done" : null }, h("strong", {}, what), at ? moment(at) : h("span", { class: "muted" }, without), at && h("span", { class: "muted" }, `+${recoveryTime(seconds)}`));
}
