"""Ends executions as TIMED_OUT after a state machine's TimeoutSeconds; MiniStack ignores it."""

from __future__ import annotations

import contextvars
import json
import threading
from collections.abc import Callable
from typing import Any

from ministack.services import stepfunctions

from ._executions import end
from ._wrap import wrap


def apply() -> None:
    @wrap(stepfunctions, "_run_execution")
    def run(original: Callable[[str], None], arn: str) -> None:
        timer = _timer(stepfunctions._executions.get(arn))
        if timer:
            timer.start()
        try:
            original(arn)
        finally:
            if timer:
                timer.cancel()


def _timer(execution: dict[str, Any] | None) -> threading.Timer | None:
    machine = stepfunctions._state_machines.get(execution["stateMachineArn"]) if execution else None
    limit = json.loads(machine["definition"]).get("TimeoutSeconds") if machine else None
    if not limit:
        return None
    # The thread of the timer needs the account and region of the execution.
    timer = threading.Timer(
        float(limit), contextvars.copy_context().run, (end, execution, "TIMED_OUT", "ExecutionTimedOut")
    )
    timer.daemon = True
    return timer
