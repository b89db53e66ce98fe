"""Which zones there are to choose from, and that subnets keep theirs whatever the region has gained or lost."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.shared import aws
from cli.shared.errors import CliError
from lifecycle.zones import choose_zones, zones_available

ZONES = [f"eu-west-1{letter}" for letter in "abcdef"]


@given(
    count=st.integers(1, 6), there=st.lists(st.sampled_from(ZONES), unique=True), has=st.sets(st.sampled_from(ZONES))
)
def test_no_subnet_ever_moves_and_no_zone_has_two(count: int, there: list[str], has: set[str]) -> None:
    places = dict(enumerate(there))
    if not there and not has:
        with pytest.raises(CliError, match="no availability zone"):
            choose_zones(count, places, has, "eu-west-1")
        return
    chosen = choose_zones(count, places, has, "eu-west-1")
    assert list(chosen[: len(there)]) == there[:count]
    assert len(set(chosen)) == len(chosen) == min(count, len({*there, *has}) if len(there) < count else count)
    assert set(chosen) <= {*there, *has}


def test_a_subnet_that_is_gone_leaves_the_others_where_they_are() -> None:
    assert choose_zones(3, {0: ZONES[0], 2: ZONES[1]}, ZONES[:3], "eu-west-1") == (ZONES[0], ZONES[2], ZONES[1])


def test_only_zones_that_take_subnets_count_and_first_those_that_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def zone(name: str, **other: str) -> dict[str, str]:
        return {"ZoneName": name, "State": "available", "OptInStatus": "opt-in-not-required"} | other

    class Ec2:
        def describe_availability_zones(self) -> dict[str, Any]:
            zones = [
                zone("us-west-2a", ZoneType="availability-zone"),
                zone("us-west-2b", State="unavailable"),
                zone("us-west-2c", OptInStatus="not-opted-in"),
                zone("us-west-2d", OptInStatus="opted-in"),
                zone("us-west-2-lax-1a", ZoneType="local-zone", OptInStatus="opted-in"),
                zone("us-west-2-wl1-las-wlz-1", ZoneType="wavelength-zone", OptInStatus="opted-in"),
            ]
            return {"AvailabilityZones": zones}

        def describe_subnets(self, Filters: list[dict[str, Any]]) -> dict[str, Any]:
            assert Filters == [{"Name": "default-for-az", "Values": ["true"]}]
            return {"Subnets": [{"AvailabilityZone": "us-west-2d"}, {"AvailabilityZone": "us-west-2b"}]}

    monkeypatch.setattr(aws, "client", lambda *_: Ec2())
    assert zones_available(boto3.Session()) == ["us-west-2d", "us-west-2a"]
