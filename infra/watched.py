"""What health is read from, besides the tables."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn


@dataclass(frozen=True)
class Watched:
    """The parts of a deployment that GET /health and the watchdog look at.

    Attributes:
        machine: the chaos workflow.
        schedule_group: name of the group of all schedules.
        undelivered: the queue of what no schedule could deliver.
    """

    machine: sfn.IStateMachine
    schedule_group: str
    undelivered: sqs.IQueue

    def environment(self, tick_minutes: int) -> dict[str, str]:
        """The variables that name them to a function."""
        return {
            "TROOP_CHAOS_MACHINE": self.machine.state_machine_arn,
            "TROOP_SCHEDULE_GROUP": self.schedule_group,
            "TROOP_UNDELIVERED_QUEUE": self.undelivered.queue_url,
            "TROOP_TICK_MINUTES": str(tick_minutes),
        }
