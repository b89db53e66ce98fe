"""The workflow that tears down, against its own time limit and the service's quotas."""

from __future__ import annotations

from itertools import count

import pytest

from tests.machines import asl
from troop.bench.removal.reaping import TEARDOWN_TIME
from troop.bench.removal.teardown import TeardownIncompleteError, TeardownProgress, after

MACHINE = asl.load(asl.ROOT / "statemachines" / "teardown.asl.json")
STATES = dict(asl.states(MACHINE))


def _longest() -> tuple[int, int]:
    """Looks of a teardown that has to give up, and the seconds between them."""
    progress, waited = TeardownProgress(0, 0), 0
    for looks in count(1):
        try:
            progress = after(progress.passes, progress.quiet, ["something"])
        except TeardownIncompleteError:
            return looks, waited
        waited += progress.wait_seconds
    raise AssertionError("it gives up")


def test_teardown_gives_up_after_about_an_hour() -> None:
    _, waited = _longest()
    assert 45 * 60 < waited < 75 * 60


def test_the_longest_one_fits_its_time_limit_and_the_history() -> None:
    looks, waited = _longest()
    assert MACHINE["TimeoutSeconds"] == TEARDOWN_TIME.total_seconds()
    report, later = STATES["Report"], STATES["ReportLater"]
    reporting = (1 + report["Retry"][-1]["MaxAttempts"]) * (report["TimeoutSeconds"] + 30)
    reporting += asl.waits(report["Retry"][0]) + asl.worst(later)
    assert waited + looks * 30 + reporting < MACHINE["TimeoutSeconds"], "half a minute for each look"
    tries = 1 + sum(rule["MaxAttempts"] for rule in STATES["Remove"]["Retry"])
    assert looks * (2 + 2 + 2 + 3 * tries) + 200 < asl.HISTORY


@pytest.mark.parametrize("name", ["Close", "Remove", "Conclude"])
def test_permanent_error_is_not_retried(name: str) -> None:
    hopeless = STATES[name]["Retry"][1]
    assert "MissingRunError" in hopeless["ErrorEquals"]
    assert hopeless["MaxAttempts"] == 0
    if name != "Close":
        assert "TeardownIncompleteError" in hopeless["ErrorEquals"]


def test_teardown_succeeds_only_after_its_conclusion() -> None:
    assert [name for name, state in STATES.items() if "Over" in asl.following(state)] == [
        "IsThereAReport",
        "Report",
        "ReportLater",
    ]
    assert [name for name, state in STATES.items() if "Report" in asl.following(state)] == ["IsThereAReport"]
    assert [name for name, state in STATES.items() if "IsThereAReport" in asl.following(state)] == ["Conclude"]
    assert [name for name, state in STATES.items() if "Conclude" in asl.following(state)] == ["IsNothingLeft"]
    assert STATES["Incomplete"]["Type"] == "Fail"


def test_a_report_that_fails_fails_no_teardown() -> None:
    """Neither in itself nor by keeping it from its end: whatever is caught leads to where success does."""
    report, later = STATES["Report"], STATES["ReportLater"]
    assert set(asl.following(report)) == {"ReportLater", "Over"}
    assert {rule["Next"] for rule in report["Catch"]} == {"ReportLater"}
    assert set(asl.following(later)) == {"Over"}
    assert {tuple(rule["ErrorEquals"]) for rule in later["Catch"]} == {("States.ALL",)}
    assert STATES["Over"]["Type"] == "Succeed"
    hopeless = report["Retry"][1]
    assert (set(hopeless["ErrorEquals"]), hopeless["MaxAttempts"]) == ({"MissingRunError", "ReportError"}, 0)


def test_a_report_waits_out_throttling_and_then_is_left_to_lambda() -> None:
    """Which hears of an event whatever its functions do, and tells of what it gives up."""
    passing = STATES["Report"]["Retry"][0]
    assert "Lambda.TooManyRequestsException" in passing["ErrorEquals"]
    assert asl.waits(passing) >= 600
    assert STATES["ReportLater"]["Parameters"] == STATES["Report"]["Parameters"] | {"InvocationType": "Event"}
