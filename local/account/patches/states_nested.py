"""Runs executions of startExecution.sync as standard ones, with status events, which end with their parent.

MiniStack treats them like synchronous express workflows: no events, and they continue after a stop of the parent.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ministack.services import stepfunctions

from ._executions import current, end, top
from ._wrap import wrap

_children: defaultdict[str, list[str]] = defaultdict(list)
_lock = threading.Lock()


def apply() -> None:
    @wrap(stepfunctions, "_run_execution")
    def run(original: Callable[[str], None], arn: str) -> None:
        execution, parent = stepfunctions._executions.get(arn), current()
        if execution is None or parent is None or not execution.pop("sync", False):
            original(arn)
            return
        parent_arn = top(parent)["executionArn"]
        with _lock:
            _children[parent_arn].append(arn)
        stepfunctions._emit_execution_status_event(execution)
        try:
            original(arn)
        finally:
            with _lock:
                _children[parent_arn].remove(arn)

    @wrap(stepfunctions, "_stop_execution")
    def stop(original: Callable[..., Any], data: dict[str, Any]) -> Any:
        answer = original(data)
        _end_children(data.get("executionArn", ""))
        return answer

    @wrap(stepfunctions, "_emit_execution_status_event")
    def emit(original: Callable[..., None], execution: dict[str, Any]) -> None:
        original(execution)
        if execution["status"] == "TIMED_OUT":
            _end_children(execution["executionArn"])


def _end_children(parent_arn: str) -> None:
    with _lock:
        arns = list(_children.get(parent_arn, ()))
    for arn in arns:
        end(stepfunctions._executions[arn], "ABORTED", "ExecutionAborted", cause="the parent execution has ended")
        _end_children(arn)
