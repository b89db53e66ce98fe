"""Records MiniStack's own authorisation decisions together with those of the gate.

This is not a difference from AWS: tests need it to find actions that a role allows and never uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core import iam_evaluator

from ..decisions import log
from ._wrap import wrap


def apply() -> None:
    @wrap(iam_evaluator, "enforce")
    def enforce(original: Callable[..., Any], access_key_id: str, iam_action: str, *args: Any, **named: Any) -> Any:
        refused = original(access_key_id, iam_action, *args, **named)
        if refused is None or isinstance(refused, iam_evaluator.EvalResult):
            caller = (iam_evaluator.resolve_caller_identity(access_key_id) or {}).get("userArn", "anonymous")
            log.record(caller, iam_action, named["resource_arn"], refused.decision if refused else "Allow", "account")
        return refused
