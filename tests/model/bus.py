"""The default event bus: AWS's own events, which may be lost, late, doubled and in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.model.fleet import CHANGED, LAUNCHED, NOT_LAUNCHED, TERMINATED
from tests.model.machine import FINAL
from tests.model.run_command import SSM_CHANGED

if TYPE_CHECKING:
    from tests.model.world import World

ALARM_CHANGED = "CloudWatch Alarm State Change"

Notice = dict[str, Any]


@dataclass
class Delivery:
    """Probabilities, for each event: it is lost; delivered twice; or late, by up to ten minutes."""

    lost: float = 0.0
    twice: float = 0.0
    late: float = 0.0


def matches_rule(notice: Notice) -> bool:
    """Whether the deployment's rules match an event."""
    kind, detail = notice["detail-type"], notice["detail"]
    if kind == ALARM_CHANGED:
        return bool(detail["state"]["value"] == "ALARM")
    if kind == SSM_CHANGED:
        return detail["status"] in FINAL
    return kind in (LAUNCHED, NOT_LAUNCHED, TERMINATED) or (kind == CHANGED and detail["state"] == "running")


class Bus:
    """Gives events to ``hear``, each as an actor of its own.

    Attributes:
        hear: what receives an event; None while nobody listens.
        delivered: the events that were given to it.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.hear: Callable[[Notice], None] | None = None
        self.delivered = 0
        self._number = 0

    def emit(self, source: str, kind: str, detail: dict[str, Any]) -> None:
        """Something happened, now."""
        world, dice, odds = self._world, self._world.dice, self._world.delivery
        self._number += 1
        notice = {
            "version": "0",
            "id": f"event-{self._number}",
            "source": source,
            "detail-type": kind,
            "account": "123456789012",
            "region": "eu-central-1",
            "time": f"{datetime.fromtimestamp(world.stage.now, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "resources": [],
            "detail": detail,
        }
        if self.hear is None or not matches_rule(notice):
            return
        if dice.random() < odds.lost:
            world.checks.seen["event lost"] += 1
            return
        for _ in range(2 if dice.random() < odds.twice else 1):
            delay = dice.uniform(1, 600) if dice.random() < odds.late else dice.uniform(0.1, 1.0)
            self.delivered += 1
            world.stage.spawn(f"hear{self._number}", partial(self.hear, notice), world.stage.now + delay)
