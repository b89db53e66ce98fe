"""Lets tasks wait for their token as on AWS: a failed call fails its task, and each try has a token that can expire.

MiniStack ignores the error of a function, gives all tries of a task one token, takes an answer after the end of the
execution, and knows no difference between a token that has expired and one that never was.

A task's TimeoutSeconds counts from its start. It counts the time of the call as it is. The rest, in which the task only
waits, is scaled as a Wait state is. So a call that takes long does not time out early.

Not emulated, and refused: heartbeats, and a timeout from the input.
"""

from __future__ import annotations

import base64
import contextvars
import json
import re
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from ministack.services import stepfunctions

from ._executions import current, ended, stop_if_ended
from ._wrap import wrap

_CALLBACK = ".waitForTaskToken"
_START = "AQCEAAAAKgAAAAMAAAAA"
_TOKEN = re.compile(rf"{_START}[A-Za-z0-9+/=]{{640}}")
_SLICE_SECONDS = 0.1
_MISSING = ("HeartbeatSeconds", "HeartbeatSecondsPath", "TimeoutSecondsPath")
_UNLIMITED = 99_999_999.0
"""The timeout of a task without one, in seconds: the default of the Amazon States Language."""

_lock = threading.Lock()
_closed: set[str] = set()
"""The tokens of tasks that have ended."""


def apply() -> None:
    """Applies the patch. Apply it before states_roles, which checks the call of the task."""
    invoke = stepfunctions._invoke_resource

    for arguments in ("_apply_parameters", "_apply_jsonata_arguments"):

        @wrap(stepfunctions, arguments)
        def fill_in(original: Callable[..., Any], state: dict[str, Any], data: Any, context: Any = None) -> Any:
            if context is not None and state.get("Type") == "Task" and _CALLBACK in str(state.get("Resource")):
                context["Task"] = {"Token": _START + base64.b64encode(secrets.token_bytes(480)).decode()}
            return original(state, data, context)

    @wrap(stepfunctions, "_run_sub_machine")
    def branch(
        original: Callable[..., Any], states: Any, start: Any, data: Any, execution: Any, context: dict[str, Any]
    ) -> Any:
        return original(states, start, data, execution, dict(context))  # branches would share one token

    @wrap(stepfunctions, "_invoke_with_callback")
    def call_back(_original: Callable[..., Any], resource: str, data: Any, token: str, state: dict[str, Any]) -> Any:
        for field in _MISSING:
            if field in state:
                raise stepfunctions._ExecutionError("States.Runtime", f"tokens of the local account have no {field}")
        task = _Task(float(state.get("TimeoutSeconds", _UNLIMITED)))
        with _lock:
            stepfunctions._task_tokens[token] = task.record
        try:
            task.call(invoke, resource.replace(_CALLBACK, ""), data)
            return task.wait()
        finally:
            with _lock:
                stepfunctions._task_tokens.pop(token, None)
                _closed.add(token)

    for call in ("_send_task_success", "_send_task_failure", "_send_task_heartbeat"):

        @wrap(stepfunctions, call)
        def send(original: Callable[..., Any], data: dict[str, Any]) -> Any:
            with _lock:
                return _refusal(data) or original(data)


class _Task:
    """A task that waits for its token. `seconds`: its timeout."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answered = threading.Event()
        self.record: dict[str, Any] = {
            "event": self._answered,
            "result": None,
            "error": None,
            "heartbeat": None,
            "execution": current(),
        }
        self._started = time.monotonic()
        self._returned: float | None = None
        self._failure: Exception | None = None

    def call(self, invoke: Callable[..., Any], resource: str, data: Any) -> None:
        """Calls the integration in a thread of its own: its token may come while it works."""
        context = contextvars.copy_context()

        def run() -> None:
            try:
                context.run(invoke, resource, data)
            except Exception as error:  # noqa: BLE001 - the task raises it
                self._failure = error
            self._returned = time.monotonic()

        threading.Thread(target=run, name="task-with-token", daemon=True).start()

    def wait(self) -> Any:
        """Returns the answer. Raises the error of the call or of the answer, or States.Timeout."""
        while not self._answered.wait(_SLICE_SECONDS):
            stop_if_ended(current())
            if self._failure is not None:
                raise self._failure
            if self._elapsed() >= self._seconds:
                with _lock:
                    if not self._answered.is_set():
                        self._answered.set()  # what comes now comes too late
                        raise stepfunctions._ExecutionError("States.Timeout", "")
        if error := self.record["error"]:
            raise stepfunctions._ExecutionError(error["Error"], error["Cause"])
        return json.loads(self.record["result"])

    def _elapsed(self) -> float:
        """The seconds since the start, those after the return of the call at the scale of waits."""
        now, scale = time.monotonic(), stepfunctions._SFN_WAIT_SCALE
        returned = self._returned or now
        return returned - self._started + ((now - returned) / scale if scale else _UNLIMITED)


def _refusal(data: dict[str, Any]) -> Any:
    """Returns an error response if an answer cannot end its task, else None."""
    token = str(data.get("taskToken"))
    task = stepfunctions._task_tokens.get(token)
    if token in _closed or (task and (task["event"].is_set() or ended(task.get("execution")))):
        return stepfunctions.error_response_json("TaskTimedOut", "Provided task does not exist anymore", 400)
    if task is None:
        code = "TaskDoesNotExist" if _TOKEN.fullmatch(token) else "InvalidToken"
        return stepfunctions.error_response_json(code, f"{code}: '{token[:40]}'", 400)
    try:
        json.loads(data.get("output", "{}"))
    except ValueError:
        return stepfunctions.error_response_json("InvalidOutput", "Invalid Output: the output is not JSON", 400)
    return None
