"""Malformed values: reported with what is allowed, and never replaced by a default."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.chaos.build import group, tagged, unit_policy
from troop.chaos.policy import PARSERS
from troop.faults import names

MALFORMED = {
    "opt_out": ("maybe", "true or false"),
    "opt_in": ("", "true or false"),
    "probability": ("20%", "a number from 0 to 1"),
    "min_healthy": ("0", "a whole number from 1 to 10000"),
    "min_days_between": ("1.5", "a whole number from 0 to 250"),
    "until": ("24.12.2026", "a date as YYYY-MM-DD"),
    "reason": (" ", "text of 1 to 256 characters"),
    "owner": ("x" * 257, "text of 1 to 256 characters"),
    "stop_alarms": ("a,,b", "names separated by commas, none of them empty"),
    "success_alarms": (",".join(f"alarm-{n}" for n in range(51)), "at most 50 names"),
    "recovery_within": ("86401", "a whole number from 1 to 86400"),
    "calendar": ("", "text of 1 to 256 characters"),
    "under_load": ("sometimes", "true or false"),
    "method": ("explode", f"one of {', '.join(names())}"),
}


@pytest.mark.parametrize("key", PARSERS)
def test_a_malformed_value_is_reported_with_what_is_allowed(key: str) -> None:
    value, allowed = MALFORMED[key]
    assert unit_policy(tagged(**{key: value})).problems == (
        f"web: tag troop:{key} is {value[:80]!r}: must be {allowed}",
    )
    assert unit_policy(group(), item={key: value}).problems == (
        f"attribute {key} is {value[:80]!r}: must be {allowed}",
    )


@pytest.mark.parametrize("value", [None, float("nan"), Decimal("Infinity"), True, [], {}])
def test_number_that_only_a_table_can_hold_is_malformed(value: Any) -> None:
    assert unit_policy(group(), item={"probability": value}).problems


def test_one_malformed_member_makes_the_unit_malformed() -> None:
    assert unit_policy(group("web-1"), tagged("web-2", probability="x")).problems


def test_every_problem_is_reported_once() -> None:
    policy = unit_policy(tagged("web-1", owner=" "), tagged("web-2", method="x"), item={"probability": 7})
    assert len(policy.problems) == 3


def test_an_unknown_key_is_malformed_and_answered_with_the_nearest() -> None:
    assert unit_policy(tagged(**{"opt-out": "true"})).problems == (
        "web: tag troop:opt-out is unknown: must be spelled troop:opt_out",
    )
    assert unit_policy(tagged(Protected="true")).problems == (
        "web: tag troop:Protected is unknown: must be spelled troop:protected",
    )
    assert unit_policy(group(), item={"probabilty": 0}).problems == (
        "attribute probabilty is unknown: must be spelled probability",
    )
    assert "must be one of opt_out, opt_in" in unit_policy(group(), item={"zzz": 0}).problems[0]


def test_a_tag_in_capitals_is_not_passed_over_in_silence() -> None:
    policy = unit_policy(group(tags={"Troop:opt_out": "true"}))
    assert policy.problems == ("web: tag Troop:opt_out is unknown: must be spelled troop:opt_out",)


def test_a_blank_unit_tag_is_malformed() -> None:
    """The group would else leave its unit, and with it the unit's opt-out."""
    assert unit_policy(group(tags={"troop:unit": " "})).problems == (
        "web: tag troop:unit is ' ': must be text of 1 to 256 characters",
    )


@pytest.mark.parametrize("tag", [" shop", "shop ", "\tshop"])
def test_a_unit_tag_with_blanks_around_it_is_malformed(tag: str) -> None:
    """Auto Scaling finds tags only as they are: whoever asks for the unit's groups would not get this one."""
    assert unit_policy(group(tags={"troop:unit": tag})).problems == (
        f"web: tag troop:unit is {tag!r}: must be without surrounding blanks",
    )


@pytest.mark.parametrize(
    ("tags", "item", "source"), [({"calendar": "moon"}, {}, "tag of web"), ({}, {"calendar": "moon"}, "item")]
)
def test_a_calendar_that_does_not_exist_is_malformed(tags: dict[str, str], item: dict[str, str], source: str) -> None:
    assert unit_policy(tagged(**tags), item=item).problems == (
        f"calendar is 'moon' ({source}): must be one of default, night, day",
    )


def test_on_a_calendar_that_does_not_exist_no_opt_out_ends() -> None:
    assert unit_policy(group(), item={"calendar": "moon", "until": "2020-01-01"}).takes_part.value is False
