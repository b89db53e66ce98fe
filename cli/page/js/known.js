// What is known of events after another look: pure functions, of lists that are sorted newest first.

const UNDER_WAY = new Set(["CLAIMED", "TERMINATED"]); // others are final, or come again as the newest

/** What is known after another look at the newest: those that it would have to hold, and does not, are gone. */
export function merged(known, page, cursor) {
  const last = page.at(-1)?.at;
  const older = cursor && last ? known.filter((event) => event.at <= last) : [];
  return joined(page, older);
}

/** Newest first; of an event that is in both, what the first say. */
export function joined(events, others) {
  const there = new Set(events.map((event) => event.event_id));
  const all = [...events, ...others.filter((event) => !there.has(event.event_id))];
  return all.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
}

/** Whether there may be events between the newest and those that are known: more have come than fit into a look. */
export function gap(known, page, cursor) {
  const before = new Set(known.map((event) => event.event_id));
  return Boolean(cursor && known.length && !page.some((event) => before.has(event.event_id)));
}

/** Which are new, or have another status. */
export function news(known, found) {
  const before = new Map(known.map((event) => [event.event_id, event.status]));
  return found.filter((event) => before.get(event.event_id) !== event.status);
}

/**
 * Those that can still change, and that a look at the newest does not tell of; first those that were asked for longest ago.
 * @param {Array} known
 * @param {Array} page the newest
 * @param {Map} asked when each was asked for last, by event_id
 */
export function beyond(known, page, asked) {
  const told = new Set(page.map((event) => event.event_id));
  const last = (event) => asked.get(event.event_id) ?? 0;
  return known.filter((event) => UNDER_WAY.has(event.status) && !told.has(event.event_id)).sort((a, b) => last(a) - last(b));
}

/** With each of these as it is now: by event_id; null where it is gone, or no longer among those that are wanted. */
export function renewed(known, now) {
  return known.flatMap((event) => {
    const found = now.has(event.event_id) ? now.get(event.event_id) : event;
    return found ? [found] : [];
  });
}
