"""The digest of a role's health: what counts as what, the worst of each check, and its bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.living.build import LONG_AGO, NOW, RESTARTS, fleet, node
from troop.bench.definition.living import MOST_NODE_IDS, Grade, RoleDigest
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Member, Place
from troop.bench.living.digest import (
    MOST_STORED,
    MOST_VALUES,
    SILENT,
    Watched,
    confirmed,
    digest,
    digests,
    values,
    watched,
)
from troop.bench.living.report import MOST_CHECKS, Check, Report
from troop.shared import codec

FAILS = Check("disk", Grade.FAIL, 97.0, 90.0, "full", "remove files", actionable=True)
WARNS = replace(FAILS, status=Grade.WARN, value=91.0, actionable=False)
PASSES = replace(FAILS, status=Grade.OK, value=10.0, actionable=False)

OLD = NOW - SILENT - timedelta(seconds=1)


def watch(report: Report | None, ready_at: Any = LONG_AGO, **changes: Any) -> Watched | None:
    """The only node of a fleet as the digest sees it; None if it does not count."""
    place, error = changes.pop("place", Place.SERVING), changes.pop("error", None)
    group = GroupStatus("workers", 1, 1, (Member("i-1", "a", "c7g.large", place),))
    nodes = {"i-1": Node("i-1", "workers", error=error)} if changes.pop("registered", True) else {}
    reports = {"i-1": report} if report else {}
    seen = watched(fleet(**changes), [group], nodes, {"i-1": ready_at}, reports, NOW)
    return seen[0] if seen else None


@pytest.mark.parametrize(
    ("report", "changes", "state"),
    [
        (Report("i-1", NOW), {}, "ok"),
        (Report("i-1", NOW, Grade.WARN), {}, "warn"),
        (Report("i-1", NOW, Grade.FAIL), {}, "fail"),
        (Report("i-1", NOW, Grade.FAIL, problem="it is empty"), {}, "fail"),
        (Report("i-1", NOW - SILENT), {}, "ok"),
        (Report("i-1", OLD), {}, "silent"),
        (None, {}, "silent"),
        (None, {"ready_at": NOW - SILENT}, "new"),
        (None, {"ready_at": OLD}, "silent"),
        (Report("i-1", OLD), {"ready_at": NOW - SILENT}, "ok"),
        (Report("i-1", NOW, Grade.FAIL), {"ready_at": NOW - timedelta(seconds=119)}, "new"),
        (Report("i-1", NOW, Grade.FAIL), {"ready_at": NOW - timedelta(seconds=120)}, "fail"),
        (Report("i-1", NOW), {"ready_at": NOW}, "ok"),
        (Report("i-1", NOW, Grade.FAIL, draining=True), {}, "draining"),
        (Report("i-1", OLD, draining=True), {}, "silent"),
        (Report("i-1", OLD, draining=True), {"drains": {"i-1": OLD}}, "draining"),
        (Report("i-1", NOW, Grade.FAIL), {"drains": {"i-1": NOW}}, "draining"),
        (None, {"drains": {"i-1": NOW}}, "draining"),
        (Report("i-1", NOW, Grade.FAIL), {"place": Place.LEAVING}, None),
        (Report("i-1", NOW, Grade.FAIL), {"place": Place.STARTING}, None),
        (None, {"error": "setup failed"}, None),
        (None, {"registered": False}, None),
    ],
)
def test_each_node_counts_once(report: Report | None, changes: dict[str, Any], state: str | None) -> None:
    one = watch(report, **changes)
    merged = codec.to_document(digest([one] if one else []))
    assert {key: n for key, n in merged.items() if key != "checks" and n} == ({state: 1} if state else {})


def test_checks_are_merged_to_the_worst() -> None:
    nodes = [node(n, PASSES) for n in range(3)]
    nodes += [node(n, WARNS) for n in range(3, 5)]
    nodes += [node(n, replace(FAILS, value=90.0 + n, detail=f"{n}")) for n in range(5, 12)]
    merged = digest(nodes)
    assert (merged.ok, merged.warn, merged.fail) == (3, 2, 7)
    (disk,) = merged.checks
    assert (disk.status, disk.nodes, disk.value, disk.detail) == (Grade.FAIL, 7, 101.0, "11"), "the farthest"
    assert disk.node_ids == tuple(f"i-{n:03}" for n in range(5, 5 + MOST_NODE_IDS))
    assert disk.actionable


def test_too_small_a_value_is_the_worst_if_it_fails() -> None:
    nodes = [node(n, replace(FAILS, value=float(n), threshold=10.0)) for n in (3, 7)]
    assert digest(nodes).checks[0].value == 3.0


def test_silent_nodes_and_malformed_reports_are_a_check_of_their_own() -> None:
    silent = replace(node(1), is_silent=True)
    merged = digest([silent, node(2, status=Grade.FAIL, problem="it is empty"), node(3, PASSES)])
    assert (merged.ok, merged.fail, merged.silent) == (1, 1, 1)
    report = merged.checks[0]
    assert (report.name, report.status, report.nodes) == ("report", Grade.FAIL, 2)
    assert report.node_ids == ("i-001", "i-002")


def test_nodes_that_drain_or_begin_show_no_checks() -> None:
    for one in (replace(node(1, FAILS), is_draining=True), replace(node(1, FAILS), is_new=True)):
        assert digest([one]).checks == ()


@given(st.data())
def test_every_node_counts_and_no_digest_outgrows_the_record(data: st.DataObject) -> None:
    texts, grades = st.text(max_size=200), st.sampled_from(Grade)
    checks = st.builds(Check, st.text(max_size=64), grades, st.none() | st.floats(-1e15, 1e15), detail=texts)
    states = st.sampled_from([(True, False, False), (False, True, False), (False, False, True), (False, False, False)])
    nodes = []
    for number in range(data.draw(st.integers(0, 8))):
        one = node(number, *data.draw(st.lists(checks, max_size=4)))
        drains, is_silent, is_new = data.draw(states)
        nodes.append(replace(one, is_draining=drains, is_silent=is_silent, is_new=is_new))
    merged = digest(nodes)
    counted = merged.ok + merged.warn + merged.fail + merged.silent + merged.draining + merged.new
    assert counted == len(nodes)
    assert len(merged.checks) <= MOST_CHECKS
    for check in merged.checks:
        assert len(check.node_ids) == min(check.nodes, MOST_NODE_IDS)
    assert codec.from_document(RoleDigest, json.loads(json.dumps(codec.to_document(merged)))) == merged


def test_all_digests_of_a_fleet_fit_into_its_record() -> None:
    wide = "\U0001f600" * 200
    nodes = [
        replace(node(number, *(Check(f"{n}", Grade.FAIL, 1.0, 2.0, wide, wide) for n in range(20))), role=f"r{role}")
        for role in range(10)
        for number in range(5)
    ]
    merged = digests(nodes, {f"r{role}" for role in range(10)})
    stored = json.dumps({role: codec.to_document(one) for role, one in merged.items()}, ensure_ascii=False).encode()
    assert len(stored) <= MOST_STORED
    assert all(one.fail == 5 and one.checks for one in merged.values())


def test_a_role_without_nodes_has_a_digest() -> None:
    assert digests([], {"workers"}) == {"workers": RoleDigest()}


def test_values_of_many_nodes_keep_their_range() -> None:
    nodes = [node(n, replace(PASSES, value=float(n))) for n in range(1000)]
    (some,) = values(nodes).values()
    assert (len(some), some[0], some[-1]) == (MOST_VALUES, 0.0, 999.0)
    assert some[MOST_VALUES // 2] == pytest.approx(500, abs=10)


def test_only_numbers_of_nodes_that_count_are_values() -> None:
    unnamed = replace(PASSES, name="größe")
    nodes = [
        node(1, PASSES, unnamed),
        node(2, replace(PASSES, value=None)),
        replace(node(3, PASSES), is_silent=True),
        replace(node(4, PASSES), is_draining=True),
    ]
    assert values(nodes) == {"disk": (10.0,)}


@pytest.mark.parametrize(
    ("one", "is_sure"),
    [
        (node(1, FAILS, failures=2), False),
        (node(1, FAILS, failures=3), True),
        (node(1, WARNS, failures=0), True),
        (node(1, status=Grade.FAIL, problem="it is empty"), True),
        (replace(node(1, FAILS, failures=0), is_silent=True), True),
    ],
)
def test_one_failed_request_is_no_finding(one: Watched, is_sure: bool) -> None:
    assert bool(confirmed([one], fleet())) is is_sure
    assert bool(confirmed([one], replace(fleet(), heals={}))) is is_sure
    patient = replace(fleet(), heals={"workers": replace(RESTARTS, after=99)})
    assert bool(confirmed([node(1, FAILS, failures=98)], patient)) is False
