"""Candidates: a guard that refuses one group leaves its siblings in, and only instances that serve are chosen."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from tests.unit.chaos.build import at, facts, group, instance
from tests.unit.chaos.guard_cases import ill
from troop.chaos.groups import Group
from troop.chaos.guards import (
    NEEDED_PROCESSES,
    Refusal,
    Target,
    judge,
)

# ------------------------------------------------------------------ groups and instances narrow the candidates

BLUE, GREEN = group("web-blue", first=0), group("web-green", first=10)

NARROWED: list[tuple[str, Group, dict[str, Any]]] = [
    ("protected", replace(BLUE, tags={"troop:protected": ""}), {}),
    ("suspended", replace(BLUE, suspended_processes=frozenset({"Terminate"})), {}),
    ("refreshing", BLUE, {"refreshing": frozenset({"web-blue"})}),
    ("too-small", replace(BLUE, instances=BLUE.instances[:1], desired=1), {}),
    ("unhealthy", replace(BLUE, desired=4), {}),
    ("protected-instances", BLUE, {"protected_instances": frozenset(i.instance_id for i in BLUE.instances)}),
]


@pytest.mark.parametrize(("reason", "blue", "changes"), NARROWED, ids=[n[0] for n in NARROWED])
def test_a_group_that_a_guard_refuses_leaves_its_siblings_in(reason: str, blue: Group, changes: dict[str, Any]) -> None:
    for day in range(16, 21):
        verdict = judge(facts(groups=(blue, GREEN), now=at("14:45", date(2026, 11, day)), **changes))
        assert isinstance(verdict, Target)
        assert verdict.group.name == "web-green"
    alone = judge(facts(groups=(blue,), **changes))
    assert isinstance(alone, Refusal)
    assert alone.reason == reason


def test_when_all_groups_are_refused_each_is_heard() -> None:
    both = (replace(BLUE, tags={"troop:protected": ""}), replace(GREEN, tags={"troop:fleet": "x"}))
    assert judge(facts(groups=both)) == Refusal(
        "protected", "web-blue is tagged troop:protected; web-green belongs to one of Troop's own fleets"
    )


def test_groups_may_be_refused_by_different_guards() -> None:
    blue, green = replace(BLUE, tags={"troop:protected": ""}), replace(GREEN, desired=99)
    verdict = judge(facts(groups=(blue, green)))
    assert verdict == Refusal("unhealthy", "web-green has a capacity of 3 in service, desired 99")


@pytest.mark.parametrize("process", sorted(NEEDED_PROCESSES))
def test_a_group_that_cannot_replace_its_instances_is_left_alone(process: str) -> None:
    verdict = judge(facts(groups=(group(suspended_processes=frozenset({process})),)))
    assert verdict == Refusal("suspended", f"web has suspended {process}")


@pytest.mark.parametrize(
    "spared",
    [
        {"scale_in_protected": True},
        {"health": "Unhealthy"},
        {"lifecycle": "Standby"},
        {"lifecycle": "Pending:Wait"},
        {"lifecycle": "Terminating"},
        {"lifecycle": "EnteringStandby"},
    ],
)
def test_only_serving_unprotected_instances_are_chosen(spared: dict[str, Any]) -> None:
    members = (*ill(5, total=5, **spared), *(instance(n) for n in range(5, 7)))
    for day in (16, 17, 18, 19, 20):
        verdict = judge(facts(groups=(group(instances=members, desired=2),), now=at("14:45", date(2026, 11, day))))
        assert isinstance(verdict, Target)
        assert verdict.instance in members[5:]
