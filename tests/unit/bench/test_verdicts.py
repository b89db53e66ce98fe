"""What a look at a cell means."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.build import ALL, BENCHMARK, DRIVER_IDS, MEASURE, NODES, PREPARE, ROSTER, SEEN
from troop.bench.record import Cell, CellStatus, Run, RunStatus
from troop.bench.roster import Node
from troop.bench.verdicts import (
    GRACE,
    LONGEST_REASON,
    FleetSeen,
    NodeOutcome,
    State,
    Verdict,
    is_permanent,
    name_some,
    of_boot,
    of_closed,
    of_error,
    of_phase,
    of_run,
    with_output,
)

NOW = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)
RUN = Run("r", "ranges", NOW, NOW + timedelta(hours=2), "arn:me", 1, 5)

subsets = st.sets(st.sampled_from(sorted(ALL))).map(frozenset)


def boot(seen: Any = SEEN, nodes: Any = None, elapsed: float = 0) -> Verdict:
    return of_boot(BENCHMARK, seen, NODES if nodes is None else nodes, elapsed)


def without(*ids: str) -> dict[str, Node]:
    return {i: node for i, node in NODES.items() if i not in ids}


@given(subsets, subsets, st.floats(0, 10_000))
def test_all_are_there_exactly_when_every_serving_id_has_registered(
    serving: frozenset[str], registered: frozenset[str], elapsed: float
) -> None:
    seen = [FleetSeen(f.role, f.serving & serving, f.serving - serving) for f in SEEN]
    verdict = boot(seen, {i: NODES[i] for i in registered}, elapsed)
    complete = serving == ALL and registered == ALL
    assert (verdict.state is State.READY) == complete
    if not complete:
        late = elapsed >= 600 or (elapsed >= 300 and not (serving & registered >= DRIVER_IDS))
        assert verdict.state is (State.FAILED if late else State.WAITING)


def test_a_fleet_in_fewer_zones_than_it_is_to_be_fails_its_cell() -> None:
    one_zone = {i: replace(node, zone="za") for i, node in NODES.items()}
    wide = replace(BENCHMARK, fleets=tuple(replace(fleet, zones=2) for fleet in BENCHMARK.fleets))
    verdict = of_boot(wide, SEEN, one_zone, 0)
    assert (verdict.state, verdict.status) == (State.FAILED, CellStatus.FAILED)
    assert "is in za alone, and not in 2 zones" in str(verdict.reason)
    spread = {i: replace(node, zone="za" if n % 2 else "zb") for n, (i, node) in enumerate(sorted(NODES.items()))}
    assert of_boot(wide, SEEN, spread, 0).state is State.READY


def test_as_many_are_not_the_same() -> None:
    """Three serve and three have registered, but not the same three."""
    seen = (FleetSeen("drivers", frozenset({"i-d0", "i-d1", "i-new"})), SEEN[1])
    assert boot(seen).state is State.WAITING


def test_a_node_of_another_role_does_not_fill_a_place() -> None:
    swapped = NODES | {"i-d0": replace(NODES["i-d0"], role="servers")}
    assert boot(nodes=swapped).state is State.WAITING


def test_what_is_gone_from_its_group_may_have_failed() -> None:
    assert boot(nodes=NODES | {"i-old": Node("i-old", "drivers", error="no disk")}).state is State.READY


def test_reasons_name_a_few_and_count_the_rest() -> None:
    broken = {i: replace(node, error="no\n disk " + "x" * 1000) for i, node in NODES.items()}
    reason = boot(nodes=broken).reason or ""
    assert reason.startswith("5 nodes could not start: i-d0: no disk xxx")
    assert "\n" not in reason
    assert len(reason) <= LONGEST_REASON
    assert name_some(f"i-{n}" for n in range(9)) == "i-0, i-1, i-2, i-3, i-4 and 4 others"
    assert name_some(f"i-{n}" for n in range(6)) == "i-0, i-1, i-2, i-3, i-4 and 1 other"


def test_a_late_fleet_is_told_with_who_is_silent_and_who_never_came() -> None:
    seen = (FleetSeen("drivers", frozenset({"i-d0", "i-d1"}), refusals=("no capacity",)), SEEN[1])
    verdict = boot(seen, without("i-d1"), 300)
    assert verdict == Verdict(
        State.FAILED,
        CellStatus.FAILED,
        "of 3 nodes in the fleet drivers, not all have registered within 300 s; i-d1 never did, see output/boot/; "
        "1 node was never launched: no capacity",
    )


@pytest.mark.parametrize(
    ("said", "permanent"),
    [
        ("You have requested more vCPU capacity than your current vCPU limit of 32 allows", True),
        ("VcpuLimitExceeded", True),
        ("VolumeLimitExceeded: Max volumes exceeded", True),
        ("You are not authorized to perform this operation.", True),
        ("The requested configuration is currently not supported. Please check the documentation", True),
        ("Client.InternalError: Client error on launch.", True),
        ("There are not enough free addresses in subnet 'subnet-1'", True),
        ("The image id '[ami-1]' does not exist. InvalidAMIID.NotFound", True),
        ("We currently do not have sufficient c5.large capacity in the Availability Zone you requested", False),
        ("InsufficientInstanceCapacity", False),
        ("Server.InternalError: Internal error on launch", False),
        ("RequestLimitExceeded: Request limit exceeded.", False),
    ],
)
def test_only_what_will_not_pass_ends_a_boot_early(said: str, permanent: bool) -> None:
    assert is_permanent(said) == permanent
    seen = (FleetSeen("drivers", frozenset({"i-d0", "i-d1"}), refusals=("on its way", said)), SEEN[1])
    verdict = boot(seen, without("i-d2"))
    assert verdict.state is (State.FAILED if permanent else State.WAITING)
    if permanent:
        assert said[:60] in (verdict.reason or "")


def test_a_group_that_is_not_seen_yet_is_waited_for() -> None:
    seen = (FleetSeen("drivers", frozenset(), exists=False), SEEN[1])
    assert boot(seen, elapsed=29).state is State.WAITING
    assert boot(seen, elapsed=30).reason == "somebody has deleted the Auto Scaling group of the fleet drivers"


@given(subsets, subsets, st.sampled_from([PREPARE, MEASURE]), st.floats(0, 2000))
def test_a_phase_is_done_exactly_when_all_live_and_all_of_its_roles_have_done_it(
    live: frozenset[str], present: frozenset[str], phase: Any, elapsed: float
) -> None:
    expected = ROSTER.ids(phase.roles)
    outcomes = [NodeOutcome(i, "ok") for i in present]
    verdict = of_phase(phase, ROSTER, live, present, outcomes, elapsed)
    if live != ALL:
        assert verdict.state is State.FAILED
        assert verdict.status is (CellStatus.INVALID if phase is MEASURE else CellStatus.FAILED)
    elif expected <= present:
        assert verdict == Verdict(State.NEXT)
    else:
        assert verdict.state is (State.FAILED if elapsed >= 600 + GRACE else State.WAITING)


@pytest.mark.parametrize("phase", [PREPARE, MEASURE])
@pytest.mark.parametrize("there", [True, False])
def test_what_spot_takes_back_makes_a_cell_invalid_in_any_phase(phase: Any, there: bool) -> None:
    """Told by the node that it will, before it is gone, or by EC2 that it has; in its summary, or beside it."""
    live = ALL if there else ALL - {"i-s0"}
    bad = [NodeOutcome("i-d1", "failed", "the server is gone"), NodeOutcome("i-s0", "lost", "x", interrupted=True)]
    for outcomes, taken in ((bad[:1], frozenset({"i-s0"})), (bad, frozenset[str]())):
        verdict = of_phase(phase, ROSTER, live, ALL, outcomes, 10, taken)
        assert (verdict.state, verdict.status) == (State.FAILED, CellStatus.INVALID)
        assert verdict.reason == f"spot took i-s0 back during the phase {phase.name}"


def test_a_stranger_that_spot_takes_back_is_nobodys_loss() -> None:
    assert of_phase(MEASURE, ROSTER, ALL, frozenset(), [], 10, frozenset({"i-old"})).state is State.WAITING


def test_a_summary_may_come_a_little_after_the_time_is_up() -> None:
    """The agent ends the script at its time-out, and says so itself."""
    for elapsed, state in ((599, State.WAITING), (600 + GRACE - 1, State.WAITING), (600 + GRACE, State.FAILED)):
        assert of_phase(MEASURE, ROSTER, ALL, frozenset(), [], elapsed).state is state


@pytest.mark.parametrize("outcome", ["failed", "timed-out", "lost", "anything"])
def test_one_bad_outcome_is_enough(outcome: str) -> None:
    outcomes = [NodeOutcome(i, "ok") for i in DRIVER_IDS - {"i-d1"}] + [NodeOutcome("i-d1", outcome, "why")]
    verdict = of_phase(MEASURE, ROSTER, ALL, DRIVER_IDS, outcomes, 10)
    status = CellStatus.INVALID if outcome == "lost" else CellStatus.FAILED
    assert (verdict.state, verdict.status, verdict.nodes) == (State.FAILED, status, ("i-d1",))
    assert verdict.reason == f"read.py went wrong on 1 node in the phase measure: i-d1 {outcome}: why"


def test_who_was_lost_while_measuring_makes_the_cell_invalid_whatever_else_failed_of_it() -> None:
    """What goes wrong on others is most often its consequence, and comes after it."""
    outcomes = [NodeOutcome("i-d0", "failed", "no host"), NodeOutcome("i-d1", "lost", "the server has died")]
    for phase, status in ((MEASURE, CellStatus.INVALID), (replace(MEASURE, measured=0), CellStatus.FAILED)):
        verdict = of_phase(phase, ROSTER, ALL, frozenset({"i-d0", "i-d1"}), outcomes, 10)
        assert (verdict.state, verdict.status, verdict.nodes) == (State.FAILED, status, ("i-d1", "i-d0"))
        assert "2 nodes in the phase measure: i-d1 lost: the server has died; i-d0" in (verdict.reason or "")


def test_who_takes_no_part_cannot_fail_a_phase() -> None:
    outcomes = [NodeOutcome(i, "ok") for i in DRIVER_IDS] + [
        NodeOutcome("i-s0", "failed"),
        NodeOutcome("i-x", "failed"),
    ]
    assert of_phase(MEASURE, ROSTER, ALL, DRIVER_IDS, outcomes, 10).state is State.NEXT


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
    status, reason = of_run(RUN, cells)
    assert status is ended
    assert (reason is None) == (ended is RunStatus.SUCCEEDED)


def test_of_many_cells_some_are_named_and_all_are_counted() -> None:
    cells = [Cell("r", f"c{n:03d}", CellStatus.FAILED, reason="r" * 2000) for n in range(1, 10)]
    cells.append(Cell("r", "c010", CellStatus.SUCCEEDED))
    status, reason = of_run(RUN, cells)
    assert (status, len(reason or "") <= LONGEST_REASON) == (RunStatus.PARTIAL, True)
    assert reason is not None
    assert reason.startswith("1 of 10 cells succeeded; c001 FAILED: rrr")
    assert [name in reason for name in ("c005", "c006")] == [True, False]
    assert reason.endswith("; and 4 more")
    alone = replace(cells[0], reason="r" * 1900)
    assert of_run(RUN, [alone]) == (RunStatus.FAILED, f"c001 FAILED: {alone.reason}")


def test_a_run_that_was_closed_ends_as_it_was_closed() -> None:
    closed = replace(RUN, closed_at=NOW, outcome=RunStatus.STOPPED, reason="by hand")
    assert of_run(closed, [Cell("r", "c001", CellStatus.SUCCEEDED)]) == (RunStatus.STOPPED, "by hand")
    assert of_closed(closed, NOW) == Verdict(State.FAILED, CellStatus.STOPPED, "by hand")
    assert of_closed(RUN, NOW) is None
    assert of_closed(RUN, RUN.expires_at) is not None


@pytest.mark.parametrize(
    ("cause", "said"),
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
def test_an_error_becomes_a_sentence(cause: str, said: str) -> None:
    assert of_error("E", cause) == said
    assert len(of_error("E", json.dumps({"errorMessage": "m" * 50_000}))) == LONGEST_REASON


def test_a_reason_with_output_is_bounded() -> None:
    assert with_output("why", "i-1", "") == "why"
    assert with_output("why", "i-1", "last") == "why\nlast lines of i-1:\nlast"
    assert len(with_output("w" * 1500, "i-1", "x" * 1500)) <= LONGEST_REASON
