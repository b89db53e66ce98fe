"""Manages the executions of a state machine by their names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError


@dataclass(frozen=True)
class Machine:
    """A standard state machine.

    Attributes:
        arn: the ARN of the state machine.
    """

    client: Any
    arn: str

    def execution(self, name: str) -> str:
        """Returns the ARN of the execution of this name, whether it exists or not."""
        return self.arn.replace(":stateMachine:", ":execution:") + ":" + name

    def start(self, name: str, work: Mapping[str, Any]) -> bool:
        """Starts an execution; returns False if one of this name runs or has run.

        Step Functions accepts the same name and input again while the execution runs. It refuses the name with another
        input, and for 90 days after the end. Either way the execution has started.

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
        """Stops an execution immediately; does nothing if it does not exist.

        Args:
            name: the name of the execution.
            cause: the reason, for people.
            error: the reason as one word, if there is one.

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
        """Returns an execution's status, such as RUNNING; None if it does not exist (any more).

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
        """Returns the names of the running executions.

        Raises:
            ClientError: Step Functions refused.
        """
        pages = self.client.get_paginator("list_executions").paginate(stateMachineArn=self.arn, statusFilter="RUNNING")
        return [execution["name"] for page in pages for execution in page["executions"]]
