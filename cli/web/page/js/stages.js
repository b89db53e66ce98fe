// The stages of a recovery: their names, and what is known of each.

const STAGES = [["noticed", "Noticed by Auto Scaling"], ["launched", "Replacement launched"], ["running", "Replacement running"], ["in_service", "Replacement in service"]];

/** The names of the spans between stages, in their order, each by the moment that ends it: those of ui/recoveries. */
export const SPANS = { noticed: "until noticed", launched: "until launched", in_service: "until in service", healthy: "until healthy", recovered: "until recovered" };

/** Whether the group has not recovered yet, in time or at all. */
export const inFlight = ({ status }) => status === "CLAIMED" || status === "TERMINATED";

/** Whether the group has recovered, and its alarms still have time to go off. */
export const awaitsVerdict = ({ status, settles_at: at, verdict }) => status === "RECOVERED" && Boolean(at) && !verdict;

/** The name of a traffic source: of a target group that of its ARN. */
const nameOf = (source) => /[:]targetgroup[/]([^/]+)/.exec(source)?.[1] ?? source;

/**
 * The stages of an event in their order: { key, what, at, without }. Each has a moment, or what is said without one. None
 * without a record of them.
 */
export function stages(event) {
  if (!event.stages) return [];
  const without = inFlight(event) ? "not yet" : "not known";
  const healthy = event.stages.healthy.map(({ source, at }) => ({ key: "healthy", what: `Healthy in ${nameOf(source)}`, at, without }));
  return [...STAGES.map(([key, what]) => ({ key, what, at: event.stages[key], without })), ...healthy];
}

/** The seconds that the recovery took at least; null if no check found the group short before. */
export const least = ({ recovery_at_least: seconds, recovery_seconds: most }) => (seconds && seconds < most ? seconds : null);
