"""Runs the workflow's step Terminate: claims one unit's termination and carries it out."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.events import Event, Status
from troop.chaos.flows.termination import TerminationForbiddenError, Work
from troop.chaos.injection_rules import is_over
from troop.chaos.recovery import EARLIER_WAIT
from troop.chaos.wiring.termination import termination
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit
from troop.shared.metrics import REFUSED, STATUS, Metric
from troop.shared.wiring import environment

logger = Logger()


@step(logger, "execution")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Terminates for one work item of Decide -> ``{"event_id", "status", "reason", "next", "wait_seconds"}``.

    The status is the event's, or REFUSED with the guard's reason. ``next`` is the workflow's step after this one:
    ``inject`` a lasting fault, check the ``recovery`` of the group, or the work is ``over``. Only executions that an
    earlier version has started read ``wait_seconds``.
    """
    work = Work.parse(event)
    try:
        outcome = termination().run(work)
    except TerminationForbiddenError as forbidden:
        _count(forbidden.status.value)
        raise
    status = outcome.event.status.value if outcome.event else REFUSED
    logger.info(
        "termination",
        event_id=work.event_id,
        status=status,
        reason=outcome.reason,
        detail=outcome.detail,
        instance_id=outcome.event.instance_id if outcome.event else None,
        execution=work.execution,
    )
    _count(status)
    return {
        "event_id": work.event_id,
        "status": status,
        "reason": outcome.reason,
        "next": _next(outcome.event),
        "wait_seconds": EARLIER_WAIT,
    }


def _next(event: Event | None) -> str:
    if event and event.injection and not is_over(event):
        return "inject"
    return "recovery" if event and event.is_recovering else "over"


def _count(status: str) -> None:
    if status == Status.TERMINATED:
        emit(environment.settings().deployment, {Metric.TERMINATIONS: 1})
    if status not in (Status.CLAIMED, Status.RUNNING):  # a sweep determines the outcome of that one
        emit(environment.settings().deployment, {Metric.OUTCOMES: 1}, **{STATUS: status})
