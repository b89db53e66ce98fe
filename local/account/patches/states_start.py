"""Makes StartExecution return a running execution with the same name and input.

MiniStack answers ExecutionAlreadyExists, so a client's retry would fail where it succeeds on AWS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import stepfunctions

from ._wrap import wrap


def apply() -> None:
    @wrap(stepfunctions, "_start_execution")
    def start(original: Callable[..., Any], data: dict[str, Any]) -> Any:
        machine = stepfunctions._resolve_state_machine_arn(data.get("stateMachineArn", ""))
        if machine and data.get("name"):
            arn = f"{machine.replace(':stateMachine:', ':execution:')}:{data['name']}"
            running = stepfunctions._executions.get(arn)
            if running and running["status"] == "RUNNING" and running["input"] == data.get("input", "{}"):
                return stepfunctions.json_response({"executionArn": arn, "startDate": running["startDate"]})
        return original(data)
