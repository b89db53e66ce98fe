"""Ranks of a standing fleet's nodes: one node has one rank, and a replacement takes over the rank of a lost node."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troop.bench.definition.roster import Node
from troop.bench.fleets import ranks
from troop.bench.fleets.ranks import Ranks, assign, is_settled

DESIRED = {"servers": 3}


def node(name: str, zone: str = "a", role: str = "servers") -> Node:
    return Node(name, role, zone, f"10.0.0.{name}", "i4i.xlarge")


def seats(state: Ranks) -> list[tuple[int, str, bool, str]]:
    return [(seat.rank, seat.id, seat.is_present, seat.predecessor) for seat in state.seats]


FULL = assign(Ranks(), DESIRED, [node("1", "a"), node("2", "b"), node("3", "c")])


def test_ranks_begin_when_all_nodes_are_there() -> None:
    early = assign(Ranks(), DESIRED, [node("1"), node("2")])
    assert early == Ranks()
    nodes = [node("1", "a"), node("2", "a"), node("3", "b"), node("4", "b")]
    full = assign(early, {"servers": 4}, nodes)
    assert full.is_complete
    assert [(seat.zone, seat.id) for seat in full.seats] == [("a", "1"), ("b", "3"), ("a", "2"), ("b", "4")]
    assert not assign(Ranks(), {**DESIRED, "drivers": 1}, nodes).is_complete


def test_a_replacement_has_the_rank_of_the_lost_node_and_its_address() -> None:
    lost = assign(FULL, DESIRED, [node("1", "a"), node("3", "c")])
    assert seats(lost) == [(0, "1", True, ""), (1, "2", False, ""), (2, "3", True, "")]
    assert not is_settled(lost, DESIRED)
    replaced = assign(lost, DESIRED, [node("1", "a"), node("3", "c"), node("9", "b")])
    assert seats(replaced) == [(0, "1", True, ""), (1, "9", True, "10.0.0.2"), (2, "3", True, "")]
    assert is_settled(replaced, DESIRED)
    assert assign(replaced, DESIRED, [node("1", "a"), node("3", "c"), node("9", "b")]) == replaced


def test_a_replacement_stays_in_its_zone_if_it_can() -> None:
    lost = assign(FULL, DESIRED, [node("1", "a")])
    both = assign(lost, DESIRED, [node("1", "a"), node("8", "c"), node("9", "b")])
    assert seats(both)[1:] == [(1, "9", True, "10.0.0.2"), (2, "8", True, "10.0.0.3")]
    elsewhere = assign(lost, DESIRED, [node("1", "a"), node("8", "c")])
    assert seats(elsewhere)[1:] == [(1, "8", True, "10.0.0.2"), (2, "3", False, "")]


def test_a_node_that_was_away_has_its_rank_again_unless_another_one_took_it() -> None:
    lost = assign(FULL, DESIRED, [node("1", "a"), node("3", "c")])
    assert assign(lost, DESIRED, [node("1", "a"), node("2", "b"), node("3", "c")]) == FULL
    replaced = assign(lost, DESIRED, [node("1", "a"), node("3", "c"), node("9", "b")])
    late = assign(replaced, DESIRED, [node("1", "a"), node("2", "b"), node("3", "c"), node("9", "b")])
    assert late == replaced


def test_a_node_without_an_address_keeps_its_rank_but_gets_none() -> None:
    """EC2's answers may omit an instance for a moment."""
    nodes = [node("1", "a"), Node("2", "servers"), node("3", "c")]
    assert assign(Ranks(), DESIRED, nodes) == Ranks()
    assert assign(FULL, DESIRED, [*nodes, node("9", "b")]) == FULL
    lost = assign(FULL, DESIRED, [node("1", "a"), node("3", "c")])
    assert assign(lost, DESIRED, [node("1", "a"), node("3", "c"), Node("9", "servers")]) == lost


def test_ranks_follow_the_size() -> None:
    nodes = [node("1", "a"), node("2", "b"), node("3", "c"), node("4", "a")]
    grown = assign(FULL, {"servers": 4}, nodes)
    assert seats(grown)[3] == (3, "4", True, "")
    shrunk = assign(grown, {"servers": 2}, nodes)
    assert [seat.rank for seat in shrunk.seats] == [0, 1, 2, 3], "a node keeps its rank until it is gone"
    assert seats(assign(shrunk, {"servers": 2}, nodes[:2])) == [(0, "1", True, ""), (1, "2", True, "")]
    assert seats(assign(shrunk, {"servers": 2}, nodes[2:])) == [
        (0, "1", False, ""),
        (1, "2", False, ""),
        (2, "3", True, ""),
        (3, "4", True, ""),
    ]


def test_seat_retains_the_size_of_its_role_when_the_size_changes() -> None:
    """A token, for example, follows from both, and must not move."""
    nodes = [node(str(n), "abc"[n % 3]) for n in range(1, 8)]
    state = FULL
    for count, there in [(6, nodes[:6]), (6, nodes[1:]), (2, nodes[1:]), (2, nodes[1:3]), (4, nodes[:4])]:
        state = assign(state, {"servers": count}, there)
        assert {seat.of for seat in state.seats if seat.rank < 2} == {3}
    assert [(seat.rank, seat.of) for seat in state.seats] == [(0, 3), (1, 3), (2, 3), (3, 4)]
    document = ranks.to_document(FULL)
    for one in document["nodes"]:
        del one["of"]
    old = ranks.from_document(document)
    assert [seat.of for seat in assign(old, DESIRED, nodes[:3]).seats] == [3, 3, 3], "as of an earlier version"


def test_the_document_is_the_ranks() -> None:
    lost = assign(FULL, DESIRED, [node("1", "a"), node("9", "c")])
    assert ranks.from_document(json.loads(json.dumps(ranks.to_document(lost)))) == lost


CHANGES = st.lists(st.sets(st.integers(0, 7), max_size=6), min_size=1, max_size=12)


@settings(max_examples=200)
@given(CHANGES, st.integers(1, 4))
def test_no_rank_has_two_nodes_and_no_node_two_ranks(changes: list[set[int]], count: int) -> None:
    """Whatever nodes come and go, also the same ones again."""
    state, desired = Ranks(), {"servers": count}
    for there in changes:
        before, state = state, assign(state, desired, [node(str(n), "abc"[n % 3]) for n in sorted(there)])
        own = [seat for seat in state.seats if seat.is_present]
        assert len({seat.rank for seat in state.seats}) == len(state.seats)
        assert len({seat.id for seat in state.seats}) == len(state.seats)
        assert {seat.id for seat in own} <= {str(n) for n in there}
        for old in before.seats:
            if old.is_present and int(old.id) in there:
                assert old in own, "a node keeps its rank while it is there"
        if state.is_complete:
            vacant = [seat for seat in state.seats if not seat.is_present]
            assert not vacant or len(own) == len(there), "a rank stays vacant only if no node waits"


@pytest.mark.parametrize("count", [0, 1])
def test_a_role_without_nodes_needs_no_ranks(count: int) -> None:
    only = assign(Ranks(), {"servers": 1, "drivers": count}, [node("1")])
    assert only.is_complete is (count == 0)
