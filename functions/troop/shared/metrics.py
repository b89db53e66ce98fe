"""Defines the metrics that a deployment writes, and what each means: docs/reference/metrics.md is generated from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

NAMESPACE = "Troop"

DIMENSION = "deployment"
"""The dimension of every metric: the name of the stack."""

REASON, STATUS = "reason", "status"
"""The second dimensions of ``Decisions``, and of ``Outcomes`` and ``RunsEnded``; with few values each."""

CALENDAR, KIND, CURRENCY = "calendar", "kind", "currency"
"""The second dimensions of units; of ``RunsOpen``, ``NodesAlive`` and ``Repairs``; of ``RunCost``."""

FLEET, CHECK = "fleet", "check"
"""The further dimensions of ``FleetHealth``: the name of a fleet, and of a check of its nodes."""

VERDICT = "verdict"
"""The second dimension of ``Verdicts``."""

BENCHMARK_KIND, FLEET_KIND = "benchmark", "fleet"
"""The values of the dimension ``kind`` for runs: a benchmark's run, or a standing fleet."""

REFUSED = "REFUSED"
"""The outcome of a decision to terminate that a guard or the claim refuses later: no event has this status."""

CHILDREN = "TerminateAll"
"""The label of the workflow's Distributed Map. Step Functions counts the ends of its children under
``MACHINE_ARN/LABEL``, and none of them under the workflow's own ARN.
"""


class Repair(StrEnum):
    """Kinds of automatic repairs: values of the dimension ``kind`` of ``Repairs``."""

    DEAD_LETTER = "dead-letter-dropped"
    NOTIFICATION = "notification-sent-late"
    EVENT = "event-swept"
    TEARDOWN = "teardown-started"
    LEFTOVER = "leftover-removed"
    NODE_RESTARTED = "node-restarted"
    NODE_REPLACED = "node-replaced"


class Metric(StrEnum):
    """All metrics. They are counts, except ``RecoverySeconds``, ``RunCost`` and ``FleetHealth``."""

    UNITS_UNRECOVERED = "UnitsUnrecovered"
    HALTED_ITSELF = "HaltedItself"
    MISSING_TICKS = "MissingTicks"
    FAILING_CHECKS = "FailingChecks"
    TICKS = "Ticks"
    DECISIONS = "Decisions"
    UNITS_TAKING_PART = "UnitsTakingPart"
    UNITS_OPTED_OUT = "UnitsOptedOut"
    TERMINATIONS = "Terminations"
    INJECTIONS = "Injections"
    UNPROVEN_FAULTS = "UnprovenFaults"
    RECOVERIES = "Recoveries"
    RECOVERY_SECONDS = "RecoverySeconds"
    UNRECOVERED = "Unrecovered"
    OUTCOMES = "Outcomes"
    VERDICTS = "Verdicts"
    SLOW_RECOVERIES = "SlowRecoveries"
    NOTIFICATIONS = "Notifications"
    NOTIFICATIONS_FAILED = "NotificationsFailed"
    REAPER_FINDS = "ReaperFinds"
    REAPER_OFF = "ReaperOff"
    LEFT_BEHIND = "LeftBehind"
    STARTS_REFUSED = "StartsRefused"
    RUNS_OPEN = "RunsOpen"
    NODES_ALIVE = "NodesAlive"
    RUNS_ENDED = "RunsEnded"
    RUN_COST = "RunCost"
    STEPS_FAILED = "StepsFailed"
    REPAIRS = "Repairs"
    HEALING_LIMITED = "HealingLimited"
    FLEET_HEALTH = "FleetHealth"


@dataclass(frozen=True)
class Meaning:
    """What a metric means.

    Attributes:
        writer: the functions that write it.
        when: how often it is written.
        text: what it counts, for docs/reference/metrics.md.
        dimension: its second dimension, and a third one after a comma; "" for none. A metric with one does not exist
            without it.
    """

    writer: str
    when: str
    text: str
    dimension: str = ""


ALWAYS = "every 15 minutes"
_IF_ANY = f"{ALWAYS}, if there are any"
_EACH = "each"

