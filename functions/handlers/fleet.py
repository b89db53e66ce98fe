"""Runs the steps of a standing fleet's workflow; the API also calls ``keep`` after a change of the wanted sizes."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.definition import names
from troop.bench.definition.living import REPLACE, RESTART
from troop.bench.flows.fleet_steps import FleetRound, FleetSteps, is_long
from troop.bench.flows.fleet_view import CELL
from troop.bench.measuring.verdicts import State
from troop.bench.wiring.fleet import fleet_steps
from troop.shared import moments
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit, emit_repairs
from troop.shared.errors import MissingRunError, TroopError
from troop.shared.metrics import CHECK, FLEET, Metric, Repair
from troop.shared.wiring import environment

logger = Logger()


class UnknownFleetStepError(TroopError):
    """The workflow requests a step that this function does not have: deploy the stack again."""


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Runs a step: ``{"step": "open" | "keep" | "settle", "run", ...}`` ->
    ``{"run", "cell", "state", "wait_seconds", "following", "status", "reason"}``; results that a step does not have are
    empty. ``following`` is the name of the execution that continues the workflow.

    Open also has the input ``execution``; keep ``execution`` and ``began``, unless the API calls it; and settle
    ``error`` and ``cause``.

    What AWS refused without leaving the sizes undecided is logged and counted, and no error: the next check tries it
    again, and three checks in a row would do the same.
    """
    steps, name, run = fleet_steps(), event["step"], event["run"]
    round, status, reason = FleetRound(State.WAITING), "", None
    match name:
        case "open":
            steps.open(run, event.get("execution", ""))
        case "keep":
            round = _keep(steps, run, event.get("began", ""))
        case "settle":
            ended, reason = steps.settle(run, event.get("error", ""), event.get("cause", ""))
            status = ended.value
        case _:
            raise UnknownFleetStepError(f"there is no step {name!r}: deploy the stack again")
    if round.withheld:
        logger.warning("withheld", run=run, resizes=round.withheld)
    _measure(run, round)
    logger.info(name, run=run, state=round.state.value, wait_seconds=round.wait_seconds, status=status, reason=reason)
    return {
        "run": run,
        "cell": CELL,
        "state": round.state.value,
        "wait_seconds": round.wait_seconds,
        "following": names.following_execution(event.get("execution", run).rpartition(":")[2]),
        "status": status,
        "reason": reason or "",
    }


def _keep(steps: FleetSteps, run: str, began: str) -> FleetRound:
    """Checks a fleet. If that fails at the end of an execution, the next one begins all the same: otherwise failures
    would fill the history, and end the fleet.

    Args:
        began: when the execution of the workflow did; "" for a call of the API.
    """
    try:
        return steps.keep(run, moments.parse(began) if began else None)
    except MissingRunError:
        raise
    except Exception:
        if not began or not is_long(moments.parse(began), environment.now()):
            raise
        logger.exception("the check failed")
        return FleetRound(State.AGAIN)


def _measure(run: str, round: FleetRound) -> None:
    """Logs and counts what a check has found about the health of nodes, and what AWS refused."""
    deployment, health = environment.settings().deployment, round.health
    if round.failures:
        logger.warning("a part of the check failed", run=run, failures=round.failures[:5])
        emit(deployment, {Metric.STEPS_FAILED: 1})
    for one in health.repairs:
        logger.info("repair", run=run, node=one.node, role=one.role, do=one.do, number=one.number, reason=one.reason)
    for do, kind in {RESTART: Repair.NODE_RESTARTED, REPLACE: Repair.NODE_REPLACED}.items():
        emit_repairs(deployment, kind, sum(one.do == do for one in health.repairs))
    if health.limited:
        logger.warning("healing is limited", run=run, reasons=health.limited)
        emit(deployment, {Metric.HEALING_LIMITED: 1})
    for check, values in health.values.items():
        emit(deployment, {Metric.FLEET_HEALTH: values}, **{FLEET: round.name, CHECK: check})
