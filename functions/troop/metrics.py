"""Names of the metrics that a deployment writes; docs/metrics.md says what each is for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

NAMESPACE = "Troop"

DIMENSION = "deployment"
"""Every metric has this dimension, with the name of the stack."""

REASON, STATUS = "reason", "status"
"""The second dimensions of ``Decisions``, and of ``Outcomes`` and ``RunsEnded``; of few values each."""

CALENDAR, KIND, CURRENCY = "calendar", "kind", "currency"
"""The second dimensions: of units; of ``RunsOpen``, ``NodesAlive`` and ``Repairs``; of ``RunCost``."""

OF_A_BENCHMARK, OF_A_FLEET = "benchmark", "fleet"
"""Values of the dimension ``kind`` for what runs: a benchmark's run, or a standing fleet."""

REFUSED = "REFUSED"
"""What comes of a decision to terminate when something speaks against it at the last look: no event has this status."""

CHILDREN = "TerminateAll"
"""Label of the workflow's Distributed Map. Step Functions counts its children's ends under ``MACHINE_ARN/LABEL``, and
none of them under the workflow's own ARN.
"""


class Repair(StrEnum):
    """What is mended without anybody's help: values of the dimension ``kind`` of ``Repairs``."""

    DEAD_LETTER = "dead-letter-dropped"
    NOTIFICATION = "notification-sent-late"
    EVENT = "event-swept"
    TEARDOWN = "teardown-started"
    LEFTOVER = "leftover-removed"


class Metric(StrEnum):
    """Every metric there is. All are counts, but ``RecoverySeconds`` and ``RunCost``."""

    # of the watchdog, every quarter of an hour: how things stand
    UNITS_UNRECOVERED = "UnitsUnrecovered"
    MISSING_TICKS = "MissingTicks"
    FAILING_CHECKS = "FailingChecks"
    # of the workflow: what happens
    TICKS = "Ticks"
    DECISIONS = "Decisions"
    TERMINATIONS = "Terminations"
    RECOVERIES = "Recoveries"
    RECOVERY_SECONDS = "RecoverySeconds"
    UNRECOVERED = "Unrecovered"
    OUTCOMES = "Outcomes"
    UNITS_TAKING_PART = "UnitsTakingPart"
    UNITS_OPTED_OUT = "UnitsOptedOut"
    # of the reaper, every quarter of an hour: what runs had left behind, or should have ended long ago
    REAPER_FINDS = "ReaperFinds"
    REAPER_OFF = "ReaperOff"
    LEFT_BEHIND = "LeftBehind"
    RUNS_OPEN = "RunsOpen"
    NODES_ALIVE = "NodesAlive"
    # of teardowns: what became of a run
    RUNS_ENDED = "RunsEnded"
    # of the reaper and teardowns: what runs have cost since it was counted last
    RUN_COST = "RunCost"
    # of what others are told
    NOTIFICATIONS = "Notifications"
    NOTIFICATIONS_FAILED = "NotificationsFailed"
    SLOW_RECOVERIES = "SlowRecoveries"
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
"""The second dimension of the metrics that have one, always: without it there is no such metric."""
