// Filters in the address of a view: a filtered list can be shared, and Back restores it.

const last = new Map(); // the last address of each view, by its path

export const path = () => location.hash.split("?")[0];

/** The filters in the address; a filter that is absent has its default. */
export function filtersOf(defaults) {
  const query = new URLSearchParams(location.hash.split("?")[1] ?? "");
  return Object.fromEntries(Object.entries(defaults).map(([key, value]) => [key, query.get(key) ?? value]));
}

/** An address with filters; those with their default are omitted. */
export function address(view, filters, defaults = {}) {
  const query = new URLSearchParams(Object.entries(filters).filter(([key, value]) => value !== (defaults[key] ?? "")));
  return query.size ? `${view}?${query}` : view;
}

/** Writes filters into the address. `step` adds an entry to the history, to which Back returns; typing adds none. */
export function remember(filters, defaults, step) {
  const to = address(path(), filters, defaults);
  if (to !== location.hash) history[step ? "pushState" : "replaceState"](null, "", to);
  visited();
}

/** Notes the address of the current view, for links back to it. */
export const visited = () => last.set(path(), location.hash);

/** The last address of a view, with its filters. */
export const lastOf = (view) => last.get(view) ?? view;
