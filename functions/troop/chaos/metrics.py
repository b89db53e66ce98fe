"""Names of the metrics that a deployment writes; docs/runbook.md says what each is for."""

from __future__ import annotations

from enum import StrEnum

NAMESPACE = "Troop"

DIMENSION = "deployment"
"""Every metric has this dimension, with the name of the stack."""

REASON, STATUS = "reason", "status"
"""The second dimensions of ``Decisions`` and ``Outcomes``, of few values each."""

REFUSED = "REFUSED"
"""What comes of a decision to terminate when something speaks against it at the last look: no event has this status."""

CHILDREN = "TerminateAll"
"""Label of the workflow's Distributed Map. Step Functions counts its children's ends under ``MACHINE_ARN/LABEL``, and
none of them under the workflow's own ARN.
"""


class Metric(StrEnum):
    """Every metric there is. All are counts, but ``RecoverySeconds``."""

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
    # of the reaper, every quarter of an hour: what runs had left behind, or should have ended long ago
    REAPER_FINDS = "ReaperFinds"
    # of what others are told
    NOTIFICATIONS = "Notifications"
    NOTIFICATIONS_FAILED = "NotificationsFailed"
