"""Defines the names of the metrics that a deployment writes; docs/reference/metrics.md describes each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

NAMESPACE = "Troop"

DIMENSION = "deployment"
"""The dimension of every metric: the name of the stack."""

REASON, STATUS = "reason", "status"
"""The second dimensions of ``Decisions``, and of ``Outcomes`` and ``RunsEnded``; with few values each."""

CALENDAR, KIND, CURRENCY = "calendar", "kind", "currency"
"""The second dimensions of units; of ``RunsOpen``, ``NodesAlive`` and ``Repairs``; of ``RunCost``."""

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


class Metric(StrEnum):
    """All metrics. They are counts, except ``RecoverySeconds`` and ``RunCost``."""

    # of the watchdog, every quarter of an hour: the current state
    UNITS_UNRECOVERED = "UnitsUnrecovered"
    MISSING_TICKS = "MissingTicks"
    FAILING_CHECKS = "FailingChecks"
    # of the workflow: its results
    TICKS = "Ticks"
    DECISIONS = "Decisions"
    TERMINATIONS = "Terminations"
    RECOVERIES = "Recoveries"
    RECOVERY_SECONDS = "RecoverySeconds"
    UNRECOVERED = "Unrecovered"
    OUTCOMES = "Outcomes"
    UNITS_TAKING_PART = "UnitsTakingPart"
    UNITS_OPTED_OUT = "UnitsOptedOut"
    # of the reaper, every quarter of an hour: leftovers, and runs that should have ended
    REAPER_FINDS = "ReaperFinds"
    REAPER_OFF = "ReaperOff"
    LEFT_BEHIND = "LeftBehind"
    RUNS_OPEN = "RunsOpen"
    NODES_ALIVE = "NodesAlive"
    # of teardowns: the outcome of a run
    RUNS_ENDED = "RunsEnded"
    # of the reaper and teardowns: the cost of runs since the last count
    RUN_COST = "RunCost"
    # of notifications
    NOTIFICATIONS = "Notifications"
    NOTIFICATIONS_FAILED = "NotificationsFailed"
    SLOW_RECOVERIES = "SlowRecoveries"
    # of scheduled runs
    STARTS_REFUSED = "StartsRefused"
    # of any function
    STEPS_FAILED = "StepsFailed"
    REPAIRS = "Repairs"


SECOND: Mapping[Metric, str] = {
    Metric.DECISIONS: REASON,
    Metric.OUTCOMES: STATUS,
    Metric.RUNS_ENDED: STATUS,
    Metric.UNITS_TAKING_PART: CALENDAR,
    Metric.UNITS_OPTED_OUT: CALENDAR,
    Metric.RUNS_OPEN: KIND,
    Metric.NODES_ALIVE: KIND,
    Metric.REPAIRS: KIND,
    Metric.RUN_COST: CURRENCY,
}
"""The second dimension of the metrics that have one; these metrics do not exist without it."""
