"""Units: the name that policy, rolls and history go by, whatever a deployment calls its groups."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import LAST_TICK, SALT, account, group, settings
from troop.chaos.decisions import decide_all
from troop.chaos.facts import UnitState, facts_of_units
from troop.chaos.roll import roll
from troop.chaos.units import by_unit, is_unit, unit_from_url, unit_of, unit_to_url

FLEET = {"troop:fleet": "servers"}
PATTERNS = (("web-v*", "web"), ("web-*", "web-rest"), ("db-[0-9]", "db"))


@pytest.mark.parametrize(
    ("name", "tags", "unit"),
    [
        ("web-v041", {"troop:unit": "shop"}, "shop"),
        ("web-v041", {"troop:unit": "  shop "}, "web"),
        ("web-v041", {"troop:unit": " "}, "web"),
        ("web-v041", {}, "web"),
        ("web-x", {}, "web-rest"),
        ("db-7", {}, "db"),
        ("db-77", {}, "db-77"),
        ("WEB-v041", {}, "WEB-v041"),
        ("batch", {"unit": "not ours"}, "batch"),
    ],
)
def test_a_unit_is_the_tag_else_the_first_pattern_else_the_name(name: str, tags: dict[str, str], unit: str) -> None:
    assert unit_of(name, tags, PATTERNS) == unit


def test_groups_of_one_unit_stand_together_in_order() -> None:
    tagged = group("a-group", tags={"troop:unit": "zoo"})
    groups_by_unit = by_unit([group("web-v2"), group("db-1"), tagged, group("web-v1")], PATTERNS)
    assert {unit: [g.name for g in members] for unit, members in groups_by_unit.items()} == {
        "db": ["db-1"],
        "web": ["web-v1", "web-v2"],
        "zoo": ["a-group"],
    }
    assert list(groups_by_unit) == ["db", "web", "zoo"]


@pytest.mark.parametrize("patterns", [PATTERNS, [("*", "all")]], ids=["some", "whatever it is called"])
def test_troops_own_fleets_are_no_units(patterns: list[tuple[str, str]]) -> None:
    own = group("troop-20261120-150000-1f0c9b2e-c001-servers", tags={"troop:run": "20261120-150000-1f0c9b2e"} | FLEET)
    groups_by_unit = by_unit([own, group("web-v1")], patterns)
    assert [g.name for members in groups_by_unit.values() for g in members] == ["web-v1"]


def test_a_group_that_only_looks_like_one_is_decided_about_and_protected() -> None:
    """So that an owner who has tagged it so is told why chaos leaves it alone."""
    units = list(facts_of_units(account(group("web", tags=FLEET)), settings(), SALT, LAST_TICK))
    assert [(d.unit, d.reason) for d in decide_all(units)] == [("web", "protected")]


BY_TAG: tuple[Any, ...] = ({"troop:unit": "web"}, {}, "web-v041", "web-v042")
BY_PATTERN: tuple[Any, ...] = ({}, {"web-v*": "web"}, "web-v041", "web-v042")
BY_NAME: tuple[Any, ...] = ({}, {}, "web", "web")


@pytest.mark.parametrize(
    ("tags", "patterns", "old", "new"), [BY_TAG, BY_PATTERN, BY_NAME], ids=["tag", "pattern", "name"]
)
class TestAGroupReplacedByItsNextVersion:
    """``web-v041`` goes, ``web-v042`` comes: the unit stays what it was."""

    def decided(self, name: str, tags: dict[str, str], patterns: dict[str, str], **known: object) -> str:
        chosen = settings(units=patterns)
        units = list(facts_of_units(account(group(name, tags=tags), **known), chosen, SALT, LAST_TICK))
        return decide_all(units)[0].reason

    def test_stays_opted_out(self, tags: dict[str, str], patterns: dict[str, str], old: str, new: str) -> None:
        items = {"web": {"unit": "web", "opt_out": True}}
        for name in (old, new):
            assert self.decided(name, tags, patterns, items=items) == "opted-out"
            assert self.decided(name, tags, patterns) == "terminate"

    def test_keeps_its_distance(self, tags: dict[str, str], patterns: dict[str, str], old: str, new: str) -> None:
        states = {"web": UnitState(last_day=date(2026, 11, 19))}
        items = {"web": {"min_days_between": 2}}
        for name in (old, new):
            assert self.decided(name, tags, patterns, items=items, states=states) == "too-soon"

    def test_stays_unrecovered(self, tags: dict[str, str], patterns: dict[str, str], old: str, new: str) -> None:
        states = {"web": UnitState(unrecovered="2026-11-02#web")}
        for name in (old, new):
            assert self.decided(name, tags, patterns, states=states) == "unrecovered"

    def test_has_had_its_termination(self, tags: dict[str, str], patterns: dict[str, str], old: str, new: str) -> None:
        states = {"web": UnitState(last_day=date(2026, 11, 20))}
        for name in (old, new):
            assert self.decided(name, tags, patterns, states=states) == "already-today"


def test_both_versions_side_by_side_share_one_roll() -> None:
    chosen = settings(units={"web-v*": "web"})
    both = account(group("web-v041", first=0), group("web-v042", first=10))
    units = list(facts_of_units(both, chosen, SALT, LAST_TICK))
    assert [f.unit for f in units] == ["web"]
    decision = decide_all(units)[0]
    assert decision.rolled == roll(SALT, decision.day or date.min, "web")
    assert decision.groups == ("web-v041", "web-v042")


@pytest.mark.parametrize(
    ("unit", "segment"),
    [
        ("web", "web"),
        ("web_v1.2-x", "web_v1.2-x"),
        ("web/api v1", "web~2Fapi~20v1"),
        ("~", "~7E"),
        ("100%", "100~25"),
        ("ü", "~C3~BC"),
        (".", "~2E"),
        ("..", "~2E~2E"),
        ("...", "~2E~2E~2E"),
    ],
)
def test_a_unit_is_one_segment_of_a_path(unit: str, segment: str) -> None:
    assert unit_to_url(unit) == segment
    assert unit_from_url(segment) == unit


@given(st.text(max_size=30))
def test_every_unit_has_one_address(unit: str) -> None:
    segment = unit_to_url(unit)
    assert set(segment) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
    assert unit_from_url(segment) == unit


@pytest.mark.parametrize("segment", ["web%2Fapi", "web/api", "~2f", "~FF", "~", "~7", "a~2Db", ".", "ü"])
def test_other_spellings_are_no_address(segment: str) -> None:
    assert unit_from_url(segment) is None


def test_half_of_a_surrogate_pair_is_no_unit_and_ends_no_tick() -> None:
    half = "web-\ud800"
    assert not is_unit(half)
    groups = [group("a", tags={"troop:unit": half}), group("b")]
    units = list(facts_of_units(account(*groups), settings(), SALT, LAST_TICK))
    assert {one.unit for one in units} == {half, "b"}
    assert 0 <= roll(SALT, date(2026, 11, 20), half) < 1
