"""Registrations and the roster."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.roster import UNKNOWN_UNCERTAINTY, Node, from_document, make_roster, parse_node, to_document

GOOD: dict[str, Any] = {
    "format": "troop.node/1",
    "id": "i-1",
    "role": "drivers",
    "clock": {"offset_seconds": -3, "uncertainty_seconds": 0.2},
}

nodes = st.lists(
    st.builds(
        Node,
        id=st.integers(0, 10_000).map("i-{:05d}".format),
        role=st.sampled_from(["drivers", "servers"]),
        zone=st.sampled_from(["a", "b", "c"]),
        address=st.just("10.0.0.1"),
        instance_type=st.just("c5.large"),
        clock_uncertainty=st.floats(0, 100),
    ),
    unique_by=lambda node: node.id,
    max_size=60,
)


def test_a_registration_is_read() -> None:
    assert parse_node("i-1", GOOD) == Node("i-1", "drivers", clock_uncertainty=0.2)
    assert parse_node("i-1", GOOD | {"clock": None}).clock_uncertainty == UNKNOWN_UNCERTAINTY


def test_ec2_says_where_a_node_is_and_what() -> None:
    forged = GOOD | {"zone": "z", "address": "10.9.9.9", "instance_type": "x1.32xlarge", "purchase": "spot"}
    instance = {"Placement": {"AvailabilityZone": "a"}, "PrivateIpAddress": "10.0.0.1", "InstanceType": "c5.large"}
    node = Node("i-1", "drivers", "a", "10.0.0.1", "c5.large", "on-demand", 0.2)
    assert parse_node("i-1", forged).located(instance) == node
    assert node.located(instance | {"InstanceLifecycle": "spot"}).purchase == "spot"


def test_an_agent_that_gives_up_says_why_and_need_say_no_more() -> None:
    document = {"format": "troop.node/1", "id": "i-1", "role": "drivers", "error": "x" * 5000}
    node = parse_node("i-1", document)
    assert node.role == "drivers"
    assert node.error == "x" * 1000


@pytest.mark.parametrize(
    "bad",
    [
        None, [], 7, "text", {}, GOOD | {"id": "i-2"}, GOOD | {"format": "troop.node/2"}, GOOD | {"role": 7},
        GOOD | {"clock": 7}, GOOD | {"clock": {}}, GOOD | {"clock": {"uncertainty_seconds": "x"}},
        GOOD | {"clock": {"uncertainty_seconds": float("nan")}}, GOOD | {"clock": {"uncertainty_seconds": -1}},
        GOOD | {"clock": {"uncertainty_seconds": float("inf")}},
        {key: value for key, value in GOOD.items() if key != "role"},
    ],
)  # fmt: skip
def test_a_registration_that_cannot_be_read_is_a_node_with_an_error(bad: Any) -> None:
    node = parse_node("i-1", bad)
    assert node.id == "i-1"
    assert node.error


@given(nodes, st.randoms(use_true_random=False))
def test_ranks_are_stable_dense_and_spread_over_zones(nodes: list[Node], dice: random.Random) -> None:
    roster = make_roster(nodes)
    shuffled = list(nodes)
    dice.shuffle(shuffled)
    assert make_roster(shuffled) == roster
    assert roster.ids() == {node.id for node in nodes}
    for role in ("drivers", "servers"):
        members = [m for m in roster.members if m.role == role]
        assert [m.rank for m in members] == list(range(len(members)))
        assert roster.ids([role]) == {m.id for m in members}
        sizes = Counter(m.zone for m in members)
        zones = sorted(sizes)
        even = min(sizes.values(), default=0) * len(zones)
        assert [m.zone for m in members[:even]] == [zones[i % len(zones)] for i in range(even)]
        for zone in zones:
            ids = [m.id for m in members if m.zone == zone]
            assert ids == sorted(ids)


@given(nodes)
def test_a_stored_roster_comes_back_as_it_was(nodes: list[Node]) -> None:
    roster = make_roster(nodes)
    assert from_document(json.loads(json.dumps(to_document(roster)))) == roster


def test_the_worst_clock_counts() -> None:
    nodes = [Node("i-1", "r", clock_uncertainty=0.1), Node("i-2", "r", clock_uncertainty=0.7)]
    assert make_roster(nodes).clock_uncertainty == 0.7
