// Events in words: why a unit has left chaos, how a termination ended, and its verdict.

import { badge, h, link, name } from "./dom.js";
import { eventAddress, hour, kind, moment, words } from "./format.js";
import { awaitsVerdict } from "./stages.js";

/** The termination because of which a unit has left chaos, with a link. The response for one unit has details that the list lacks. */
export function lapse({ unrecovered, events = [] }) {
  const event = events.find((one) => one.event_id === unrecovered);
  const [head] = unrecovered.split("#");
  const text = event?.instance_id ? [event.injection ? `${event.method} on ` : "the termination of ", name(event.instance_id), " at ", moment(event.at)] : head === "od" ? "a hit on demand" : `its hit of ${head}`;
  return link(eventAddress(unrecovered), text);
}

/** Why the hypothesis of a group that recovered did not hold, in words; "" if it did. */
const doubt = ({ status, verdict }) => status === "RECOVERED" && verdict && verdict.value !== "HELD" && verdict.why;

/** What is unusual about the end of a lasting fault, in words. */
const endOfFault = ({ injection, terminated_at: replaced }) => (injection ? [
  injection.end_request && `asked to end: ${injection.end_request.why}`,
  injection.unproven && !injection.proof && `not proven to be over, act now: ${injection.unproven}`,
  replaced && "replaced: its fault was not proven to be over",
] : []);

/** How an event ended, and why the last launch failed, in words; "" if nothing is known. */
export const ending = (event) => [doubt(event), event.detail, ...endOfFault(event), event.launch_failure && `the last launch failed: ${event.launch_failure}`].filter(Boolean).join("; ");

/** The verdict on an event, or when it is expected; null without one. */
export function verdictOf(event) {
  if (event.verdict) return badge(words(event.verdict.value), kind(event.verdict.value));
  return awaitsVerdict(event) ? h("span", { class: "muted due" }, `due ${hour(new Date(event.settles_at))}`) : null;
}
