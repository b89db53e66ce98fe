"""Defines the parts that health checks read, besides the tables."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

from troop.shared.variables import Variable


@dataclass(frozen=True)
class HealthTargets:
    """The parts of a deployment that GET /health and the watchdog check.

    Attributes:
        machine: the chaos workflow.
        schedule_group: name of the group of all schedules.
        undelivered: the queue of calls that schedules could not deliver.
        tick_minutes: between two ticks of a calendar.
    """

    machine: sfn.IStateMachine
    schedule_group: str
    undelivered: sqs.IQueue
    tick_minutes: int

    def environment(self) -> dict[Variable, str]:
        """Returns the variables with these parts' names for a function."""
        return {
            Variable.CHAOS_MACHINE: self.machine.state_machine_arn,
            Variable.SCHEDULE_GROUP: self.schedule_group,
            Variable.UNDELIVERED_QUEUE: self.undelivered.queue_url,
            Variable.TICK_MINUTES: str(self.tick_minutes),
        }
