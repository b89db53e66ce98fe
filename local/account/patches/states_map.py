"""Reads the limits of Map states from paths, and rejects what the local account does not support.

MiniStack ignores MaxConcurrencyPath and the paths of the tolerated failures, so everything runs at once. It also
ignores ItemBatcher and ResultWriter silently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import stepfunctions

from ._wrap import wrap

_LIMITS = ("MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage")
_MISSING = ("ItemBatcher", "ResultWriter")


def apply() -> None:
    @wrap(stepfunctions, "_run_map_items")
    def run(original: Callable[..., Any], state: dict[str, Any], state_input: Any, execution: Any, context: Any) -> Any:
        for field in _MISSING:
            if field in state:
                raise stepfunctions._ExecutionError("States.Runtime", f"the local account has no {field}")
        effective = stepfunctions._apply_input_path(state, state_input, context)
        limits = {
            name: stepfunctions._resolve_path_or_ctx(state[f"{name}Path"], effective, context)
            for name in _LIMITS
            if f"{name}Path" in state
        }
        for name, value in limits.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise stepfunctions._ExecutionError("States.Runtime", f"{name}Path leads to {value!r}, not to a number")
        return original({**state, **limits}, state_input, execution, context)
