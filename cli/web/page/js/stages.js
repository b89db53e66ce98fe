// The stages of a recovery: their names, and what is known of each.

const STAGES = [["noticed", "Noticed by Auto Scaling"], ["launched", "Replacement launched"], ["running", "Replacement running"], ["in_service", "Replacement in service"]];

/** The names of the spans between stages, in their order, each by the moment that ends it: those of ui/recoveries. */
export const SPANS = { noticed: "until noticed", launched: "until launched", in_service: "until in service", healthy: "until healthy", recovered: "until recovered" };

/** Whether the group has not recovered yet, in time or at all. */
export const inFlight = ({ status }) => status === "CLAIMED" || status === "RUNNING" || status === "TERMINATED";

/** The moment of the hit: the request to terminate, or to inject a lasting fault; null before. */
export const hitAt = (event) => event.hit_at ?? event.terminated_at ?? null;

/** The moment from which the recovery counts; null before. */
export const recoversFrom = (event) => event.recovers_from ?? event.terminated_at ?? null;

/** The fault with all its parameters; earlier versions have only the method. */
export const faultOf = (event) => event.fault ?? event.method;

/** Whether a lasting fault left its instance in service: a probe has proven that it is over. */
export const staysOf = ({ injection }) => injection?.proof?.by === "probe";

/**
 * The steps of a lasting fault in their order, without its recovery: { key, what, at, without, more }. None for a
 * termination, and before anything was asked of the instance.
 */
export function faultSteps(event) {
  const { injection, terminated_at: replaced } = event;
  if (!injection) return [];
  const begun = hitAt(event);
  const { before, after, end_request: request, proof, unproven } = injection;
  const open = inFlight(event);
  const asked = (probe) => probe && (probe.answered_at ?? probe.sent_at);
  return [
    before && { key: "before", what: before.reading ? "Probe before: it answered" : "Probe before: no answer", at: asked(before), more: before.failure },
    begun && { key: "injected", what: "Injected", at: begun },
    begun && request && { key: "end", what: "Asked to end", at: request.at, more: request.why },
    begun && { key: "over", what: "Command over", at: injection.over_at, more: injection.command_status && `${injection.command_status}, which proves nothing`, without: open ? "not yet" : "not known" },
    begun && after && !staysOf(event) && { key: "after", what: `Last probe: ${injection.presence.toLowerCase()}`, at: asked(after), more: injection.finding },
    unproven && !proof && { key: "unproven", what: "Not proven to be over", without: `act now: ${unproven}` },
    replaced && { key: "replaced", what: "Terminated by Troop: the end was not proven", at: replaced },
    begun && { key: "proof", what: "Proven to be over", at: proof?.at, more: proof?.why, without: open ? "not yet" : "not proven" },
  ].filter(Boolean);
}

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
