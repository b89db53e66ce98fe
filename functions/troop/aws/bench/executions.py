"""The executions of runs and of teardowns: how they are, starting and stopping them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop.aws.machine import Machine
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

    def status(self, run: Run) -> str | None:
        """Status of a run's execution, such as RUNNING; None when there is none (any more)."""
        return self._machine_of(run).status(run.run)

    def stop(self, run: Run, cause: str) -> None:
        """Stops a run's execution, if there is one. What it has started goes on for a moment: teardown knows that."""
        self._machine_of(run).stop(run.run, cause)

    def teardowns(self) -> list[str]:
        """Names of the teardowns that are under way."""
        return Machine(self.client, self.teardown).running()

    def tear_down(self, name: str, work: Mapping[str, Any]) -> bool:
        """Starts a teardown; False when there is, or was, one of this name.

        Args:
            name: of the execution.
            work: ``{"run", "status", "reason"}``, or ``{"run", "cell"}``.
        """
        return Machine(self.client, self.teardown).start(name, work)

    def _machine_of(self, run: Run) -> Machine:
        return Machine(self.client, self.benchmark if run.standing is None else self.fleet)
