"""Runs the benchmark workflow's steps other than the launch: those of a cell, and those of the run around its cells."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.flows.cell_steps import Answer
from troop.bench.measuring.verdicts import State
from troop.bench.wiring.cell import attempts, cell_steps
from troop.shared.aws.logs import step
from troop.shared.errors import TroopError

logger = Logger()


class UnknownStepError(TroopError):
    """The workflow requests a step that this function does not have: deploy the stack again."""


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Runs a step: ``{"step", "run", ...}`` -> the step's results; the other results are empty.

    =========  ======================================  ==========================
    step       other input                             results
    =========  ======================================  ==========================
    open       ``execution``                           ``run``, ``bucket``, ``key``, ``parallel``
    gather     ``cell``                                ``state``, ``wait_seconds``
    release    ``cell``, ``phase_index``               ``wait_seconds``
    check      ``cell``, ``phase_index``               ``state``, ``wait_seconds``, ``phase_index``
    collect    ``cell``                                ``state``
    fail       ``cell``, ``error``, ``cause``          ``state``
    again      ``cell``                                ``state``, ``cell``
    settle     ``error``, ``cause``                    ``status``, ``reason``
    =========  ======================================  ==========================
    """
    steps, name, run = cell_steps(), event["step"], event["run"]
    cell, phase_index = event.get("cell", ""), event.get("phase_index", 0)
    error, cause = event.get("error", ""), event.get("cause", "")
    answer, key, parallel, status, reason = Answer(run, cell), "", 1, "", None
    match name:
        case "open":
            key, parallel = steps.open(run, event.get("execution", ""))
        case "gather":
            answer = steps.gather(run, cell)
        case "release":
            answer = steps.release(run, cell, phase_index)
        case "check":
            answer = steps.check(run, cell, phase_index)
        case "collect":
            answer = steps.collect(run, cell)
        case "fail":
            answer = steps.fail(run, cell, error, cause)
        case "again":
            attempt = attempts().again(run, cell)
            answer = Answer(run, attempt or cell, State.AGAIN if attempt else State.DONE)
        case "settle":
            ended, reason = steps.settle(run, error, cause)
            status = ended.value
        case _:
            raise UnknownStepError(f"there is no step {name!r}: deploy the stack again")
    logger.info(
        name, run=run, cell=cell, state=answer.state.value, phase_index=answer.phase_index, status=status,
        reason=reason or answer.reason,
    )  # fmt: skip
    return {
        "run": run,
        "cell": answer.cell,
        "phase_index": answer.phase_index,
        "state": answer.state.value,
        "wait_seconds": answer.wait_seconds,
        "status": status,
        "reason": reason or "",
        "bucket": steps.store.bucket,
        "key": key,
        "parallel": parallel,
    }
