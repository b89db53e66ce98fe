"""Runs the steps of the workflow that removes what a run, or one cell of it, has created."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.flows.teardown import Work
from troop.bench.records.record import LeftBehind
from troop.bench.removal.teardown import TeardownProgress
from troop.bench.wiring import removal
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit
from troop.shared.metrics import CURRENCY, STATUS, Metric
from troop.shared.wiring import environment

logger = Logger()


@step(logger, "work.run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Runs a step: ``{"step": "close" | "remove" | "conclude", "work", "execution"}`` ->
    ``{"run", "cell", "passes", "quiet", "over", "wait_seconds", "report"}``.

    ``work`` is the workflow's input, ``{"run", "cell"?, "status"?, "reason"?}``, or the previous step's result. Over
    means that it can be concluded; otherwise check again after the wait. Report, of the last step, means that a report
    is needed.
    """
    work = Work.parse(event["work"])
    teardown = removal.teardown()
    progress, report, left = TeardownProgress(work.passes, work.quiet), False, tuple[LeftBehind, ...]()
    if event["step"] == "close":
        teardown.close(work)
    elif event["step"] == "remove":
        progress = teardown.remove(work)
    else:
        concluded = teardown.conclude(work)
        report, left = concluded.report, concluded.left_behind
        deployment = environment.settings().deployment
        if concluded.ended:
            emit(deployment, {Metric.RUNS_ENDED: 1}, **{STATUS: concluded.ended.status.value})
        if concluded.cost:
            emit(deployment, {Metric.RUN_COST: float(concluded.cost.amount)}, **{CURRENCY: concluded.cost.currency})
    logger.info(
        "teardown",
        step=event["step"],
        run=work.run,
        cell=work.cell,
        passes=progress.passes,
        quiet=progress.quiet,
        remaining=list(progress.remaining),
        deleted=progress.deleted,
        undeleted=list(progress.undeleted),
        left_behind=[f"{one.kind.value} {one.name}: {one.reason}" for one in left],
        execution=event["execution"],
    )
    return {
        "run": work.run,
        "cell": work.cell or "",
        "passes": progress.passes,
        "quiet": progress.quiet,
        "over": progress.over,
        "wait_seconds": progress.wait_seconds,
        "report": report,
    }
