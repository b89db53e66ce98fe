"""EventBridge Scheduler in memory: schedules that start a function once, late or twice, and sometimes not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.model.dynamo import refusal
from tests.model.machine import At

PRECISION = 60.0
"""Seconds within which Scheduler starts what is due, in AWS's words."""


@dataclass
class Misfires:
    """Probabilities for each schedule: its function is not called, or called twice."""

    lost: float = 0.0
    twice: float = 0.0


@dataclass(eq=False)
class Schedule:
    """A schedule for one moment."""

    name: str
    due: float
    payload: str


class Schedules:
    """All schedules.

    Args:
        start: receives what a schedule's target gets, and how late it is.
    """

    def __init__(self, now: Callable[[], float], at: At, dice: random.Random, start: Callable[[str], None]) -> None:
        self._now, self._at, self._dice, self._start = now, at, dice, start
        self.misfires = Misfires()
        self.all: dict[str, Schedule] = {}
        self.lost: set[str] = set()

    def _plan(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        expression = request["ScheduleExpression"]
        if not (expression.startswith("at(") and expression.endswith(")")):
            raise refusal("ValidationException", operation, expression)
        if request["FlexibleTimeWindow"] != {"Mode": "OFF"}:
            raise refusal("ValidationException", operation, "a window")
        moment = datetime.fromisoformat(expression[3:-1]).replace(tzinfo=UTC)
        due, name, dice = moment.timestamp(), request["Name"], self._dice
        payload = request["Target"]["Input"].replace("<aws.scheduler.scheduled-time>", f"{moment:%Y-%m-%dT%H:%M:%SZ}")
        schedule = Schedule(name, due, payload)
        self.all[name] = schedule
        if dice.random() < self.misfires.lost:
            self.lost.add(name)
        else:
            self.lost.discard(name)
        late = dice.choice((0.0, 0.0, 5.0, PRECISION))
        self._at(max(due, self._now()) + dice.random() * late, partial(self._fire, schedule))
        return {"ScheduleArn": f"arn:aws:scheduler:eu-central-1:123456789012:schedule/{name}"}

    def _fire(self, schedule: Schedule) -> None:
        if self.all.get(schedule.name) is not schedule or schedule.name in self.lost:
            return  # changed or deleted since, or nobody is called
        del self.all[schedule.name]  # ActionAfterCompletion
        for _ in range(2 if self._dice.random() < self.misfires.twice else 1):
            self._start(schedule.payload)

    def create_schedule(self, **request: Any) -> dict[str, Any]:
        if request["Name"] in self.all:
            raise refusal("ConflictException", "CreateSchedule")
        return self._plan("CreateSchedule", request)

    def update_schedule(self, **request: Any) -> dict[str, Any]:
        if request["Name"] not in self.all:
            raise refusal("ResourceNotFoundException", "UpdateSchedule")
        return self._plan("UpdateSchedule", request)

    def delete_schedule(self, Name: str, **request: Any) -> dict[str, Any]:
        if Name not in self.all:
            raise refusal("ResourceNotFoundException", "DeleteSchedule")
        del self.all[Name]
        return {}
