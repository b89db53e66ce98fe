"""The nodes that a planned fault hits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.definition import Phase
from troop.bench.definition.planned_fault import PlannedFault
from troop.bench.definition.roster import Node, make_roster
from troop.bench.definition.victims import victims

MEASURE = Phase("measure", ("drivers",), "load.py", 600, start_together=True, measured=300)
NODES = [
    *(Node(f"i-d{n}", "drivers", "ab"[n]) for n in range(2)),
    *(Node(f"i-s{n}", "servers", "abc"[n % 3]) for n in range(6)),
    *(Node(f"i-w{n}", "web", "bc"[n]) for n in range(2)),
]
ROSTER = make_roster(NODES)

CHOSEN = [
    (PlannedFault(60, "stop", "servers"), "i-s5", "stop 1 of servers"),
    (PlannedFault(60, "stop", "servers", count=3), "i-s5 i-s4 i-s3", "stop 3 of servers"),
    (PlannedFault(60, "cut", "servers", zone=2, lasts=9), "i-s4 i-s1", "cut all of servers in zone 2"),
    (PlannedFault(60, "cut", "servers", zone=2, count=1, lasts=9), "i-s4", "cut 1 of servers in zone 2"),
    (PlannedFault(60, "crash", zone=2), "i-s4 i-s1 i-w0", "crash zone 2"),
    (PlannedFault(60, "crash", "web", zone=1), "i-w0", "crash all of web in zone 1"),
    (PlannedFault(60, "script", "web", script="off.py"), "i-w1", "run off.py on 1 of web"),
    (PlannedFault(60, "crash", unit="shop"), "", "crash an instance of shop"),
    (PlannedFault(60, unit="shop"), "", "hit an instance of shop"),
]


@pytest.mark.parametrize(("fault", "ids", "text"), CHOSEN)
def test_a_fault_hits_these_and_says_so(fault: PlannedFault, ids: str, text: str) -> None:
    assert " ".join(one.id for one in victims(fault, ROSTER, MEASURE)) == ids
    assert fault.text == text


EARLIER = [
    ("crash", "stop", "i-s4", "i-s2 i-w1"),
    ("crash", "script", "i-s4", "i-s2 i-w1"),
    ("stop", "stop", "i-s4", "i-s2 i-w1"),
    ("stop", "pause", "i-s4", "i-s2 i-w1"),
    ("stop", "script", "i-s5", "i-s2 i-w1"),
    ("pause", "stop", "i-s5", "i-s2 i-w1"),
    ("pause", "pause", "i-s5", "i-s5 i-s2 i-w1"),
    ("script", "crash", "i-s5", "i-s2 i-w1"),
]


@pytest.mark.parametrize(("first", "second", "hit", "later"), EARLIER)
def test_nodes_that_earlier_faults_have_ended_are_not_hit_again(first: str, second: str, hit: str, later: str) -> None:
    methods = ((first, "servers", None), (second, "servers", None), ("cut", None, 3))
    faults = tuple(PlannedFault(n, method, role, zone=zone) for n, (method, role, zone) in enumerate(methods))
    phase = replace(MEASURE, faults=faults)
    chosen = [" ".join(one.id for one in victims(fault, ROSTER, phase)) for fault in faults]
    assert chosen == ["i-s5", hit, later]


@pytest.mark.parametrize(
    ("count", "zone", "later"), [(5, None, 0), (4, None, 4), (2, 2, 0), (None, 2, 0), (None, 1, 2)]
)
def test_fewer_nodes_than_a_fault_is_to_hit_are_not_hit(count: int | None, zone: int | None, later: int) -> None:
    """They are not known before the release, because a zone can have nodes of any role."""
    faults = (PlannedFault(60, "crash", zone=2), PlannedFault(90, "stop", "servers", zone=zone, count=count))
    assert len(victims(faults[1], ROSTER, replace(MEASURE, faults=faults))) == later


@given(st.permutations(NODES), st.sampled_from([fault for fault, _, _ in CHOSEN]))
def test_the_same_nodes_are_hit_in_whatever_order_they_are_known(nodes: list[Node], fault: PlannedFault) -> None:
    assert victims(fault, make_roster(nodes), MEASURE) == victims(fault, ROSTER, MEASURE)


@given(st.integers(1, 6), st.integers(1, 3))
def test_more_victims_are_those_of_fewer_and_others(count: int, zone: int) -> None:
    def hit(count: int) -> tuple[str, ...]:
        return tuple(one.id for one in victims(PlannedFault(0, "stop", "servers", count=count), ROSTER, MEASURE))

    assert hit(count) == hit(6)[:count]
    assert {one.zone for one in victims(PlannedFault(0, "crash", zone=zone), ROSTER, MEASURE)} == {"abc"[zone - 1]}
