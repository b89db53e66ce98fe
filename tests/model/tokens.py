"""Step Functions' task tokens: a task waits for the answer to its own, and its time can be up first."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from tests.model.baton import Actor, Stage
from tests.model.dynamo import refusal


@dataclass
class Task:
    """A task of an execution that waits by a token.

    Attributes:
        event_id: the event that it waits for.
        output: the answer; None without one.
        is_over: whether it was answered, has failed, or its time was up.
    """

    token: str
    event_id: str
    actor: Actor
    output: dict[str, Any] | None = None
    is_over: bool = False


class Tokens:
    """All tasks that wait, and waited."""

    def __init__(self, stage: Stage, dice: random.Random) -> None:
        self._stage, self._dice = stage, dice
        self.tasks: dict[str, Task] = {}

    def issue(self, event_id: str) -> Task:
        """Begins a task of the running actor."""
        assert self._stage.running is not None
        task = Task(f"token-{len(self.tasks)}", event_id, self._stage.running)
        self.tasks[task.token] = task
        return task

    def end(self, task: Task) -> None:
        """A task is answered, or has failed: its execution goes on."""
        task.is_over = True
        self._stage.rouse(task.actor)

    def send_task_success(self, taskToken: str, output: str) -> dict[str, Any]:
        task = self.tasks.get(taskToken)
        if task is None:
            raise refusal("InvalidToken", "SendTaskSuccess")
        if task.is_over:
            raise refusal(self._dice.choice(("TaskTimedOut", "TaskDoesNotExist")), "SendTaskSuccess")
        task.output = json.loads(output)
        self.end(task)
        return {}
