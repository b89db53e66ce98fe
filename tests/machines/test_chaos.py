"""The chaos workflow against the service's quotas, at the limits of the settings."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from perf.price import INJECT_SECONDS, faults
from tests.machines import asl
from troop.chaos.claim_rules import LAST_CALL, LONGEST_CLAIM
from troop.chaos.events import Status
from troop.chaos.flows.injector import BACKSTOP_SECONDS
from troop.chaos.flows.injector import CALL_SECONDS as INJECT_CALL_SECONDS
from troop.chaos.flows.termination import TRIES, TerminationForbiddenError, Work
from troop.chaos.recovery import CALL_SECONDS, LOST_AFTER, TARGETS_WAIT
from troop.faults.lasting_fault import LONGEST
from troop.shared.settings import OLDEST_TICK, Settings, declared
from troop.shared.values import BadValue

LONGEST_TIMEOUT = timedelta(minutes=720)
LONGEST_SETTLE = timedelta(hours=1)
MOST_IN_FLIGHT = 1000
LONGEST_NAME = "n" * 255
MOST_GROUPS = 500
"""The default quota of Auto Scaling groups in a region."""

PAYLOAD = 256 * 1024

MACHINE = asl.load(asl.ROOT / "statemachines" / "chaos.asl.json")
STATES = dict(asl.states(MACHINE))
WATCH, TERMINATE = STATES["TerminateAll/CheckRecovery"], STATES["TerminateAll/Terminate"]
INJECT = STATES["TerminateAll/Inject"]
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


MINUTES = WATCH["TimeoutSeconds"] / 60
"""Between two calls of the function that checks, at most."""


def _walk(machine: Mapping[str, Any], answers: Mapping[str, list[dict[str, Any] | str]]) -> list[str]:
    """The states that an execution enters: each is a transition. A task is answered by its next answer, or fails with
    an error's name.
    """
    inner = next((level for level in asl.levels(machine) if level.where == "TerminateAll/"), None)
    name, states = (inner.start, inner.states) if inner else (machine["StartAt"], machine["States"])
    left = {task: list(its) for task, its in answers.items()}
    entered: list[str] = []
    data: dict[str, Any] = {}
    while name:
        state = states[name]
        entered.append(name)
        if state["Type"] == "Choice":
            name = next((one["Next"] for one in state["Choices"] if _holds(one, data)), state["Default"])
            continue
        answer = left[name].pop(0) if state["Type"] == "Task" else {}
        if isinstance(answer, str):
            name = next(one["Next"] for one in state["Catch"] if answer in one["ErrorEquals"])
            continue
        data = {**data, **answer}
        name = state.get("Next", "")
    assert not any(left.values())
    return entered


def _holds(rule: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    value = data[rule["Variable"].removeprefix("$.")]
    return isinstance(value, str) and (rule["StringEquals"] == value if "StringEquals" in rule else rule["IsString"])


TERMINATED = {"status": "TERMINATED", "next": "recovery"}
INJECTS = {"status": "CLAIMED", "next": "inject"}
PROVEN = {"status": "RUNNING", "settles_at": None}
REPLACED = {"status": "TERMINATED", "settles_at": None}
NOT_INJECTED = {"status": "ABANDONED", "settles_at": None}
RECOVERED = {"status": "RECOVERED", "settles_at": None}
SETTLES = {"status": "RECOVERED", "settles_at": "2026-11-20T23:00:00.000Z"}
MACHINES = [MACHINE, asl.load(asl.ROOT / "statemachines" / "on_demand.asl.json")]
both_machines = pytest.mark.parametrize("machine", MACHINES, ids=["tick", "on demand"])


@both_machines
@pytest.mark.parametrize(
    ("answers", "transitions"),
    [
        ([RECOVERED], 5),
        (["States.Timeout", RECOVERED], 6),
        (["States.Timeout", "States.Timeout", RECOVERED], 7),
        ([SETTLES, RECOVERED], 8),
        (["States.Timeout", SETTLES, RECOVERED], 9),
    ],
)
def test_a_recovery_takes_few_transitions(
    machine: Mapping[str, Any], answers: list[dict[str, Any] | str], transitions: int
) -> None:
    """One of three minutes, without alarms: at most seven. Its verdict costs three."""
    entered = _walk(machine, {"Terminate": [TERMINATED], "CheckRecovery": answers})
    assert entered[-1] == "Over"
    assert len(entered) == transitions
    if len(answers) == 1 + int(3 / MINUTES) and SETTLES not in answers:
        assert len(entered) <= 7


@both_machines
def test_the_workflow_ends_without_a_termination(machine: Mapping[str, Any]) -> None:
    abandoned = {"status": "ABANDONED", "next": "over"}
    assert _walk(machine, {"Terminate": [abandoned]}) == ["Terminate", "WhatIsNext", "Over"]


@both_machines
def test_a_fault_of_five_minutes_takes_the_transitions_that_its_costs_name(machine: Mapping[str, Any]) -> None:
    """Twelve: six rounds while it lasts and is proven to be over, and six that every fault has."""
    inject: list[dict[str, Any] | str] = [*["States.Timeout"] * 5, PROVEN]
    entered = _walk(machine, {"Terminate": [INJECTS], "Inject": inject, "CheckRecovery": [RECOVERED]})
    assert entered[:3] == ["Terminate", "WhatIsNext", "Inject"]
    assert entered[-4:] == ["IsOver", "CheckRecovery", "IsSettled", "Over"]
    (priced,) = (one.units for one in faults(1, 300) if one.kind == "transition")
    assert len(entered) == priced == 12


@both_machines
@pytest.mark.parametrize(
    ("answer", "after"),
    [
        (PROVEN, ["CheckRecovery", "IsSettled", "Over"]),
        (REPLACED, ["CheckRecovery", "IsSettled", "Over"]),
        (NOT_INJECTED, ["IsSettled", "Over"]),
        (RECOVERED, ["IsSettled", "Over"]),  # a check of recovery was faster
        (SETTLES, ["IsSettled", "Settle", "CheckRecovery", "IsSettled", "Over"]),
    ],
)
def test_recovery_is_checked_after_a_fault_and_only_then(
    machine: Mapping[str, Any], answer: dict[str, Any], after: list[str]
) -> None:
    checks = [RECOVERED] if "CheckRecovery" in after else []
    entered = _walk(machine, {"Terminate": [INJECTS], "Inject": [answer], "CheckRecovery": list(checks)})
    assert entered[3:] == ["IsOver", *after]


@both_machines
def test_an_execution_that_cannot_follow_a_fault_fails_and_is_not_over(machine: Mapping[str, Any]) -> None:
    """Its failure turns an alarm on, and the event stays open for the backstop."""
    entered = _walk(machine, {"Terminate": [INJECTS], "Inject": ["States.Timeout", "States.ALL"]})
    assert entered == ["Terminate", "WhatIsNext", "Inject", "Inject", "InjectFailed"]


@pytest.mark.parametrize("inject", [INJECT, ON_DEMAND["Inject"]], ids=["tick", "on demand"])
def test_a_workflow_follows_its_fault_nearly_always_and_with_one_call(inject: Mapping[str, Any]) -> None:
    assert inject["TimeoutSeconds"] == INJECT_SECONDS
    assert INJECT_CALL_SECONDS < inject["TimeoutSeconds"] <= INJECT_CALL_SECONDS + 10
    longest = max(inject["TimeoutSeconds"], BACKSTOP_SECONDS)
    assert asl.function_timeouts()["inject"] >= longest + 25, "its last request may be repeated"


def test_a_fault_that_nobody_can_prove_fits_into_one_execution_history() -> None:
    """It stays open while its instance must not be terminated, up to the end of the execution."""
    seconds = MACHINE["TimeoutSeconds"]
    assert asl.most_events(INJECT, seconds / INJECT["TimeoutSeconds"], seconds) < asl.HISTORY


@pytest.mark.parametrize("watch", [WATCH, ON_DEMAND["CheckRecovery"]], ids=["tick", "on demand"])
def test_looks_at_slow_targets_follow_one_another(watch: Mapping[str, Any]) -> None:
    """The next call begins when the last look of the one before is over, and the pause until its next."""
    assert 0 < watch["TimeoutSeconds"] - CALL_SECONDS <= TARGETS_WAIT + 1
    assert asl.function_timeouts()["check_recovery"] > watch["TimeoutSeconds"]


@pytest.mark.parametrize("watch", [WATCH, ON_DEMAND["CheckRecovery"]], ids=["tick", "on demand"])
def test_a_lost_watch_is_one_that_several_calls_have_missed(watch: Mapping[str, Any]) -> None:
    assert LOST_AFTER.total_seconds() > 2 * watch["TimeoutSeconds"]


def test_the_longest_watch_fits_into_one_execution_history() -> None:
    looks = LONGEST_TIMEOUT.total_seconds() / WATCH["TimeoutSeconds"]
    started_and_terminated = 2 + 2 + 3 * (1 + sum(r["MaxAttempts"] for r in TERMINATE["Retry"])) + 4
    assert asl.most_events(WATCH, looks, LONGEST_TIMEOUT.total_seconds()) + started_and_terminated < asl.HISTORY


PREVIOUS = {
    "terminate": {"event_id", "status", "reason", "next", "wait_seconds"},
    "check_recovery": {"event_id", "status", "wait_seconds"},
}
"""The fields that the definition before the waits by token takes from the functions' answers. Its executions, of up to
15 hours, go on by it.
"""


@pytest.mark.parametrize("function", sorted(PREVIOUS))
def test_functions_still_answer_executions_of_the_previous_definition(function: str) -> None:
    assert asl.returned(function) >= PREVIOUS[function]
    assert asl.subscripts(asl.handler_tree("check_recovery"), "event") == {"event_id", "entered"}
    assert asl.optional(asl.handler_tree("check_recovery"), "event") == {"token"}


def test_the_machine_outlives_the_longest_watch() -> None:
    last_work = OLDEST_TICK + timedelta(minutes=30)  # sweep and decide, retries and all
    fault = LONGEST_CLAIM + timedelta(seconds=LONGEST) + timedelta(minutes=5)
    assert MACHINE["TimeoutSeconds"] > (LONGEST_TIMEOUT + LONGEST_SETTLE + last_work + fault).total_seconds()


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
