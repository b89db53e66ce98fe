"""Runs the reaper: on a schedule, and after a run's workflow or a teardown has failed."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.wiring import removal
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit, emit_by_kind, emit_repairs
from troop.shared.errors import TroopError
from troop.shared.metrics import CURRENCY, Metric, Repair
from troop.shared.wiring import environment

logger = Logger()

NAMED = 100
"""The most leftovers in the log; the record of each run has all of them."""


class ReapingIncompleteError(TroopError):
    """Something could not be read or removed; everything else was."""


@step(logger, "id")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Reaps: a status-change event of Step Functions, or anything else from the schedule -> ``{"started", "removed"}``.
    Both are empty while the reaper is switched off.

    Raises:
        ReapingIncompleteError: after everything else was done.
    """
    reaper = removal.reaper()
    heard = event.get("source") == "aws.states"
    reaped = reaper.hear(event["detail"]) if heard else reaper.sweep()
    logger.info(
        "reaped",
        heard=heard,
        off=reaped.off,
        started=reaped.started,
        removed=reaped.removed,
        withheld=reaped.withheld[:NAMED],
        left_behind=reaped.left_behind[:NAMED],
        failed=reaped.failed,
    )
    deployment = environment.settings().deployment
    repairs = len(reaped.started) + len(reaped.removed)
    # A zero ends the alarm on finds. A reaper that could not read everything sends none: it counts as silent, which
    # raises another alarm. A status-change event is the normal case, and not a find.
    if not heard:
        if repairs or not reaped.failed:
            emit(deployment, {Metric.REAPER_FINDS: repairs})
        # Their alarms end without data, so these metrics cost nothing while they are zero.
        counts = {Metric.REAPER_OFF: int(reaped.off), Metric.LEFT_BEHIND: len(reaped.left_behind)}
        emit(deployment, {metric: count for metric, count in counts.items() if count})
    emit_by_kind(deployment, Metric.RUNS_OPEN, reaped.runs_open)
    emit_by_kind(deployment, Metric.NODES_ALIVE, reaped.nodes_alive)
    for currency, amount in reaped.cost.items():
        emit(deployment, {Metric.RUN_COST: float(amount)}, **{CURRENCY: currency})
    emit_repairs(deployment, Repair.TEARDOWN, len(reaped.started))
    emit_repairs(deployment, Repair.LEFTOVER, len(reaped.removed))
    if reaped.failed:
        raise ReapingIncompleteError("; ".join(reaped.failed[:5]))
    return {"started": reaped.started, "removed": reaped.removed}
