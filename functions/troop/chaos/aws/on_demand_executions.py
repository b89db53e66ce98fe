"""Starts the workflow of terminations on demand: one execution for each event, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop.chaos.on_demand import execution_name
from troop.shared.aws.machine import Machine


@dataclass(frozen=True)
class OnDemandExecutions:
    """Starts executions. ``machine``: ARN of the state machine."""

    client: Any
    machine: str

    def execution(self, event_id: str) -> str:
        """Returns the ARN of the execution that carries out an event, even before it starts."""
        return Machine(self.client, self.machine).execution(execution_name(event_id))

    def start(self, event_id: str, work: Mapping[str, Any]) -> None:
        """Starts the execution, unless it has started before.

        Raises:
            ClientError: Step Functions refused.
        """
        Machine(self.client, self.machine).start(execution_name(event_id), work)
