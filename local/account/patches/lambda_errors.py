"""Reports the class of a Python exception as the error type, and keeps the environment for the next call.

MiniStack reports every exception of a function as Runtime.HandlerError, so a Retry or Catch that names an error never
matches. It also starts a new worker after each exception.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from ._wrap import wrap

_FAILED = '{"status": "error", "error": str(e), "trace": traceback.format_exc()}'
# MiniStack ends a worker only for the status "error", and otherwise checks only for "ok".
_RAISED = '{"status": "ok", "raised": type(e).__name__, "error": str(e), "trace": traceback.format_exc()}'
_error_type: ContextVar[str | None] = ContextVar("error_type", default=None)


def apply() -> None:
    if _FAILED not in lambda_runtime._PYTHON_WORKER_SCRIPT:
        raise RuntimeError("MiniStack's Python worker no longer reports errors the way this patch expects")
    lambda_runtime._PYTHON_WORKER_SCRIPT = lambda_runtime._PYTHON_WORKER_SCRIPT.replace(_FAILED, _RAISED)

    @wrap(lambda_runtime.Worker, "invoke")
    def invoke(original: Callable[..., dict[str, Any]], *args: Any, **kwargs: Any) -> dict[str, Any]:
        result = original(*args, **kwargs)
        _error_type.set(result.get("raised"))
        return {**result, "status": "raised"} if "raised" in result else result

    @wrap(lambda_svc, "_execute_function_warm")
    def execute(original: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
        _error_type.set(None)
        result = original(*args)
        if result.get("error") and _error_type.get():
            result["body"]["errorType"] = _error_type.get()
        return result
