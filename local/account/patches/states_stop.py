"""Makes StopExecution end branches, items and waits of the execution, which stays stopped.

MiniStack marks the execution ABORTED, but its branches and child workflows continue, and a task that fails later turns
ABORTED into FAILED. Not emulated: children of an aborted Map Run are listed as FAILED instead of ABORTED.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ministack.services import stepfunctions

from ._executions import Execution, current, stop_if_ended
from ._wrap import wrap

_SLICE_SECONDS = 0.1


def apply() -> None:
    for state in ("_execute_task", "_execute_map", "_execute_parallel"):

        @wrap(stepfunctions, state)
        def enter(
            original: Callable[..., Any], definition: Any, state_input: Any, execution: Execution, context: Any
        ) -> Any:
            stop_if_ended(execution)
            return original(definition, state_input, execution, context)

    @wrap(stepfunctions, "_fail_execution")
    def fail(original: Callable[..., None], execution: Execution, *reason: Any) -> None:
        if execution["status"] == "RUNNING":
            original(execution, *reason)

    @wrap(stepfunctions, "_scaled_sleep")
    def sleep(_original: Callable[..., None], seconds: float) -> None:
        deadline = time.monotonic() + seconds * stepfunctions._SFN_WAIT_SCALE
        while (left := deadline - time.monotonic()) > 0:
            stop_if_ended(current())
            time.sleep(min(left, _SLICE_SECONDS))
