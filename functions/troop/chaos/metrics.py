"""Names of the metrics that a deployment writes; docs/runbook.md says what each is for."""

from __future__ import annotations

from enum import StrEnum

NAMESPACE = "Troop"

DIMENSION = "deployment"
"""Every metric has this dimension, with the name of the stack; ``Decisions`` has a second one, ``reason``."""

REASON = "reason"


class Metric(StrEnum):
    """Every metric there is. All are counts, but ``RecoverySeconds``."""

    # of the watchdog, every quarter of an hour: how things stand
    UNITS_UNRECOVERED = "UnitsUnrecovered"
    MISSING_TICKS = "MissingTicks"
    FAILED_TICKS = "FailedTicks"
    DEAD_LETTERS = "DeadLetters"
    FAILING_CHECKS = "FailingChecks"
    # of the workflow: what happens
    TICKS = "Ticks"
    DECISIONS = "Decisions"
    TERMINATIONS = "Terminations"
    RECOVERIES = "Recoveries"
    RECOVERY_SECONDS = "RecoverySeconds"
    UNRECOVERED = "Unrecovered"
    # of what others are told
    NOTIFICATIONS = "Notifications"
    NOTIFICATIONS_FAILED = "NotificationsFailed"
