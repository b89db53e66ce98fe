"""Planned faults of a measured phase: what a file may say of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.file.documents import FILES, changed, problems, read
from tests.unit.bench.file.test_schema import SCHEMA
from troop.bench.admission.estimate import expected_seconds, most_seconds
from troop.bench.definition.definition import from_document, to_document
from troop.bench.definition.planned_fault import MOST_FAULTS, Expectation, PlannedFault
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.definition.roster import Node, make_roster
from troop.bench.definition.victims import victims
from troop.bench.file.planned_faults import AFTER, BEFORE
from troop.bench.file.read import read_all

STOP: dict[str, Any] = {"at": "1m", "role": "servers", "method": "stop"}
PAUSE: dict[str, Any] = {"at": "1m", "role": "servers", "count": 2, "method": "pause", "for": "30s"}
SCRIPT: dict[str, Any] = {**STOP, "method": "script", "script": "prepare.sh"}
EXPECT: dict[str, Any] = {"rate": 0.6, "rate_back_within": "45s", "failed_at_most": 0}
UNIT: dict[str, Any] = {"at": 200, "unit": "web", "method": "latency delay=200 seconds=60"}
BETWEEN = {"script": "prepare.sh", "roles": ["servers"], "timeout": "1m"}
SEARCH = {"parameter": "threads", "from": 1, "to": 9}


def broken(*faults: Any, **phase: Any) -> dict[str, Any]:
    """A file whose measured phase, of 30 s and 5 min, has faults."""
    more = {f"phases__1__{key}": value for key, value in phase.items()}
    return changed(phases__1__faults=list(faults), sizes={}, **more) | {"expires_after": "168h"}


def test_faults_are_stored_as_the_file_has_them() -> None:
    document = broken({**PAUSE, "expect": EXPECT}, UNIT)
    SCHEMA.validate(document)
    benchmark = read(document, FILES)
    first, second = benchmark.phase("measure").faults
    expect = Expectation(0.6, rate_back_within=45, failed_at_most=0)
    assert first == PlannedFault(60, "pause", "servers", count=2, lasts=30, expect=expect)
    assert second == PlannedFault(200, "latency delay=200 seconds=60", unit="web")
    stored = to_document(benchmark)
    its = {**EXPECT, "share": 0.95, "rate_back_within": 45}
    assert stored["phases"][1]["faults"][0] == {**PAUSE, "at": 60, "for": 30, "expect": its}
    assert from_document(stored) == benchmark
    assert "faults" not in stored["phases"][0]


def test_each_point_has_the_faults_of_its_phase_and_the_script_between_none() -> None:
    steps = read(broken(PAUSE, repeat=2, between=BETWEEN), FILES).steps
    assert [len(step.phase.faults) for step in steps] == [0, 1, 0, 1]


def test_a_search_needs_no_limits_if_each_fault_says_what_to_expect() -> None:
    benchmark = read(broken({**PAUSE, "expect": EXPECT}, search=SEARCH, between=BETWEEN), FILES)
    assert benchmark.phase("measure").search is not None


def test_a_fault_takes_no_time_of_its_own() -> None:
    without, with_faults = read(broken(), FILES), read(broken(STOP), FILES)
    assert expected_seconds(with_faults) == expected_seconds(without)
    assert most_seconds(with_faults) == most_seconds(without)
    assert with_faults.needed == without.needed


_AFTER_STOP = {**STOP, "at": "2m"}
ACCEPTED = [
    [STOP, _AFTER_STOP],
    [{**STOP, "count": 3}, {**SCRIPT, "at": "2m", "count": 3}],
    [{**SCRIPT, "for": "20s"}, {**SCRIPT, "at": "2m"}],
    [{"at": 11, "zone": 3, "method": "crash"}],
    [{**PAUSE, "zone": 3, "count": 1}],
    [{**STOP, "zone": 1}],
    [{**STOP, "method": "slow", "delay": 20, "for": 9, "expect": {"p99_back_within": "90s"}}],
    [{"at": 60, "unit": "web"}],
    [{"at": 60, "unit": "web", "method": "crash"}],
    [{**STOP, "at": 11 + 21 * n} for n in range(3)],
    [{**STOP, "at": 290}],
    [{**PAUSE, "at": 260}],
]


@pytest.mark.parametrize("faults", ACCEPTED)
def test_a_right_fault_is_accepted(faults: list[Any]) -> None:
    document = broken(*faults)
    SCHEMA.validate(document)
    assert len(read(document, FILES).phase("measure").faults) == len(faults)


def test_a_phase_is_accepted_up_to_its_limits() -> None:
    assert read(broken(STOP, measured="24m", warm_up="60s", timeout="1h"), FILES)
    assert read(broken({**SCRIPT, "for": 5}, repeat=2, between=BETWEEN), FILES)


_NO_END = "another one in a phase with {}, in which each fault has an end"
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (broken({**STOP, "method": 5}), "faults.0.method", "one of stop, pause, crash, cut, slow, script; with a"),
    (broken({**STOP, "method": "drain"}), "faults.0.method", "one of stop, pause, crash, cut, slow, script without"),
    (broken({"at": 60, "role": "servers"}), "faults.0.method", "one of stop, pause"),
    (broken({**STOP, "lasts": 3}), "faults.0.lasts", "one of at, method"),
    (broken({**STOP, "ro1e": "servers"}), "faults.0.ro1e", "role"),
    (broken({"role": "servers", "method": "stop"}), "faults.0.at", "set ("),
    (broken({**STOP, "at": -1}), "faults.0.at", "a duration from 0s to 25m"),
    (broken({**STOP, "expect": {**EXPECT, "rate": 0}}), "faults.0.expect.rate", "a number above 0, at most 1"),
    (broken({**STOP, "expect": {**EXPECT, "share": 1.1}}), "faults.0.expect.share", "a number above 0, at most 1"),
    (broken({**STOP, "expect": {**EXPECT, "failed": 1}}), "faults.0.expect.failed", "failed_at_most"),
    (broken({**STOP, "expect": {"share": 0.9}}), "faults.0.expect", "at least one of rate, rate_back_within"),
    (broken(*[STOP] * (MOST_FAULTS + 1)), "faults", f"at most {MOST_FAULTS}"),
    # Who is hit.
    (broken({"at": 60, "method": "stop"}), "faults.0", "exactly one of role and unit, or with zone alone"),
    (broken({**UNIT, "role": "servers"}), "faults.0", "exactly one of role and unit, or with zone alone"),
    (broken({**STOP, "role": "drivers"}), "faults.0.role", "one of servers, which do not run the phase's script"),
    (broken({**STOP, "role": "server"}), "faults.0.role", "one of servers, which do not run"),
    (broken(STOP, roles=["servers", "drivers"]), "faults.0.role", "left out: all roles of the file run"),
    (broken({"at": 60, "zone": 1, "method": "crash"}, roles=["servers", "drivers"]), "faults.0.zone", "left out"),
    (broken({"at": 60, "zone": 1, "count": 1, "method": "crash"}), "faults.0.count", "left out without role"),
    (broken({"at": 60, "zone": 4, "method": "crash"}), "faults.0.zone", "at most 3, the zones of their fleets (zones)"),
    (broken({**STOP, "zone": 4}), "faults.0.zone", "at most 3, the zones of their fleets (zones)"),
    (broken({**STOP, "zone": 7}), "faults.0.zone", "a whole number from 1 to 6"),
    (broken({**STOP, "count": 4}), "faults.0.count", "at most 3, the nodes of servers"),
    (broken({**STOP, "count": 2, "zone": 1}), "faults.0.count", "at most 1, the nodes of servers in each zone"),
    (broken({**STOP, "count": 3}, _AFTER_STOP), "faults.1.count", "at most 0, the nodes of servers that earlier"),
    (
        broken({**STOP, "method": "crash", "count": 2}, {**SCRIPT, "at": "2m", "count": 2}),
        "faults.1.count",
        "at most 1, the nodes of servers that earlier faults leave",
    ),
    # What it needs.
    (broken({**STOP, "for": 5}), "faults.0.for", "left out for the method stop"),
    (broken({**STOP, "method": "crash", "for": 5}), "faults.0.for", "left out for the method crash"),
    (broken({**STOP, "method": "pause"}), "faults.0.for", "set for the method pause"),
    (broken({**STOP, "method": "cut"}), "faults.0.for", "set for the method cut"),
    (broken({**PAUSE, "method": "slow"}), "faults.0.delay", "set for the method slow"),
    (broken({**PAUSE, "delay": 5}), "faults.0.delay", "left out for the method pause"),
    (broken({**STOP, "method": "script"}), "faults.0.script", "set for the method script"),
    (broken({**STOP, "script": "prepare.sh"}), "faults.0.script", "left out for the method stop"),
    (broken({**SCRIPT, "script": "other.sh"}), "faults.0.script", "a file in the benchmark's folder: prepare.sh"),
    # Units.
    (broken({**UNIT, "method": "pause"}), "faults.0.method", "one of crash, shutdown, drain"),
    (broken({**UNIT, "method": "crash, drain"}), "faults.0.method", "one fault"),
    (broken({**UNIT, "method": "blackhole"}), "faults.0.method", "blackhole with port"),
    (broken({**UNIT, "unit": " "}), "faults.0.unit", "the name of a unit"),
    (broken({**UNIT, "for": 5}), "faults.0.for", "left out with a unit"),
    (broken({**UNIT, "zone": 1}), "faults.0.zone", "left out with a unit"),
    (broken({**UNIT, "count": 1}), "faults.0.count", "left out with a unit"),
    # When it happens.
    (broken({**STOP, "at": 10}), "faults.0.at", "at least 11s: the first 11s show the load without a fault"),
    (broken({**STOP, "at": 291}), "measured", "at least 301s: 291s + 10s, for fault 1"),
    (broken({**PAUSE, "at": 265}), "measured", "at least 305s: 265s + 30s of for + 10s, for fault 1"),
    (broken({**STOP, "at": 4, "expect": EXPECT}), "faults.0.at", "at least 11s"),
    (broken({**STOP, "at": 250, "expect": EXPECT}), "measured", "at least 305s: 250s + 45s of rate_back_within + 10s"),
    (broken(STOP, {**PAUSE, "at": 60}), "faults.1.at", "at least 81s: 21s after the end of the one before"),
    (broken(PAUSE, {**STOP, "at": 110}), "faults.1.at", "at least 111s"),
    (broken({**STOP, "expect": EXPECT}, {**PAUSE, "at": 125}), "faults.1.at", "at least 126s"),
    (broken({**STOP, "at": "2m"}, STOP), "faults.1.at", "at least 141s"),
    # The phase.
    (broken(STOP, start_together=False), "start_together", "true in a phase with faults"),
    (broken(STOP, limits=[{"figure": "p99_ms", "at_most": 9}]), "limits", "left out in a phase with faults"),
    (broken(STOP, measured="24m", warm_up="61s", timeout="1h"), "measured", "at most 25m in a phase with faults"),
    (broken(PAUSE, repeat=2), "between", "set in a phase with faults and repeat"),
    (broken(PAUSE, points={"threads": [1, 2]}), "between", "set in a phase with faults and points"),
    (broken(STOP, repeat=2, between=BETWEEN), "faults.0.method", _NO_END.format("repeat")),
    (broken(SCRIPT, repeat=2, between=BETWEEN), "faults.0.for", "set in a phase with repeat, in which each fault has"),
    (broken(UNIT, points={"threads": [1, 2]}, between=BETWEEN), "faults.0.unit", "left out in a phase with points"),
    (broken(PAUSE, search=SEARCH, between=BETWEEN), "faults.0.expect", "set in a phase with a search"),
]


@pytest.mark.parametrize(("document", "where", "allowed"), REFUSED)
def test_a_wrong_fault_is_refused_at_its_place(document: dict[str, Any], where: str, allowed: str) -> None:
    (problem,) = problems(document, files=FILES)
    assert problem.where == f"phases.1.{where}"
    assert allowed in problem.allowed


def test_a_phase_that_measures_nothing_has_no_faults() -> None:
    """The phase of faults lacks this key first, whatever else needs it, too."""
    first, *_ = problems(changed(phases__0__faults=[STOP], phases__0__warm_up="1m", sizes={}), files=FILES)
    assert str(first) == "phases.0.measured is missing: must be set: a phase with faults needs it"


def test_a_zone_is_one_of_the_role_that_the_fault_hits() -> None:
    document = broken({"at": 60, "role": "web", "zone": 2, "method": "stop"})
    document["fleets"]["web"] = {"count": 4, "instance_type": "c7g.large", "zones": 1}
    assert [one.where for one in problems(document, files=FILES)] == ["phases.1.faults.0.zone"]
    document["fleets"]["web"]["zones"] = 2
    assert read(document, FILES)


def test_faults_of_a_file_with_other_problems_are_checked_too() -> None:
    document = broken({**STOP, "at": 9}) | {"attempts": 0}
    assert [one.where for one in problems(document, files=FILES)] == ["attempts", "phases.1.faults.0.at"]


def test_only_the_last_phase_with_faults_on_nodes_crashes_some() -> None:
    def twice(method: str, later: dict[str, Any]) -> dict[str, Any]:
        document = broken({**STOP, "method": method, "count": 3})
        return document | {
            "phases": [*document["phases"], {**document["phases"][1], "name": "again", "faults": [later]}]
        }

    assert len(read(twice("stop", STOP), FILES).phases) == 3
    assert len(read(twice("crash", UNIT), FILES).phases) == 3
    (problem,) = problems(twice("crash", STOP), files=FILES)
    assert problem.where == "phases.2.faults"
    assert problem.allowed == "within the phase measure, because that one crashes nodes"


CHANGED: list[tuple[dict[str, Any], list[tuple[Any, ...]]]] = [
    ({"phases.measure.faults": [{**STOP, "at": 90}]}, [(90, "stop", None)]),
    ({"phases.measure.faults": []}, []),
    ({"phases.measure.faults.0.at": "2m"}, [(120, "pause", 30)]),
    ({"phases.measure.faults.0.for": 40, "phases.measure.faults.0.method": "cut"}, [(60, "cut", 40)]),
]


@pytest.mark.parametrize(("changes", "faults"), CHANGED)
@pytest.mark.parametrize("by_size", [False, True])
def test_a_size_and_a_single_change_set_faults(changes: Any, faults: list[Any], *, by_size: bool) -> None:
    document = broken(PAUSE)
    if by_size:
        benchmark = read(document | {"sizes": {"other": changes}}, FILES, size="other")
    else:
        benchmark = read(document, FILES, changes=changes)
    assert [(one.at, one.method, one.lasts) for one in benchmark.phase("measure").faults] == faults


def test_a_change_that_makes_a_wrong_fault_is_named() -> None:
    (problem,) = problems(broken(PAUSE), files=FILES, changes={"phases.measure.faults.0.at": 5})
    assert problem.where == "set.phases.measure.faults.0.at"
    (problem,) = problems(broken(PAUSE), files=FILES, changes={"phases.measure.faults.0.fore": 5})
    assert (problem.where, problem.allowed) == ("set.phases.measure.faults.0.fore", "spelled for")
    (problem,) = problems(broken(PAUSE), files=FILES, changes={"phases.measure.measured": 60})
    assert (problem.where, problem.allowed[:14]) == ("set.phases.measure.measured", "at least 100s:")


def test_a_step_without_a_role_has_no_faults_on_it() -> None:
    web = {"count": 1, "instance_type": "c7g.large"}
    document = broken(STOP, {"at": 90, "role": "web", "method": "stop"}, {"at": 120, "zone": 1, "method": "crash"})
    document |= {"fleets": {**document["fleets"], "web": web}}
    document |= {"scale": {"all": {"parameters.threads": 1}, "few": {"fleets.web.count": 0}}}
    cells = read_all(document, FILES).plan.cells
    hit = [[fault.text for fault in cell.benchmark.phase("measure").faults] for cell in cells]
    assert hit == [["stop 1 of servers", "stop 1 of web", "crash zone 1"], ["stop 1 of servers", "crash zone 1"]]


def test_the_matrix_varies_a_fault() -> None:
    cells = read_all(broken(PAUSE) | {"matrix": {"phases.measure.faults.0.method": ["pause", "cut"]}}, FILES).plan.cells
    assert [cell.benchmark.phases[1].faults[0].method for cell in cells] == ["pause", "cut"]


def test_a_baseline_makes_no_pairs_of_a_phase_with_faults() -> None:
    document = broken(STOP) | {"baseline": {"parameters.threads": 16}}
    (problem,) = problems(document, files=FILES)
    assert (problem.where, problem.message) == ("baseline", "compares nothing")
    plain = {key: value for key, value in document["phases"][1].items() if key != "faults"} | {"name": "plain"}
    benchmark = read(document | {"phases": [*document["phases"], plain]}, FILES)
    assert [(phase.name, phase.paired) for phase in benchmark.phases if phase.is_measured] == [
        ("measure", False),
        ("plain", True),
    ]


_TIMES = st.lists(st.tuples(st.integers(0, 120), st.integers(1, 40), st.integers(0, 50)), min_size=1, max_size=3)


@given(_TIMES, st.integers(10, 200))
def test_each_fault_has_undisturbed_load_before_and_after_it(times: list[tuple[int, int, int]], measured: int) -> None:
    faults = [
        {**PAUSE, "at": at, "for": lasts, **({"expect": {"rate_back_within": back}} if back else {})}
        for at, lasts, back in times
    ]
    busy = [range(at, at + max(lasts, back)) for at, lasts, back in times]
    free = [0, *(end for one in busy for end in (one.start, one.stop)), measured]
    gaps = [end - begin for begin, end in zip(free[::2], free[1::2], strict=True)]
    least = [BEFORE, *[AFTER + BEFORE] * (len(busy) - 1), AFTER]
    is_right = all(gap >= its for gap, its in zip(gaps, least, strict=True))
    try:
        read(broken(*faults, measured=measured), FILES)
    except BadBenchmarkError as bad:
        assert not is_right, bad  # noqa: PT017 - both are right
    else:
        assert is_right


_KINDS = st.sampled_from([{"role": "servers"}, {"role": "web"}, {"zone": 2}, {"role": "servers", "zone": 2}])
_METHODS = st.sampled_from([{"method": "stop"}, {"method": "crash"}, {"method": "cut", "for": 5}])


@given(st.lists(st.tuples(_KINDS, _METHODS, st.none() | st.integers(1, 4)), min_size=1, max_size=5))
def test_an_accepted_fault_of_a_role_finds_all_nodes_that_it_hits(faults: list[tuple[Any, Any, int | None]]) -> None:
    documents = [
        {"at": 11 + 30 * n, **kind, **method, **({"count": count} if count and "role" in kind else {})}
        for n, (kind, method, count) in enumerate(faults)
    ]
    document = broken(*documents)
    document["fleets"]["web"] = {"count": 4, "instance_type": "c7g.large", "zones": 2}
    try:
        phase = read(document, FILES).phase("measure")
    except BadBenchmarkError:
        return
    if any(fault.zone for fault in phase.faults):  # which nodes of a zone are left, only the roster shows
        return
    hit = [len(victims(fault, _ROSTER, phase)) for fault in phase.faults]
    assert hit == [fault.count or 1 for fault in phase.faults]


_FLEETS = {"servers": (3, 3), "web": (4, 2), "drivers": (2, 1)}
_NODES = [(role, n, "abc"[n % zones]) for role, (count, zones) in _FLEETS.items() for n in range(count)]
_ROSTER = make_roster([Node(f"i-{role}{n}", role, zone) for role, n, zone in _NODES])
