"""The workflow of a standing fleet: it lives through failed looks, continues itself, and ends in its teardown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import ceil

from tests.machines import asl
from troop.bench.definition.standing import FIRST_WAIT, LONGEST_WAIT, wait
from troop.bench.flows.fleet_steps import DRAIN_WAIT, LONGEST_EXECUTION
from troop.bench.flows.launching import LONGEST
from troop.bench.measuring.verdicts import State
from troop.bench.records.record import RunStatus
from troop.bench.removal.reaping import ENDS_WITHIN

A_DAY = 24 * 3600
COSTS = (asl.ROOT / "docs" / "background" / "costs.md").read_text(encoding="utf-8")

MACHINE = asl.load(asl.ROOT / "statemachines" / "fleet.asl.json")
STATES = dict(asl.states(MACHINE))


def _looks() -> Iterator[int]:
    """The waits of a fleet that stands for a day."""
    elapsed = 0.0
    while elapsed < A_DAY:
        seconds = wait(elapsed, A_DAY - elapsed)
        elapsed += seconds
        yield seconds


def test_no_way_leads_past_teardown() -> None:
    ends = {name for name, state in STATES.items() if state["Type"] in ("Succeed", "Fail")}
    assert ends == {"FleetOver", "FleetFailed", "FleetIsLeftOver", "HandedOver"}
    assert ends & asl.reached(MACHINE["StartAt"], STATES, without="TearDown") == {"HandedOver"}
    assert "HandedOver" not in asl.reached(MACHINE["StartAt"], STATES, without="StartAgain")
    assert {name for name, state in STATES.items() if "TearDown" in asl.following(state)} == {"Settle", "NotSettled"}


def test_fleet_is_checked_until_it_is_over() -> None:
    waiting, again = STATES["IsItOver"]["Choices"]
    assert (waiting["StringEquals"], waiting["Next"]) == (State.WAITING, "BeforeKeep")
    assert (again["StringEquals"], again["Next"]) == (State.AGAIN, "StartAgain")
    assert STATES["IsItOver"]["Default"] == "Settle"


def test_failed_check_ends_no_fleet() -> None:
    missing, any_other = STATES["Keep"]["Catch"]
    assert (missing["ErrorEquals"], missing["Next"]) == (["MissingRunError"], "Settle")
    assert (any_other["ErrorEquals"], any_other["Next"]) == (["States.ALL"], "CheckLater")
    later = STATES["CheckLater"]
    assert (later["Result"]["wait_seconds"], later["Next"]) == (LONGEST_WAIT, "BeforeKeep")
    assert [rule["Next"] for rule in STATES["Launch"]["Catch"]] == ["Settle"], "without a launch there is none"


def test_an_execution_that_cannot_start_the_next_one_goes_on() -> None:
    (rule,) = STATES["StartAgain"]["Catch"]
    assert (rule["ErrorEquals"], rule["Next"]) == (["States.ALL"], "CheckLater")


def test_the_next_execution_is_on_record_before_this_one_ends() -> None:
    """Whoever finds that the recorded execution has ended tears the fleet down."""
    assert STATES["StartAgain"]["Next"] == "HandOver"
    payload = STATES["HandOver"]["Parameters"]["Payload"]
    assert (payload["step"], payload["execution.$"]) == ("open", "$.next.execution")
    assert STATES["StartAgain"]["Parameters"]["Input"]["run.$"] == "$.run"


def test_a_fleet_that_was_stopped_or_has_expired_has_ended_well() -> None:
    (good,) = STATES["WasGood"]["Choices"]
    assert (good["StringEquals"], good["Next"]) == (RunStatus.STOPPED, "FleetOver")
    assert STATES["NotSettled"]["Result"]["status"] == RunStatus.FAILED


def test_the_right_to_create_outlives_the_function_that_has_it() -> None:
    assert LONGEST.total_seconds() >= asl.function_timeouts()["fleet"]
    assert STATES["Keep"]["TimeoutSeconds"] > LONGEST.total_seconds()


def test_a_day_costs_little() -> None:
    waits = list(_looks())
    assert waits[0] == FIRST_WAIT
    assert max(waits) == LONGEST_WAIT
    executions = ceil(A_DAY / LONGEST_EXECUTION.total_seconds())
    # BeforeKeep, Keep, IsItOver; Open and Launch, and StartAgain, HandOver and HandedOver.
    transitions = 3 * len(waits) + 2 * executions + 3 * (executions - 1)
    match = re.search(rf"{transitions:,} x\s+\$0.025 / 1,000 = \*\*\$(.+?) a day", COSTS)
    assert match, f"docs/background/costs.md is to say how much {transitions:,} transitions are"
    assert match[1] == f"{transitions * 0.025 / 1000:.2f}"


def test_an_execution_fits_the_history() -> None:
    """A fleet whose nodes drain is looked at most often. Some room is left until the next execution starts."""
    longest = LONGEST_EXECUTION.total_seconds()
    assert asl.most_events(STATES["Keep"], longest / DRAIN_WAIT, longest) < asl.HISTORY * 0.9


def test_fleet_closes_itself_before_the_reaper_does() -> None:
    """A look begins a moment after the expiry at the latest; if that fails, so may a few more."""
    assert ENDS_WITHIN.total_seconds() > asl.worst(STATES["Keep"]) + LONGEST_WAIT
    ends = ENDS_WITHIN.total_seconds() + STATES["TearDown"]["TimeoutSeconds"] * 2
    assert MACHINE["TimeoutSeconds"] > A_DAY + LONGEST_EXECUTION.total_seconds() + ends
