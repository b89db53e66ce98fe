"""A unit's groups: every one is found, and others are asked for only where a pattern could make them members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.account.account import Account
from troop.chaos.aws.groups import read_groups
from troop.chaos.aws.unit_groups import read_members
from troop.chaos.units import by_unit

GROUPS: dict[str, dict[str, str]] = {
    "web": {},
    "web-v1": {},
    "web-v2": {"troop:unit": "shop"},
    "shop": {},
    "shop-a": {"troop:unit": "shop"},
    "SHOP": {"troop:unit": "Shop"},
    "till": {"troop:unit": "shop", "troop:opt_out": "true"},
    "blanks": {"troop:unit": " shop "},
    "blank": {"troop:unit": ""},
    "tagged-with-its-name": {"troop:unit": "tagged-with-its-name"},
    "elsewhere": {"troop:unit": "web"},
}

PATTERNS: list[tuple[tuple[str, str], ...]] = [
    (),
    (("web-v*", "web"),),
    (("shop*", "web"), ("*", "rest")),
]


@pytest.fixture
def requests(account: Account) -> Iterator[list[dict[str, Any]]]:
    """Parameters of every call for groups."""
    for name, tags in GROUPS.items():
        account.group(name, size=0, tags=tags)
    parameters: list[dict[str, Any]] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        parameters.append(dict(params))

    event = "provide-client-params.autoscaling.DescribeAutoScalingGroups"
    account.autoscaling.meta.events.register(event, note, unique_id="members")
    yield parameters
    account.autoscaling.meta.events.unregister(event, unique_id="members")  # the client outlives the test


@pytest.mark.parametrize("patterns", PATTERNS)
def test_they_are_those_that_a_whole_reading_shows(
    account: Account, requests: list[dict[str, Any]], patterns: tuple[tuple[str, str], ...]
) -> None:
    every = by_unit(read_groups(account.autoscaling), patterns)
    assert len(every) > 3
    for unit, groups in every.items():
        requests.clear()
        assert read_members(account.autoscaling, unit, patterns) == list(groups), unit
        whole = any(named == unit for _, named in patterns)
        assert [not (a.get("Filters") or a.get("AutoScalingGroupNames")) for a in requests] == (
            [True] if whole else [False, False]
        )


def test_many_tagged_ones_are_read_page_by_page(account: Account, requests: list[dict[str, Any]]) -> None:
    for number in range(120):
        account.group(f"n{number:03d}", size=0, tags={"troop:unit": "many"})
    requests.clear()
    assert len(read_members(account.autoscaling, "many", ())) == 120
    assert len(requests) == 3
