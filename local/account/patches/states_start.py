"""StartExecution with the name and input of an execution that is still running answers that execution.

MiniStack answers ExecutionAlreadyExists, so a client's retry would fail where on AWS it succeeds.
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
