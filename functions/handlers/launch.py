"""Runs the benchmark workflow's steps that launch: a cell's fleets, and on-demand nodes for missing spot capacity."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.measuring.poll_waits import wait
from troop.bench.measuring.verdicts import State
from troop.bench.wiring.launch import backup, launching
from troop.shared.aws.logs import step

logger = Logger()


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Launches: ``{"run", "cell", "step"?}`` -> ``{"phase_index", "state", "wait_seconds"}``. The state is WAITING,
    until the nodes have registered. ``step`` is ``backup`` for missing spot capacity.
    """
    name, elapsed = event.get("step", "launch"), 0.0
    if name == "backup":
        elapsed = backup().run(event["run"], event["cell"])
    else:
        launching().run(event["run"], event["cell"])
    logger.info(name, run=event["run"], cell=event["cell"])
    return {"phase_index": 0, "state": State.WAITING.value, "wait_seconds": wait(elapsed)}
