"""Lets a Wait state wait until its moment, whatever the scale of waits, and fails one whose moment is none.

MiniStack scales the time until the moment, as it does a number of seconds, so the wait ends before the moment. It goes
on at once where AWS fails the execution.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Any

from ministack.services import stepfunctions

from ._executions import current, stop_if_ended
from ._wrap import wrap

_SLICE_SECONDS = 0.1


def apply() -> None:
    @wrap(stepfunctions, "_sleep_until")
    def sleep(_original: Callable[..., None], text: str) -> None:
        moment = _moment(text)
        while (left := (moment - dt.datetime.now(dt.UTC)).total_seconds()) > 0:
            stop_if_ended(current())
            time.sleep(min(left, _SLICE_SECONDS))

    @wrap(stepfunctions, "_execute_wait")
    def wait(original: Callable[..., Any], state: dict[str, Any], data: Any, context: Any = None) -> Any:
        if path := state.get("TimestampPath"):
            effective = stepfunctions._apply_input_path(state, data, context)
            _moment(stepfunctions._resolve_path_or_ctx(path, effective, context))
        return original(state, data, context)


def _moment(text: Any) -> dt.datetime:
    """Reads a moment of RFC 3339. Raises States.Runtime for anything else."""
    try:
        moment = dt.datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment
    except (TypeError, ValueError):
        pass
    raise stepfunctions._ExecutionError("States.Runtime", f"{text!r} is no moment of a Wait state")
