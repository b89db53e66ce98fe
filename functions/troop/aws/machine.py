"""A state machine's executions, each of a name of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError


@dataclass(frozen=True)
class Machine:
    """``arn``: of the state machine, a standard one."""

    client: Any
    arn: str

    def execution(self, name: str) -> str:
        """ARN of the execution of that name, whether there is one or not."""
        return self.arn.replace(":stateMachine:", ":execution:") + ":" + name

    def start(self, name: str, work: Mapping[str, Any]) -> bool:
        """Starts an execution, unless it has started before; False when there is, or was, another of this name.

        Step Functions takes the same name and input again while the execution runs, and refuses the name for 90 days
        after its end or with another input: all of these mean that it has started.

        Raises:
            ClientError: Step Functions refused.
        """
        try:
            self.client.start_execution(stateMachineArn=self.arn, name=name, input=json.dumps(work))
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise
            return False
        return True

    def stop(self, name: str, cause: str, error: str | None = None) -> None:
        """Stops an execution where it is; nothing happens when there is none.

        Args:
            name: the execution's.
            cause: why, for people.
            error: the same as one word, if there is one.

        Raises:
            ClientError: Step Functions refused.
        """
        reasons = {"cause": cause} | ({"error": error} if error else {})
        try:
            self.client.stop_execution(executionArn=self.execution(name), **reasons)
        except ClientError as refused:
            if refused.response["Error"]["Code"] != "ExecutionDoesNotExist":
                raise

    def status(self, name: str) -> str | None:
        """An execution's status, such as RUNNING; None when there is none (any more).

        Raises:
            ClientError: Step Functions refused.
        """
        try:
            return str(self.client.describe_execution(executionArn=self.execution(name))["status"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "ExecutionDoesNotExist":
                return None
            raise

    def running(self) -> list[str]:
        """Names of the executions that are under way.

        Raises:
            ClientError: Step Functions refused.
        """
        pages = self.client.get_paginator("list_executions").paginate(stateMachineArn=self.arn, statusFilter="RUNNING")
        return [execution["name"] for page in pages for execution in page["executions"]]
