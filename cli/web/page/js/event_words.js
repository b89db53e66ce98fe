// Events in words: why a unit has left chaos, how a hit ended, and its verdict.

import { badge, h, link, name } from "./dom.js";
import { eventAddress, hour, kind, moment, recoveryTime, words } from "./format.js";
import { awaitsVerdict, staysOf } from "./stages.js";

/** The hit because of which a unit has left chaos, with a link. The response for one unit has details that the list lacks. */
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

/** The recovery time for a table; null before. A group that no check found short after its lasting fault had nothing to recover from. */
export const recoveredAfter = (event) => {
  if (event.recovery_seconds === null) return null;
  return staysOf(event) && !event.recovery_at_least ? "was whole" : recoveryTime(event.recovery_seconds);
};

/** How the group recovered, to follow "recovered": " in 3.1 s". The words about a lasting fault are the API's; earlier versions have none. */
export const recoveredIn = (event) => (staysOf(event) && event.recovery ? `: the group ${event.recovery}` : ` in ${recoveryTime(event.recovery_seconds)}`);

/** The verdict on an event, or when it is expected; null without one. */
export function verdictOf(event) {
  if (event.verdict) return badge(words(event.verdict.value), kind(event.verdict.value));
  return awaitsVerdict(event) ? h("span", { class: "muted due" }, `due ${hour(new Date(event.settles_at))}`) : null;
}
