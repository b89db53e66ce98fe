"""Starts and stops the workflow of a run, and starts its teardown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.record import RunStatus


@dataclass(frozen=True)
class RunMachines:
    """``benchmark``, ``teardown``: ARNs of the state machines."""

    client: Any
    benchmark: str
    teardown: str

    def execution(self, run: str) -> str:
        """ARN of the execution that does a run, whether it has started or not."""
        return self.benchmark.replace(":stateMachine:", ":execution:") + ":" + run

    def start(self, run: str) -> None:
        """Starts a run's workflow, unless it has started before.

        Raises:
            ClientError: Step Functions refused.
        """
        self._start(self.benchmark, run, {"run": run})

    def stop(self, run: str, reason: str) -> None:
        """Stops a run's workflow where it is; nothing happens when it does not run.

        Raises:
            ClientError: Step Functions refused.
        """
        try:
            self.client.stop_execution(executionArn=self.execution(run), error="Stopped", cause=reason)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("ExecutionDoesNotExist", "ExecutionNotFound"):
                raise

    def tear_down(self, run: str, status: RunStatus, reason: str, now: datetime) -> None:
        """Starts to take down what a run has created; at most once a minute, however often it is asked for.

        Raises:
            ClientError: Step Functions refused.
        """
        work = {"run": run, "status": status.value, "reason": reason}
        self._start(self.teardown, f"{run}-stop-{int(now.timestamp()) // 60}", work)

    def _start(self, machine: str, name: str, work: Mapping[str, Any]) -> None:
        # The same name and input again is taken while it runs, and the name is refused for 90 days after its end or
        # with another input: all of these mean that it has started.
        try:
            self.client.start_execution(stateMachineArn=machine, name=name, input=json.dumps(work))
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise
