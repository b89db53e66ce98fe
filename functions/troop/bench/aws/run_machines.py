"""Starts and stops the workflow of a run, and starts its teardown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.bench.records.record import RunStatus
from troop.shared.aws.machine import Machine


@dataclass(frozen=True)
class RunMachines:
    """The state machines of runs.

    Attributes:
        benchmark, teardown: their ARNs.
    """

    client: Any
    benchmark: str
    teardown: str

    def execution(self, run: str) -> str:
        """Returns the ARN of the run's execution, whether it has started or not."""
        return Machine(self.client, self.benchmark).execution(run)

    def start(self, run: str) -> None:
        """Starts a run's workflow, unless it has started before.

        Raises:
            ClientError: Step Functions refused.
        """
        Machine(self.client, self.benchmark).start(run, {"run": run})

    def stop(self, execution: str, reason: str) -> None:
        """Stops an execution of a run's workflow immediately; does nothing if it does not run.

        Args:
            execution: its name.

        Raises:
            ClientError: Step Functions refused.
        """
        Machine(self.client, self.benchmark).stop(execution, reason, error="Stopped")

    def tear_down(self, run: str, status: RunStatus, reason: str, now: datetime) -> None:
        """Starts the teardown of a run, at most once a minute.

        Raises:
            ClientError: Step Functions refused.
        """
        work = {"run": run, "status": status.value, "reason": reason}
        Machine(self.client, self.teardown).start(f"{run}-stop-{int(now.timestamp()) // 60}", work)
