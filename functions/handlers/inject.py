"""Injects lasting faults, ends them, and proves their ends. The workflow, events of AWS, streams and backstops call it:
each call takes the steps that are due, whoever has taken the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.aws.streams import parse
from troop.chaos.events import Status
from troop.chaos.flows.injector import Injector, Progress
from troop.chaos.wiring.injection import injector
from troop.shared import moments
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit
from troop.shared.metrics import STATUS, Metric
from troop.shared.wiring import environment

logger = Logger()


@step(logger, "event_id")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Takes the steps that are due -> ``{"events": {id: status}}`` of the events that it was about.

    The workflow sends ``{"event_id", "entered", "token"}``, and waits for the answer to its token ``{"event_id",
    "status", "settles_at"}``, not for this one. A backstop sends ``{"event_id", "due"}``, a round of all open faults
    ``{"due"}``. Of an event of Systems Manager or CloudWatch only names and moments are used; of ``{"Records"}`` of the
    tables ``State`` and ``GroupTags`` only units.
    """
    statuses = {}
    for progress in _called(injector(context.invoked_function_arn), event):
        statuses[progress.event.event_id] = progress.event.status.value
        logger.info("injection", **progress.logged)
        _count(progress)
    return {"events": statuses}


def _called(itself: Injector, event: dict[str, Any]) -> Iterator[Progress]:
    if "token" in event:
        yield itself.wait(event["event_id"], moments.parse(event["entered"]), event["token"])
    elif event.keys() == {"due"}:
        yield from itself.go_round(moments.parse(event["due"]))
    elif "due" in event:
        yield itself.come_back(event["event_id"], moments.parse(event["due"]))
    elif "Records" in event:
        yield from _changed(itself, event["Records"])
    elif event["source"] == "aws.cloudwatch":
        detail = event["detail"]
        yield from itself.alarm_went_off(detail["alarmName"], moments.parse(detail["state"]["timestamp"]))
    else:
        yield from itself.command_changed(event["detail"]["instance-id"], moments.parse(event["time"]))


def _changed(itself: Injector, records: list[dict[str, Any]]) -> Iterator[Progress]:
    changed = [parse(raw) for raw in records]
    at = max(record.at for record in changed)
    units = {(record.new or record.old).get("unit", {}).get("S", "") for record in changed}
    for unit in {""} if "" in units else units:  # the items of State have no unit
        yield from itself.people_changed(at, unit)


def _count(progress: Progress) -> None:
    deployment, status = environment.settings().deployment, progress.event.status
    counts = {
        Metric.INJECTIONS: progress.injected,
        Metric.TERMINATIONS: progress.terminated,
        Metric.UNPROVEN_FAULTS: bool(progress.unproven),
    }
    emit(deployment, {metric: 1 for metric, happened in counts.items() if happened})
    if progress.terminated or progress.closed:
        emit(deployment, {Metric.OUTCOMES: 1}, **{STATUS: Status(status).value})
