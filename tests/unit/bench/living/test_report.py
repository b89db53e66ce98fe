"""Reports of nodes: what they say, and that no node can break anything by what it writes."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.living.build import NOW, check, document, parsed
from troop.bench.definition.living import Grade
from troop.bench.living.report import LONGEST_NAME, LONGEST_TEXT, MOST_BYTES, MOST_CHECKS, Report, parse_report


def test_a_report_is_read() -> None:
    health = {
        "status": "fail",
        "failures": 4,
        "checks": [
            check("disk", "ok", value=3),
            check("backlog", value=17, threshold=10, detail="old\nwork", todo="add nodes", actionable=False),
        ],
    }
    work = {"done": 17, "held": 1, "idle_since": NOW.timestamp() - 60}
    report = parsed({"health": health, "work": work, "drained": True})
    assert (report.status, report.failures, report.problem) == (Grade.FAIL, 4, "")
    assert (report.done, report.held, report.idle_since, report.drained) == (17, 1, NOW - timedelta(minutes=1), True)
    assert [one.name for one in report.checks] == ["backlog", "disk"], "the worst first"
    worst = report.checks[0]
    assert (worst.value, worst.threshold, worst.detail, worst.todo) == (17.0, 10.0, "old work", "add nodes")


@pytest.mark.parametrize(("status", "actionable"), [("fail", True), ("warn", False), ("ok", False)])
def test_only_a_failing_check_calls_for_action_unless_it_says_so(status: str, actionable: bool) -> None:
    own = check(status=status)
    assert parsed({"health": {"checks": [own]}}).checks[0].actionable is actionable
    assert parsed({"health": {"checks": [own | {"actionable": True}]}}).checks[0].actionable


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": "troop.report/2"}, "it is no document of the format troop.report/1"),
        ({"health": {"status": "good"}}, "health.status is 'good', not one of ok, warn, fail"),
        ({"health": {"failures": -1}}, "failures is -1, not a whole number"),
        ({"health": {"failures": True}}, "failures is True, not a whole number"),
        ({"health": {"checks": {}}}, "health.checks is {}, not a list"),
        ({"health": {"checks": ["disk"]}}, "a check is 'disk', not an object"),
        ({"health": {"checks": [check("", "ok")]}}, "the name of a check is '', not text"),
        ({"health": {"checks": [check("disk", "bad")]}}, "the status of the check disk is 'bad', not one of"),
        ({"health": {"checks": [check(value="3")]}}, "the value of a check is '3', not a number"),
        ({"health": {"checks": [check(value=1e300)]}}, "the value of a check is 1e+300, not a number"),
        ({"work": [1]}, "work is [1], not an object"),
        ({"work": {"held": 1.5}}, "held is 1.5, not a whole number"),
        ({"work": {"idle_since": "now"}}, "idle_since is 'now', not seconds since 1970"),
        ({"draining": "yes"}, "draining is 'yes', not true or false"),
    ],
)
def test_a_malformed_report_fails_with_the_reason(changes: dict[str, Any], problem: str) -> None:
    report = parsed(changes)
    assert (report.status, report.checks) == (Grade.FAIL, ())
    assert problem in report.problem


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "Expecting value"),
        (b"\xff", "can't decode"),
        (b'{"format": NaN}', "NaN is not a number"),
        (b"[" * 50_000, "nested too deeply"),
        (b" " * (MOST_BYTES + 1), f"more than {MOST_BYTES} bytes"),
        (b"[]", "it is no document"),
    ],
)
def test_a_body_that_is_no_report_fails_with_the_reason(body: bytes, problem: str) -> None:
    assert problem in parse_report("i-1", NOW, body).problem


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(st.data())
def test_no_value_anywhere_breaks_the_reader(data: st.DataObject) -> None:
    own = document(health={"checks": [check()]})
    place = data.draw(st.sampled_from([own, own["health"], own["health"]["checks"][0], own["work"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(_VALUES)
    report = parse_report("i-1", NOW, json.dumps(own).encode())
    assert isinstance(report, Report)
    assert report.failures >= 0
    assert report.problem == "" or report.status is Grade.FAIL


def test_texts_are_cut_without_credentials_and_in_one_line() -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    own = check("n" * 500, detail=f"{secret}\n\x1b[31m{'d' * 500}", todo="t" * 500)
    (parsed_check,) = parsed({"health": {"checks": [own]}}).checks
    assert (len(parsed_check.name), len(parsed_check.detail), len(parsed_check.todo)) == (
        LONGEST_NAME,
        LONGEST_TEXT,
        LONGEST_TEXT,
    )
    assert secret not in parsed_check.detail
    assert parsed_check.detail.isprintable()


def test_a_report_counts_its_worst_checks() -> None:
    checks = [check(f"c{number}", "ok") for number in range(MOST_CHECKS)]
    report = parsed({"health": {"checks": [*checks, check("disk")]}})
    assert len(report.checks) == MOST_CHECKS
    assert report.checks[0].name == "disk"


def test_an_interruption_notice_drains_the_node() -> None:
    assert parsed({"notice": {"action": "terminate"}}).draining


@pytest.mark.parametrize(("code", "repaired_at"), [(None, None), (0, NOW - timedelta(seconds=5)), (1, NOW)])
def test_a_restart_has_ended_once_it_has_a_code(code: int | None, repaired_at: Any) -> None:
    ended = NOW.timestamp() + (3600 if code == 1 else -5)  # a clock that is fast counts as the moment of the report
    report = parsed({"repair": {"id": "r-1", "at": ended, "code": code}})
    assert (report.repair, report.repaired_at) == ("r-1", repaired_at)
