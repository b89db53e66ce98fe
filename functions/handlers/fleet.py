"""Runs the steps of a standing fleet's workflow; the API also calls ``keep`` after a change of the wanted sizes."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.definition.living import REPLACE, RESTART
from troop.bench.flows.fleet_steps import FleetRound
from troop.bench.flows.fleet_view import CELL
from troop.bench.measuring.verdicts import State
from troop.bench.wiring.fleet import fleet_steps
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit, emit_repairs
from troop.shared.errors import TroopError
from troop.shared.metrics import CHECK, FLEET, Metric, Repair
from troop.shared.wiring import environment

logger = Logger()


class FleetCheckIncompleteError(TroopError):
    """AWS refused a part of a check; everything else was done, and the next check tries again."""


class UnknownFleetStepError(TroopError):
    """The workflow requests a step that this function does not have: deploy the stack again."""


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Runs a step: ``{"step": "open" | "keep" | "settle", "run", ...}`` ->
    ``{"run", "cell", "state", "wait_seconds", "status", "reason"}``; results that a step does not have are empty.

    Open also has the input ``execution``, and settle ``error`` and ``cause``.

    Raises:
        FleetCheckIncompleteError: after everything else was done.
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
    _measure(run, round)
    logger.info(name, run=run, state=round.state.value, wait_seconds=round.wait_seconds, status=status, reason=reason)
    if round.health.failures:
        raise FleetCheckIncompleteError("; ".join(round.health.failures[:5]))
    return {
        "run": run,
        "cell": CELL,
        "state": round.state.value,
        "wait_seconds": round.wait_seconds,
        "status": status,
        "reason": reason or "",
    }


def _measure(run: str, round: FleetRound) -> None:
    """Logs and counts what a check has found about the health of nodes."""
    deployment, health = environment.settings().deployment, round.health
    for one in health.repairs:
        logger.info("repair", run=run, node=one.node, role=one.role, do=one.do, number=one.number, reason=one.reason)
    for do, kind in {RESTART: Repair.NODE_RESTARTED, REPLACE: Repair.NODE_REPLACED}.items():
        emit_repairs(deployment, kind, sum(one.do == do for one in health.repairs))
    if health.limited:
        logger.warning("healing is limited", run=run, reasons=health.limited)
        emit(deployment, {Metric.HEALING_LIMITED: 1})
    for check, values in health.values.items():
        emit(deployment, {Metric.FLEET_HEALTH: values}, **{FLEET: round.name, CHECK: check})
