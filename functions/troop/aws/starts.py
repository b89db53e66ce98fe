"""Starts the workflow of terminations on demand: each event has one execution, of a name of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from troop.chaos.on_demand import execution_name


@dataclass(frozen=True)
class Starts:
    """``machine``: ARN of the state machine."""

    client: Any
    machine: str

    def execution(self, event_id: str) -> str:
        """ARN of the execution that carries out an event, whether it has started or not."""
        return self.machine.replace(":stateMachine:", ":execution:") + ":" + execution_name(event_id)

    def start(self, event_id: str, work: Mapping[str, Any]) -> None:
        """Starts it, unless it has started before.

        Step Functions takes the same name and input again while the execution runs, and refuses the name for 90 days
        after its end: both mean that it has started.

        Raises:
            ClientError: Step Functions refused.
        """
        try:
            self.client.start_execution(
                stateMachineArn=self.machine, name=execution_name(event_id), input=json.dumps(work)
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise
