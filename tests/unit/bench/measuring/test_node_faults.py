"""Which losses of nodes planned faults explain, by what nodes say and barriers plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.build import ALL, MEASURE, ROSTER, step
from troop.bench.measuring.node_faults import FaultState, NodeFault, announced, carried, excused, parse
from troop.bench.measuring.verdicts import State, step_verdict
from troop.bench.records.record import CellStatus

NODES = sorted(ALL)
CRASHED = {"number": 1, "method": "crash", "begin_at": 100.0, "end_at": None, "nodes": ["i-s0"]}
PAUSED = {"number": 2, "method": "pause", "begin_at": 150.0, "end_at": 160.0, "nodes": ["i-s1"]}


def fault(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {"number": number, "method": "crash", "state": state, "begin_at": 0.0, **more}


def document(*faults: dict[str, Any], node: str = "i-s0", **more: Any) -> dict[str, Any]:
    return {"format": "troop.fault/1", "id": node, "role": "servers", "phase": "measure", "faults": [*faults], **more}


states = st.sampled_from([*FaultState])
few, moments = st.sampled_from(NODES[:2]), st.integers(0, 3)
reports = st.dictionaries(
    few,
    st.dictionaries(
        st.integers(1, 3), st.builds(NodeFault, states, why=st.sampled_from([None, "no process", "could not undo: x"]))
    ),
)
planned = st.lists(
    st.builds(
        lambda number, method, begin_at, nodes: {
            "number": number, "method": method, "begin_at": begin_at, "nodes": nodes,
        },
        st.integers(1, 3),
        st.sampled_from(["crash", "stop", "pause", "cut"]),
        moments,
        st.lists(few, unique=True),
    ),
    max_size=4,
    unique_by=lambda fault: fault["number"],
)  # fmt: skip
missing_nodes = st.dictionaries(few, moments)


def naively(node: str, since: int, faults: list[Any], stated: Any) -> bool:
    """One node is excused if one planned fault, on it and begun, is a crash it has announced, or one it cannot end."""
    for fault in faults:
        if node in fault["nodes"] and since >= fault["begin_at"]:
            its = stated.get(node, {}).get(fault["number"])
            if its is None:
                continue
            if fault["method"] == "crash" and its.state != "FAILED":
                return True
            if (its.why or "").startswith("could not undo"):
                return True
    return False


@given(planned, reports, missing_nodes)
def test_exactly_nodes_that_announced_a_planned_crash_are_excused(
    faults: list[Any], stated: Any, missing: dict[str, int]
) -> None:
    expected = {node for node, since in missing.items() if naively(node, since, faults, stated)}
    since = {node: float(moment) for node, moment in missing.items()}
    assert excused(since, announced(faults, stated)) == expected


@pytest.mark.parametrize(("since", "node"), [(99.999, set()), (100.0, {"i-s0"})])
def test_a_loss_is_excused_from_the_planned_moment_on(since: float, node: set[str]) -> None:
    stated = {"i-s0": {1: NodeFault(FaultState.PLANNED)}}
    assert excused({"i-s0": since}, announced([CRASHED], stated)) == node


@given(st.sets(st.sampled_from(NODES)), st.sets(st.sampled_from(NODES)), st.sets(st.sampled_from(NODES)))
def test_only_losses_that_nothing_excuses_make_a_cell_invalid(
    missing: set[str], excusable: set[str], present: set[str]
) -> None:
    live, gone = ALL - missing, frozenset(missing & excusable)
    verdict = step_verdict(step(MEASURE), ROSTER, live, frozenset(present), [], 10, excused=gone)
    expected = ROSTER.ids(MEASURE.roles) - gone
    if missing - excusable:
        assert verdict.status is CellStatus.INVALID
        assert not any(node in (verdict.reason or "").partition(" lost")[0] for node in gone)
    else:
        assert verdict.state is (State.NEXT if expected <= present else State.WAITING)


def test_spot_that_takes_a_node_back_is_excused_by_no_crash() -> None:
    """Spot announces it before the node is gone, so the node was not lost by the fault alone."""
    gone = frozenset({"i-s0"})
    verdict = step_verdict(step(MEASURE), ROSTER, ALL - gone, ALL, [], 10, interrupted=gone, excused=gone)
    assert verdict.status is CellStatus.INVALID


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        document(fault(1, "PLANNED"), format="troop.fault/9"),
        document(fault(1, "PLANNED"), node="i-other"),
        document(fault(1, "PLANNED"), phase="measure.2"),
        document(fault(1, "EXPLODED")),
        document({"state": "PLANNED"}),
        document(fault(1, "BEGUN", began_at="soon")),
        document(fault(1, "BEGUN", began_at=float("nan"))),
        document(fault(1, "BEGUN", began_at=True)),
        {**document(), "faults": 7},
    ],
)
def test_other_documents_of_nodes_say_nothing(wrong: Any) -> None:
    assert parse("i-s0", "measure", wrong) == {}


def test_reasons_of_nodes_are_short_and_without_credentials() -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    (one,) = parse("i-s0", "measure", document(fault(1, "FAILED", why=f"{key} {'x ' * 2000}"))).values()
    assert one.why is not None
    assert (key in one.why, len(one.why)) == (False, 1000)


def test_a_crashed_node_began_as_planned_and_is_done() -> None:
    own = {"i-s0": {1: NodeFault(FaultState.PLANNED)}}
    after = carried(CRASHED, own, {"i-s0"})
    assert (after.nodes, after.why) == ({"i-s0": NodeFault(FaultState.DONE, 100.0)}, None)
    still_there = carried(CRASHED, own, set())
    assert (still_there.unfinished, still_there.why) == (("i-s0",), "i-s0 did not say how it went")


@pytest.mark.parametrize(
    ("own", "why"),
    [
        (NodeFault(FaultState.DONE, 150.1, 160.2), None),
        (NodeFault(FaultState.FAILED, why="no process"), "i-s1: no process"),
        (NodeFault(FaultState.BEGUN, 150.1, why="could not undo: x"), "i-s1: could not undo: x"),
        (NodeFault(FaultState.BEGUN, 150.1), "i-s1 did not say how it went"),
        (None, "i-s1 did not say how it went"),
    ],
)
def test_a_fault_has_failed_unless_all_of_its_nodes_have_ended_it(own: NodeFault | None, why: str | None) -> None:
    assert carried(PAUSED, {"i-s1": {2: own} if own else {}}, {"i-s1"}).why == why


def test_a_fault_that_finds_no_node_has_failed() -> None:
    assert carried({**PAUSED, "nodes": []}, {}, set()).why == "fewer nodes are left than it is to hit"
