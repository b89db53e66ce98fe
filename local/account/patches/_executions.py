"""Tracks the execution that a thread works on, and whether it still runs. Shared by the patches of Step Functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ministack.services import stepfunctions

from ._wrap import wrap

Execution = dict[str, Any]
_current: ContextVar[Execution | None] = ContextVar("execution", default=None)


def track() -> None:
    """Makes `current` know every thread of an execution. Apply it before all other patches of Step Functions."""

    @wrap(stepfunctions, "_run_execution")
    def run(original: Callable[[str], None], arn: str) -> None:
        execution = stepfunctions._executions.get(arn)
        if execution is not None:
            with _working_on(execution):
                original(arn)

    @wrap(stepfunctions, "_run_sub_machine")
    def branch(
        original: Callable[..., Any], states: Any, start: Any, state_input: Any, execution: Execution, ctx: Any
    ) -> Any:
        with _working_on(execution):
            return original(states, start, state_input, execution, ctx)


def current() -> Execution | None:
    """Returns the execution (or child of a Map Run) whose state runs in this thread."""
    return _current.get()


@contextmanager
def _working_on(execution: Execution) -> Iterator[None]:
    token = _current.set(execution)
    try:
        yield
    finally:
        _current.reset(token)


def top(execution: Execution) -> Execution:
    """Returns the execution, or for a child of a Map Run the execution that started the run."""
    while run := stepfunctions._map_runs.get(execution.get("mapRunArn", "")):
        execution = stepfunctions._executions[run["executionArn"]]
    return execution


def ended(execution: Execution | None) -> bool:
    return execution is not None and bool(top(execution)["status"] != "RUNNING")


def stop_if_ended(execution: Execution | None) -> None:
    """Raises an error inside a stopped or timed out execution, whose further actions have no effect."""
    if ended(execution):
        raise stepfunctions._ExecutionError("States.Aborted", "the execution has ended")


def end(execution: Execution, status: str, event: str, error: str = "", cause: str = "") -> None:
    """Ends a running execution from outside, with its history event and status event; ignores others."""
    if execution["status"] != "RUNNING":
        return
    execution.update(status=status, stopDate=stepfunctions.now_iso(), error=error or None, cause=cause or None)
    details = f"{event[0].lower()}{event[1:]}EventDetails"
    stepfunctions._add_event(execution, event, {details: {"error": error, "cause": cause}})
    stepfunctions._emit_execution_status_event(execution)
