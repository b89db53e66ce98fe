"""Defects of terminations on demand, and with them all that there are."""

from __future__ import annotations

from typing import Any

from tests.model import mutants
from tests.model.mutants import Focus, Mutant, Patch
from tests.model.world import World
from troop.chaos.aws.request_key import RequestKey
from troop.chaos.flows.on_demand import OnDemand


def keys_are_not_remembered(patch: Patch) -> None:
    """Neither before the claim nor in it."""
    patch.setattr(OnDemand, "_requested_event", lambda self, request_key: None)
    keys_count_only_before_the_claim(patch)


def keys_count_only_before_the_claim(patch: Patch) -> None:
    """Two tries of one request at the same time, between which the group changes its unit."""
    real = RequestKey.record

    def record(self: RequestKey, *args: Any) -> dict[str, Any]:
        body = real(self, *args)["Update"]
        return {"Update": body | {"ConditionExpression": "attribute_not_exists(zzz)"}}

    patch.setattr(RequestKey, "record", record)
    mutants.instances_are_not_reserved(patch)


def _moving(world: World) -> None:
    """Groups change their units all the time."""
    mutants.only("move")(world)
    mutants.faults(switch=0.9, call=0.15, slow=0.1)(world)


MUTANTS: dict[Mutant, Focus] = mutants.MUTANTS | {
    keys_are_not_remembered: _moving,
    keys_count_only_before_the_claim: _moving,
}
"""Each defect, and where to look for it."""