MEANINGS: Mapping[Metric, Meaning] = {
    Metric.UNITS_UNRECOVERED: Meaning(
        "watchdog", ALWAYS, "units that are out of chaos now because they did not recover"
    ),
    Metric.HALTED_ITSELF: Meaning("watchdog", "every round while it is so", "1 while the deployment has halted itself"),
    Metric.MISSING_TICKS: Meaning("watchdog", ALWAYS, "ticks that were due since the last one ran"),
    Metric.FAILING_CHECKS: Meaning(
        "watchdog",
        f"{ALWAYS}, if it could read all checks",
        "checks of `GET /health` that fail, except those of alarms and subscribers",
    ),
    Metric.TICKS: Meaning("decide", "each tick", "ticks that decided"),
    Metric.DECISIONS: Meaning("decide", "each tick", "units for each reason, or `terminate`", REASON),
    Metric.UNITS_TAKING_PART: Meaning(
        "decide",
        "each tick that has units",
        "units that chaos can select: not opted out, protected, malformed or unrecovered, and opted in if the "
        "deployment is opt-in; Troop's own fleets are not units",
        CALENDAR,
    ),
    Metric.UNITS_OPTED_OUT: Meaning(
        "decide",
        "each tick that has units",
        "units that are opted out, or not opted in where the deployment is opt-in; not those that are only protected, "
        "malformed or unrecovered",
        CALENDAR,
    ),
    Metric.TERMINATIONS: Meaning("terminate, inject", _EACH, "instances terminated"),
    Metric.INJECTIONS: Meaning("inject", _EACH, "faults injected inside instances"),
    Metric.UNPROVEN_FAULTS: Meaning(
        "inject, sweep",
        "every round while there are any",
        "faults inside instances whose time is up without a proof that they are over",
    ),
    Metric.RECOVERIES: Meaning("recovery, hear, sweep", _EACH, "groups that recovered"),
    Metric.RECOVERY_SECONDS: Meaning(
        "recovery, hear", "each recovery", "seconds from the termination to the recovery; percentiles"
    ),
    Metric.UNRECOVERED: Meaning("recovery, hear, sweep", _EACH, "groups that did not recover in time"),
    Metric.OUTCOMES: Meaning(
        "terminate, inject, recovery, hear, sweep",
        _EACH,
        f"outcomes of terminations; `{REFUSED}` is by the final check before one",
        STATUS,
    ),
    Metric.VERDICTS: Meaning(
        "recovery, hear, sweep", _EACH, "[verdicts](../guides/chaos.md#verdicts) on terminations, by value", VERDICT
    ),
    Metric.SLOW_RECOVERIES: Meaning(
        "notify", _EACH, "recoveries that were [slow for their unit](notifications.md#slow)"
    ),
    Metric.NOTIFICATIONS: Meaning("notify", _EACH, "notifications that the bus and the topic accepted"),
    Metric.NOTIFICATIONS_FAILED: Meaning("notify", _EACH, "failed attempts, and records that could not be read"),
    Metric.REAPER_FINDS: Meaning(
        "reaper",
        f"{ALWAYS}, also 0",
        "runs that did not end in time or have no workflow, and resources that no open run has",
    ),
    Metric.REAPER_OFF: Meaning("reaper", "every round while it is off", "1 while the reaper is off"),
    Metric.LEFT_BEHIND: Meaning(
        "reaper",
        _IF_ANY,
        "resources with a run's tags that stay: protected ones whose run has ended, and those that only their tags "
        "link to the run",
    ),
    Metric.STARTS_REFUSED: Meaning(
        "start", _EACH, "starts of [schedules](../guides/running-benchmarks.md#schedules) that were refused"
    ),
    Metric.RUNS_OPEN: Meaning("reaper", _IF_ANY, "runs and standing fleets that have not ended", KIND),
    Metric.NODES_ALIVE: Meaning("reaper", _IF_ANY, "instances of these runs and fleets", KIND),
    Metric.RUNS_ENDED: Meaning("teardown", "each complete teardown", "runs and fleets by outcome", STATUS),
    Metric.RUN_COST: Meaning(
        "reaper, teardown",
        f"{ALWAYS} for each open run or fleet, and when its teardown is complete",
        "cost since the last value, at AWS prices; the sum of a period is the cost in that period",
        CURRENCY,
    ),
    Metric.STEPS_FAILED: Meaning(
        "every function except those of the API, the widgets and notify",
        _EACH,
        "calls that ended with an error, even if a retry succeeded; except calls for a run that was closed in the "
        "meantime; and checks of a standing fleet of which AWS refused a part",
    ),
    Metric.REPAIRS: Meaning(
        "watchdog, notify, sweep, reaper, fleet",
        _EACH,
        "repairs [without anybody's help](../guides/runbook.md#what-is-mended-without-you)",
        KIND,
    ),
    Metric.HEALING_LIMITED: Meaning(
        "fleet",
        "every check of a fleet while it is so, at least each minute",
        "1 while nodes of a standing fleet fail, and their repair has reached its limit or did not help",
    ),
    Metric.FLEET_HEALTH: Meaning(
        "fleet",
        "every check of a fleet, at least each minute",
        "values that the nodes of a standing fleet report for a check, at most 100 each time; percentiles",
        f"{FLEET},{CHECK}",
    ),
}

SECOND: Mapping[Metric, str] = {metric: one.dimension for metric, one in MEANINGS.items() if one.dimension}
"""The second dimension of the metrics that have one."""
