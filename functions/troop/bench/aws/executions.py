"""Reads, starts and stops the executions of runs and teardowns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop.bench.records.record import Run
from troop.shared.aws.machine import Machine


@dataclass(frozen=True)
class Executions:
    """The executions of a deployment.

    Attributes:
        benchmark, fleet: ARNs of the state machines of runs, see
            :attr:`troop.bench.records.record.Run.execution_name`.
        teardown: ARN of the state machine of teardowns.
    """

    client: Any
    benchmark: str
    teardown: str
    fleet: str

    def status(self, run: Run) -> str | None:
        """Returns the status of a run's execution, such as RUNNING; None if there is none (any more)."""
        return self._machine_of(run).status(run.execution_name)

    def stop(self, run: Run, cause: str) -> None:
        """Stops a run's execution, if there is one. What it has started continues for a moment; the teardown allows for
        that.
        """
        self._machine_of(run).stop(run.execution_name, cause)

    def teardowns(self) -> list[str]:
        """Returns the names of the running teardowns."""
        return Machine(self.client, self.teardown).running()

    def tear_down(self, name: str, work: Mapping[str, Any]) -> bool:
        """Starts a teardown; returns False if one of this name runs or has run.

        Args:
            name: of the execution.
            work: ``{"run", "status", "reason"}``, or ``{"run", "cell"}``.
        """
        return Machine(self.client, self.teardown).start(name, work)

    def _machine_of(self, run: Run) -> Machine:
        return Machine(self.client, self.benchmark if run.standing is None else self.fleet)
