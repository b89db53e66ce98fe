"""Defects of recoveries, and with them all that there are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.model import mutants, mutants_on_demand
from tests.model.bus import Delivery
from tests.model.mutants import Focus, Mutant, Patch
from tests.model.world import World
from troop.chaos.aws.balancers import Balancers
from troop.chaos.aws.event_table import EventTable
from troop.chaos.events import Status
from troop.chaos.flows.hearing import Hearing
from troop.chaos.flows.recovery_check import Observation, RecoveryCheck


def events_are_facts(patch: Patch) -> None:
    """An instance is in service again, says an event: so the group has recovered."""

    def group_changed(self: Hearing, group: str, at: datetime, launched: bool) -> list[Observation]:
        for event_id, its in self.events.open_groups().items():
            event = self.events.get(event_id) if its == group else None
            if event and event.status is Status.TERMINATED:
                self.events.close(event, Status.RECOVERED, "", self.clock())
        return []

    patch.setattr(Hearing, "group_changed", group_changed)


def events_are_not_heard(patch: Patch) -> None:
    patch.setattr(Hearing, "group_changed", lambda self, group, at, launched: [])


def every_event_answers_the_token(patch: Patch) -> None:
    def answer(self: RecoveryCheck, event_id: str) -> None:
        event = self.events.get(event_id)
        if event and event.token:
            output = {"event_id": event_id, "status": event.status.value, "settles_at": None}
            self.tokens.succeed(event.token, output)

    patch.setattr(RecoveryCheck, "_answer", answer)


def later_tokens_are_ignored(patch: Patch) -> None:
    def store_token(self: EventTable, event_id: str, token: str) -> None:
        event = self.get(event_id)
        if event and not event.token:
            real(self, event_id, token)

    real = EventTable.store_token
    patch.setattr(EventTable, "store_token", store_token)


def traffic_sources_are_not_read(patch: Patch) -> None:
    def healthy(self: Balancers, group: Any) -> dict[str, frozenset[str]]:
        return dict.fromkeys(group.sources, frozenset(one.instance_id for one in group.instances))

    patch.setattr(Balancers, "healthy", healthy)


def nobody_looks_again(patch: Patch) -> None:
    def watch(self: RecoveryCheck, event_id: str, entered: datetime, seconds: float = 0.0) -> Observation:
        return real(self, event_id, entered, 0.0)

    real = RecoveryCheck.watch
    patch.setattr(RecoveryCheck, "watch", watch)


def _reliable(world: World) -> None:
    """Nothing goes wrong, and no event is lost."""
    mutants.faults(call=0, kill=0, slow=0, clock=0, people=0, twin=0)(world)
    world.delivery, world.is_upgraded = Delivery(), False


def _balanced(world: World) -> None:
    """Every group has target groups."""
    for group in world.fleet.groups.values():
        group.target_groups = group.target_groups or [f"tg-{group.name}"]
        for instance in group.members:
            instance.healthy.update(group.target_groups)


MUTANTS: dict[Mutant, Focus] = mutants_on_demand.MUTANTS | {
    events_are_facts: _reliable,
    events_are_not_heard: _reliable,
    every_event_answers_the_token: _reliable,
    later_tokens_are_ignored: _reliable,
    traffic_sources_are_not_read: _balanced,
    nobody_looks_again: _reliable,
}
"""Each defect, and where to look for it."""
