"""Runs the steps of a standing fleet's workflow; the API also calls ``keep`` after a change of the wanted sizes."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.flows.fleet_steps import CELL, FleetRound
from troop.bench.measuring.verdicts import State
from troop.bench.wiring.fleet import fleet_steps
from troop.shared.aws.logs import step
from troop.shared.errors import TroopError

logger = Logger()


class UnknownFleetStepError(TroopError):
    """The workflow requests a step that this function does not have: deploy the stack again."""


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Runs a step: ``{"step": "open" | "keep" | "settle", "run", ...}`` ->
    ``{"run", "cell", "state", "wait_seconds", "status", "reason"}``; results that a step does not have are empty.

    Open also has the input ``execution``, and settle ``error`` and ``cause``.
    """
    steps, name, run = fleet_steps(), event["step"], event["run"]
    round, status, reason = FleetRound(State.WAITING), "", None
    match name:
        case "open":
            steps.open(run, event.get("execution", ""))
        case "keep":
            round = steps.keep(run)
        case "settle":
            ended, reason = steps.settle(run, event.get("error", ""), event.get("cause", ""))
            status = ended.value
        case _:
            raise UnknownFleetStepError(f"there is no step {name!r}: deploy the stack again")
    if round.withheld:
        logger.warning("withheld", run=run, resizes=round.withheld)
    logger.info(name, run=run, state=round.state.value, wait_seconds=round.wait_seconds, status=status, reason=reason)
    return {
        "run": run,
        "cell": CELL,
        "state": round.state.value,
        "wait_seconds": round.wait_seconds,
        "status": status,
        "reason": reason or "",
    }
