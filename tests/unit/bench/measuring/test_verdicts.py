"""What a look at a cell means."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.build import ALL, DRIVER_IDS, MEASURE, PREPARE, ROSTER, step
from troop.bench.measuring.verdicts import (
    GRACE,
    LONGEST_REASON,
    NodeOutcome,
    State,
    Verdict,
    closed_verdict,
    error_text,
    run_verdict,
    step_verdict,
    with_output,
)
from troop.bench.records.record import Cell, CellStatus, Run, RunStatus

NOW = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)
RUN = Run("r", "ranges", NOW, NOW + timedelta(hours=2), "arn:me", 1, 5)

subsets = st.sets(st.sampled_from(sorted(ALL))).map(frozenset)


@given(subsets, subsets, st.sampled_from([PREPARE, MEASURE]), st.floats(0, 2000))
def test_phase_is_done_only_when_all_live_nodes_of_its_roles_are(
    live: frozenset[str], present: frozenset[str], phase: Any, elapsed: float
) -> None:
    expected = ROSTER.ids(phase.roles)
    outcomes = [NodeOutcome(i, "ok") for i in present]
    verdict = step_verdict(step(phase), ROSTER, live, present, outcomes, elapsed)
    if live != ALL:
        assert (verdict.state, verdict.status) == (State.FAILED, CellStatus.INVALID)
    elif expected <= present:
        assert verdict == Verdict(State.NEXT)
    else:
        assert verdict.state is (State.FAILED if elapsed >= 600 + GRACE else State.WAITING)


@pytest.mark.parametrize("phase", [PREPARE, MEASURE])
@pytest.mark.parametrize("there", [True, False])
def test_spot_interruption_makes_a_cell_invalid_in_any_phase(phase: Any, there: bool) -> None:
    """Told by the node that it will, before it is gone, or by EC2 that it has; in its summary, or beside it."""
    live = ALL if there else ALL - {"i-s0"}
    bad = [NodeOutcome("i-d1", "failed", "the server is gone"), NodeOutcome("i-s0", "lost", "x", interrupted=True)]
    for outcomes, taken in ((bad[:1], frozenset({"i-s0"})), (bad, frozenset[str]())):
        verdict = step_verdict(step(phase), ROSTER, live, ALL, outcomes, 10, taken)
        assert (verdict.state, verdict.status) == (State.FAILED, CellStatus.INVALID)
        assert verdict.reason == f"spot took i-s0 back during the phase {phase.name}"


def test_a_stranger_that_spot_takes_back_is_nobodys_loss() -> None:
    assert step_verdict(step(MEASURE), ROSTER, ALL, frozenset(), [], 10, frozenset({"i-old"})).state is State.WAITING


def test_a_summary_may_come_a_little_after_the_time_is_up() -> None:
    """The agent ends the script at its time-out, and says so itself."""
    for elapsed, state in ((599, State.WAITING), (600 + GRACE - 1, State.WAITING), (600 + GRACE, State.FAILED)):
        assert step_verdict(step(MEASURE), ROSTER, ALL, frozenset(), [], elapsed).state is state


@pytest.mark.parametrize("outcome", ["failed", "timed-out", "lost", "anything"])
def test_one_bad_outcome_is_enough(outcome: str) -> None:
    outcomes = [NodeOutcome(i, "ok") for i in DRIVER_IDS - {"i-d1"}] + [NodeOutcome("i-d1", outcome, "why")]
    verdict = step_verdict(step(MEASURE), ROSTER, ALL, DRIVER_IDS, outcomes, 10)
    status = CellStatus.INVALID if outcome == "lost" else CellStatus.FAILED
    assert (verdict.state, verdict.status, verdict.nodes) == (State.FAILED, status, ("i-d1",))
    assert verdict.reason == f"read.py failed on 1 node in the phase measure: i-d1 {outcome}: why"


def test_who_was_lost_makes_the_cell_invalid_whatever_else_failed_of_it() -> None:
    """What goes wrong on others is most often its consequence, and comes after it."""
    outcomes = [NodeOutcome("i-d0", "failed", "no host"), NodeOutcome("i-d1", "lost", "the server has died")]
    for phase in (MEASURE, replace(MEASURE, measured=0)):
        verdict = step_verdict(step(phase), ROSTER, ALL, frozenset({"i-d0", "i-d1"}), outcomes, 10)
        assert (verdict.state, verdict.status, verdict.nodes) == (State.FAILED, CellStatus.INVALID, ("i-d1", "i-d0"))
        assert "2 nodes in the phase measure: i-d1 lost: the server has died; i-d0" in (verdict.reason or "")


def test_a_lost_node_that_could_say_why_is_quoted() -> None:
    """A node that rebooted reports it, and shuts down."""
    outcomes = [NodeOutcome("i-d1", "lost", "the node rebooted")]
    verdict = step_verdict(step(MEASURE), ROSTER, ALL - {"i-d1"}, frozenset({"i-d1"}), outcomes, 10)
    assert verdict.reason == "i-d1 was lost during the phase measure: the node rebooted"


def test_who_takes_no_part_cannot_fail_a_phase() -> None:
    outcomes = [NodeOutcome(i, "ok") for i in DRIVER_IDS] + [
        NodeOutcome("i-s0", "failed"),
        NodeOutcome("i-x", "failed"),
    ]
    assert step_verdict(step(MEASURE), ROSTER, ALL, DRIVER_IDS, outcomes, 10).state is State.NEXT


@pytest.mark.parametrize(
    ("statuses", "ended"),
    [
        (["SUCCEEDED"], RunStatus.SUCCEEDED),
        (["SUCCEEDED", "SUCCEEDED"], RunStatus.SUCCEEDED),
        (["SUCCEEDED", "INVALID"], RunStatus.PARTIAL),
        (["INVALID"], RunStatus.FAILED),
        (["FAILED", "STOPPED"], RunStatus.FAILED),
        (["RUNNING"], RunStatus.FAILED),
        ([], RunStatus.FAILED),
    ],
)
def test_a_run_is_what_its_cells_are(statuses: list[str], ended: RunStatus) -> None:
    cells = [Cell("r", f"c00{n}", CellStatus(status), reason="why") for n, status in enumerate(statuses)]
    status, reason = run_verdict(RUN, cells)
    assert status is ended
    assert (reason is None) == (ended is RunStatus.SUCCEEDED)


def test_reason_names_some_of_many_cells_and_counts_all() -> None:
    cells = [Cell("r", f"c{n:03d}", CellStatus.FAILED, reason="r" * 2000) for n in range(1, 10)]
    cells.append(Cell("r", "c010", CellStatus.SUCCEEDED))
    status, reason = run_verdict(RUN, cells)
    assert (status, len(reason or "") <= LONGEST_REASON) == (RunStatus.PARTIAL, True)
    assert reason is not None
    assert reason.startswith("1 of 10 cells succeeded; c001 FAILED: rrr")
    assert [name in reason for name in ("c005", "c006")] == [True, False]
    assert reason.endswith("; and 4 more")
    alone = replace(cells[0], reason="r" * 1900)
    assert run_verdict(RUN, [alone]) == (RunStatus.FAILED, f"c001 FAILED: {alone.reason}")


def test_a_run_that_was_closed_ends_as_it_was_closed() -> None:
    closed = replace(RUN, closed_at=NOW, outcome=RunStatus.STOPPED, reason="by hand")
    assert run_verdict(closed, [Cell("r", "c001", CellStatus.SUCCEEDED)]) == (RunStatus.STOPPED, "by hand")
    assert closed_verdict(closed, NOW) == Verdict(State.FAILED, CellStatus.STOPPED, "by hand")
    assert closed_verdict(RUN, NOW) is None
    assert closed_verdict(RUN, RUN.expires_at) is not None


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        ('{"errorMessage": "no such key", "errorType": "KeyError", "stackTrace": ["x"]}', "E: no such key"),
        ("plain", "E: plain"),
        ("", "E"),
        ("{}", "E: {}"),
        ('{"errorMessage": "cut in the mid', 'E: {"errorMessage": "cut in the mid'),
        ("[]", "E: []"),
        ("7", "E: 7"),
    ],
)
def test_an_error_becomes_a_sentence(cause: str, expected: str) -> None:
    assert error_text("E", cause) == expected
    assert len(error_text("E", json.dumps({"errorMessage": "m" * 50_000}))) == LONGEST_REASON


def test_a_reason_with_output_is_bounded() -> None:
    assert with_output("why", "i-1", "") == "why"
    assert with_output("why", "i-1", "last") == "why\nlast lines of i-1:\nlast"
    assert len(with_output("w" * 1500, "i-1", "x" * 1500)) <= LONGEST_REASON


def test_a_node_lost_between_points_makes_the_cell_invalid() -> None:
    between = replace(step(PREPARE), is_between=True)
    verdict = step_verdict(between, ROSTER, ALL - {"i-s0"}, frozenset(), [], 10)
    assert (verdict.state, verdict.status) == (State.FAILED, CellStatus.INVALID)
    bad = [NodeOutcome("i-d1", "failed", "no such file")]
    assert step_verdict(between, ROSTER, ALL, ALL, bad, 10).status is CellStatus.FAILED, "as in any other phase"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_only_nodes_within_the_limit_of_a_point_are_waited_for(count: int) -> None:
    limited = replace(step(MEASURE), limits={"drivers": count})
    taking_part = ROSTER.ids(["drivers"], {"drivers": count})
    assert {m.rank for m in ROSTER.members if m.id in taking_part} == set(range(count))
    assert step_verdict(limited, ROSTER, ALL, taking_part, [], 10).state is State.NEXT
    assert step_verdict(limited, ROSTER, ALL, taking_part - {min(taking_part)}, [], 10).state is State.WAITING
    others = [NodeOutcome(i, "failed") for i in DRIVER_IDS - taking_part]
    assert step_verdict(limited, ROSTER, ALL, taking_part, others, 10).state is State.NEXT, "they do not take part"
    assert step_verdict(limited, ROSTER, ALL - DRIVER_IDS, taking_part, [], 10).state is State.FAILED, (
        "but they must live"
    )
