// Updates of the loaded events: pure functions of lists, newest first.

import { awaitsVerdict, inFlight } from "./stages.js";

/** The loaded events after a request for the newest: those that the page should contain and does not are removed. */
export function merged(loaded, page, cursor) {
  const last = page.at(-1)?.at;
  const older = cursor && last ? loaded.filter((event) => event.at <= last) : [];
  return joined(page, older);
}

/** Both lists, newest first; an event in both comes from the first. */
export function joined(events, others) {
  const ids = new Set(events.map((event) => event.event_id));
  const all = [...events, ...others.filter((event) => !ids.has(event.event_id))];
  return all.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
}

/** Whether events can be missing between the newest and the loaded ones: more are new than one page holds. */
export function gap(loaded, page, cursor) {
  const before = new Set(loaded.map((event) => event.event_id));
  return Boolean(cursor && loaded.length && !page.some((event) => before.has(event.event_id)));
}

/** The events of a response that are new, or have another status, or their verdict. */
export function news(loaded, response) {
  const state = (event) => `${event.status} ${event.verdict?.value}`;
  const before = new Map(loaded.map((event) => [event.event_id, state(event)]));
  return response.filter((event) => before.get(event.event_id) !== state(event));
}

/**
 * Events that can still change and are not among the newest; those with the oldest request come first.
 * @param {Array} loaded
 * @param {Array} page the newest
 * @param {Map} requestTimes time of the last request by event_id
 */
export function beyond(loaded, page, requestTimes) {
  const newest = new Set(page.map((event) => event.event_id));
  const last = (event) => requestTimes.get(event.event_id) ?? 0;
  return loaded.filter((event) => (inFlight(event) || awaitsVerdict(event)) && !newest.has(event.event_id)).sort((a, b) => last(a) - last(b));
}

/** The loaded events with updates by event_id; null removes an event, as it is gone or no longer matches the filters. */
export function renewed(loaded, updates) {
  return loaded.flatMap((event) => {
    const current = updates.has(event.event_id) ? updates.get(event.event_id) : event;
    return current ? [current] : [];
  });
}
