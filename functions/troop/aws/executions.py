"""The executions of runs and of teardowns: how they are, starting and stopping them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.record import Run


@dataclass(frozen=True)
class Executions:
    """ARNs of the state machines ``benchmark`` and ``fleet``, whose executions have the names of their runs, and
    ``teardown``.
    """

    client: Any
    benchmark: str
    teardown: str
    fleet: str

    def of_run(self, run: Run) -> str:
        """ARN of a run's execution, whether there is one or not."""
        machine = self.benchmark if run.standing is None else self.fleet
        return machine.replace(":stateMachine:", ":execution:") + f":{run.run}"

    def status(self, run: Run) -> str | None:
        """Status of a run's execution, such as RUNNING; None when there is none (any more)."""
        try:
            return str(self.client.describe_execution(executionArn=self.of_run(run))["status"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "ExecutionDoesNotExist":
                return None
            raise

    def stop(self, run: Run, cause: str) -> None:
        """Stops a run's execution, if there is one. What it has started goes on for a moment: teardown knows that."""
        try:
            self.client.stop_execution(executionArn=self.of_run(run), cause=cause)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionDoesNotExist":
                raise

    def teardowns(self) -> list[str]:
        """Names of the teardowns that are under way."""
        pages = self.client.get_paginator("list_executions").paginate(
            stateMachineArn=self.teardown, statusFilter="RUNNING"
        )
        return [execution["name"] for page in pages for execution in page["executions"]]

    def tear_down(self, name: str, work: Mapping[str, Any]) -> bool:
        """Starts a teardown; False when there is, or was, one of this name.

        Args:
            name: of the execution.
            work: ``{"run", "status", "reason"}``, or ``{"run", "cell"}``.
        """
        try:
            self.client.start_execution(stateMachineArn=self.teardown, name=name, input=json.dumps(work))
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise
            return False
        return True
