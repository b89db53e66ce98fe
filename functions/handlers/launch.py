"""The benchmark workflow's step Launch: makes a cell's fleets."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop import wiring
from troop.aws.logs import step
from troop.bench.progress import wait
from troop.bench.verdicts import State

logger = Logger()


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"run", "cell"}`` -> ``{"phase_index", "state", "wait_seconds"}``: WAITING, until the nodes have registered."""
    wiring.launching().run(event["run"], event["cell"])
    logger.info("launched", run=event["run"], cell=event["cell"])
    return {"phase_index": 0, "state": State.WAITING.value, "wait_seconds": wait(0)}
