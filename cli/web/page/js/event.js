// One termination and its outcome.

import { get } from "./api.js";
import { badge, facts, fill, h, heading, headline, link, loading, name } from "./dom.js";
import { eventAddress, kind, moment, seconds, unitAddress, words } from "./format.js";

/** The termination from which a unit has not recovered, with a link. The response for one unit has details that the list lacks. */
export function lapse({ unrecovered, events = [] }) {
  const event = events.find((one) => one.event_id === unrecovered);
  const [head] = unrecovered.split("#");
  const text = event?.instance_id ? ["the termination of ", name(event.instance_id), " at ", moment(event.at)] : head === "od" ? "an on-demand termination" : `its termination of ${head}`;
  return link(eventAddress(unrecovered), text);
}

export async function show(main, signal, id) {
  fill(main, heading("Termination"), loading("the event"));
  const event = await get(`events/${encodeURIComponent(id)}`, {}, signal);
  fill(
    main,
    h("p", { class: "back" }, link("#/events", "← Events")),
    headline(`Termination of ${event.instance_id || "an instance"}`, badge(words(event.status), kind(event.status))),
    facts([
      ["Unit", link(unitAddress(event.unit), name(event.unit))],
      ["Group", name(event.group)],
      ["Time", moment(event.at)],
      ["Terminated", moment(event.terminated_at)],
      ["Recovered", moment(event.recovered_at)],
      ["Recovery time", seconds(event.recovery_seconds)],
      ["Availability Zone", event.zone],
      ["Method", event.method],
      ["Operating system", (event.os_shutdown ?? null) === null ? null : event.os_shutdown ? "shut down first" : "not shut down"],
      ["Replacement", event.replacement?.summary],
      ["Detail", event.detail],
    ]),
  );
}
