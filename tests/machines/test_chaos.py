"""The chaos workflow against the service's quotas, at the limits of the settings."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from tests.machines import asl
from troop.chaos.claim_rules import LAST_CALL, LONGEST_CLAIM
from troop.chaos.events import Event, Status
from troop.chaos.flows.termination import TRIES, TerminationForbiddenError, Work
from troop.chaos.groups import Group, Instance
from troop.chaos.recovery import assess, wait_before
from troop.shared.settings import OLDEST_TICK, Settings, declared
from troop.shared.values import BadValue

LONGEST_TIMEOUT = timedelta(minutes=720)
MOST_IN_FLIGHT = 1000
LONGEST_NAME = "n" * 255
MOST_GROUPS = 500
"""The default quota of Auto Scaling groups in a region."""

PAYLOAD = 256 * 1024

MACHINE = asl.load(asl.ROOT / "statemachines" / "chaos.asl.json")
STATES = dict(asl.states(MACHINE))
WATCH, TERMINATE = STATES["TerminateAll/CheckRecovery"], STATES["TerminateAll/Terminate"]
ON_DEMAND = dict(asl.states(asl.load(asl.ROOT / "statemachines" / "on_demand.asl.json")))


@pytest.mark.parametrize(
    ("key", "most"),
    [("recovery_timeout_minutes", LONGEST_TIMEOUT // timedelta(minutes=1)), ("max_in_flight", MOST_IN_FLIGHT)],
)
def test_the_limits_here_are_those_of_the_settings(key: str, most: int) -> None:
    parse = declared(Settings)[key].parse
    assert parse(most) == most
    with pytest.raises(BadValue):
        parse(most + 1)


def _watch(flapping: bool) -> tuple[int, timedelta]:
    """Looks and time of the longest watch: a group that never is whole, or is so at every other look."""
    start = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
    event = Event(
        event_id="e", unit="u", day=date(2026, 11, 20), status=Status.TERMINATED, at=start, group="g",
        instance_id="i-1", zone="", method="crash", rolled=0, probability=1, desired=1, terminated_at=start,
    )  # fmt: skip
    now, looks = start + timedelta(seconds=wait_before(0)), 0
    while True:
        looks += 1
        whole = flapping and looks % 2 == 1
        group = Group("g", 1, (Instance("i-2"),) if whole else ())
        seen = assess(event, group, {}, now, LONGEST_TIMEOUT)
        if seen.status:
            assert seen.status is Status.UNRECOVERED
            return looks, now - start
        assert seen.wait_seconds > 0
        event = Event(**{**_fields(event), "watch": seen.watch})
        now += timedelta(seconds=seen.wait_seconds)


def _fields(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__dataclass_fields__}


@pytest.mark.parametrize("flapping", [False, True])
def test_the_longest_watch_fits_into_one_execution_history(flapping: bool) -> None:
    looks, took = _watch(flapping)
    assert looks > 350
    started_and_terminated = 2 + 2 + 3 * (1 + sum(r["MaxAttempts"] for r in TERMINATE["Retry"])) + 4
    assert asl.most_events(WATCH, looks, took.total_seconds()) + started_and_terminated < asl.HISTORY


def test_the_machine_outlives_the_longest_watch() -> None:
    last_work = OLDEST_TICK + timedelta(minutes=30)  # sweep and decide, retries and all
    assert MACHINE["TimeoutSeconds"] > (LONGEST_TIMEOUT + last_work).total_seconds()


def test_a_step_that_is_tried_again_is_not_taken_for_a_wrong_clock() -> None:
    """Retries keep the moment the state was entered, against which a look holds its clock."""
    assert asl.worst(WATCH) - WATCH["TimeoutSeconds"] < OLDEST_TICK.total_seconds()


def test_a_tick_that_waits_for_every_function_is_not_too_old_to_terminate() -> None:
    waited = 0.0
    for name in ("Sweep", "Decide", "TerminateAll/Terminate"):
        passing, _ = asl.retriers(STATES[name])
        waited += asl.waits(passing) + passing["MaxAttempts"] * asl.REFUSAL
    assert waited < OLDEST_TICK.total_seconds()


@pytest.mark.parametrize("terminate", [TERMINATE, ON_DEMAND["Terminate"]], ids=["tick", "on demand"])
def test_a_claim_can_still_be_carried_out_after_all_that_waiting(terminate: Mapping[str, Any]) -> None:
    """Its deadline holds however long it took: the function holds its clock against it, and not the workflow."""
    passing, _ = asl.retriers(terminate)
    waited = asl.waits(passing) + passing["MaxAttempts"] * asl.REFUSAL
    assert waited + asl.function_timeouts()["terminate"] < (LONGEST_CLAIM - LAST_CALL).total_seconds()


@pytest.mark.parametrize("machine", ["chaos", "on_demand"])
def test_forbidden_termination_is_not_retried(machine: str) -> None:
    """A second try would find its claim closed, end well, and tell nobody."""
    states = dict(asl.states(asl.load(asl.ROOT / "statemachines" / f"{machine}.asl.json")))
    retriable, forbidden, _ = (states.get("TerminateAll/Terminate") or states["Terminate"])["Retry"]
    assert all(name.startswith("Lambda.") for name in retriable["ErrorEquals"])
    assert forbidden == {"ErrorEquals": [TerminationForbiddenError.__name__], "MaxAttempts": 0}


@pytest.mark.parametrize("machine", ["chaos", "on_demand"])
def test_a_busy_group_is_let_be_before_the_step_fails(machine: str) -> None:
    states = dict(asl.states(asl.load(asl.ROOT / "statemachines" / f"{machine}.asl.json")))
    last = (states.get("TerminateAll/Terminate") or states["Terminate"])["Retry"][-1]
    assert last["MaxAttempts"] + 1 > TRIES


def _item(names: int) -> dict[str, Any]:
    unit = LONGEST_NAME
    return {
        "event_id": f"2026-11-20#{unit}",
        "unit": unit,
        "day": "2026-11-20",
        "groups": [LONGEST_NAME] * names,
        "tick": "2026-11-20T22:46:00.000Z",
        "execution": "arn:aws-us-gov:states:us-gov-west-1:123456789012:execution:" + "x" * 161,
    }


def test_the_largest_item_fits_into_a_payload() -> None:
    item = _item(MOST_GROUPS)
    assert len(json.dumps(item)) < PAYLOAD - 2_000
    assert Work.parse(item).groups[-1] == LONGEST_NAME


def test_terminate_reads_the_fields_that_decide_writes() -> None:
    tick = ast.parse((asl.ROOT / "functions" / "troop" / "chaos" / "flows" / "tick.py").read_text())
    work = next(n for n in ast.walk(tick) if isinstance(n, ast.FunctionDef) and n.name == "_work")
    (written,) = [n.value for n in ast.walk(work) if isinstance(n, ast.Return)]
    assert isinstance(written, ast.Dict)
    keys = {k.value for k in written.keys if isinstance(k, ast.Constant)}
    terminate = ast.parse((asl.ROOT / "functions" / "troop" / "chaos" / "flows" / "termination.py").read_text())
    assert keys == asl.subscripts(terminate, "raw") == set(_item(1))


def test_results_of_all_terminations_fit_into_a_payload() -> None:
    """Without a ResultWriter the results of a Distributed Map are one payload."""
    inner = next(level for level in asl.levels(MACHINE) if level.where == "TerminateAll/")
    ends = [state for state in inner.states.values() if state["Type"] == "Succeed" or state.get("End")]
    assert [(end["Type"], end["InputPath"]) for end in ends] == [("Pass", "$.status")]
    longest = max((*Status, "REFUSED"), key=len)
    assert len(json.dumps([longest] * MOST_IN_FLIGHT)) < PAYLOAD


def test_the_map_starts_no_more_children_than_may_be_in_flight() -> None:
    assert STATES["TerminateAll"]["MaxConcurrencyPath"] == "$.decided.max_in_flight"
    assert STATES["TerminateAll"]["ToleratedFailurePercentage"] == 100
    assert STATES["AnythingDue"]["Choices"][0]["NumericGreaterThan"] == 0
    assert STATES["AnythingDue"]["Default"] != "TerminateAll", "no map run for an empty list"


def test_a_failed_sweep_costs_no_chaos_but_fails_the_execution() -> None:
    assert [c["Next"] for c in STATES["Sweep"]["Catch"]] == ["Decide"]
    assert STATES["WasSweepComplete"]["Choices"][0]["Next"] == "SweepFailed"
    assert STATES["SweepFailed"]["Type"] == "Fail"
    assert STATES["AnythingDue"]["Default"] == STATES["TerminateAll"]["Next"] == "WasSweepComplete"


def test_now_is_the_workflows_never_the_schedules() -> None:
    for name in ("Sweep", "Decide"):
        assert STATES[name]["Parameters"]["Payload"]["started.$"] == "$$.Execution.StartTime"
    assert WATCH["Parameters"]["Payload"]["entered.$"] == "$$.State.EnteredTime"
