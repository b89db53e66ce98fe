// One termination: what became of it.

import { get } from "./api.js";
import { badge, facts, fill, h, heading, link, loading, name } from "./dom.js";
import { eventAddress, kind, moment, seconds, unitAddress, words } from "./format.js";

/** From what a unit has not recovered, with a link to it. The unit's own page knows more of it than the list. */
export function lapse({ unrecovered, events = [] }) {
  const event = events.find((one) => one.event_id === unrecovered);
  const [head] = unrecovered.split("#");
  const told = event?.instance_id ? ["the termination of ", name(event.instance_id), " at ", moment(event.at)] : head === "od" ? "a termination on demand" : `its termination of ${head}`;
  return link(eventAddress(unrecovered), told);
}

export async function show(main, signal, id) {
  fill(main, loading("the event"));
  const event = await get(`events/${encodeURIComponent(id)}`, {}, signal);
  fill(
    main,
    h("p", { class: "back" }, link("#/events", "← Events")),
    h("div", { class: "headline" }, heading(`Termination of ${event.instance_id || "an instance"}`), badge(words(event.status), kind(event.status))),
    facts([
      ["Unit", link(unitAddress(event.unit), name(event.unit))],
      ["Group", name(event.group)],
      ["When", moment(event.at)],
      ["Terminated", moment(event.terminated_at)],
      ["Recovered", moment(event.recovered_at)],
      ["Recovered in", seconds(event.recovery_seconds)],
      ["Zone", event.zone],
      ["Method", event.method],
      ["Operating system", (event.os_shutdown ?? null) === null ? null : event.os_shutdown ? "shut down first" : "not shut down"],
      ["Detail", event.detail],
    ]),
  );
}
