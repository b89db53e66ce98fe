"""The workflow of a run against the service's quotas, at the limits of what is admitted; all ways lead to teardown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from tests.machines import asl
from tests.machines.expressions import expressions
from troop.bench.definition.definition import BETWEEN, MOST_POINTS, Phase
from troop.bench.definition.keys import seconds
from troop.bench.file import models
from troop.bench.flows.launching import LONGEST
from troop.bench.measuring import execution_history
from troop.bench.measuring.execution_history import LONGEST_CELL
from troop.bench.measuring.poll_waits import FIRST_WAIT, LONGEST_WAIT, wait, wait_in_phase
from troop.bench.measuring.verdicts import GRACE, LONGEST_REASON, State
from troop.bench.records.record import CellStatus, RunStatus

PAYLOAD = 256 * 1024

MACHINE = asl.load(asl.ROOT / "statemachines" / "benchmark.asl.json")
LEVELS = {level.where: level for level in asl.levels(MACHINE)}
RUN, CELL = LEVELS[""], LEVELS["Cells/"]
STATES = dict(asl.states(MACHINE))

LONGEST_RUN = seconds(models.LONGEST_RUN)
MOST_PHASES = 50
MOST_STEPS = 2 * MOST_POINTS - 1 + MOST_PHASES - 1
"""With a script between points, and phases that run once."""
START = datetime(2026, 11, 20, tzinfo=UTC)


def _ends(level: asl.Level) -> set[str]:
    return {name for name, state in level.states.items() if state.get("End") or state["Type"] in ("Succeed", "Fail")}


# Where it leads


@pytest.mark.parametrize(("level", "teardown"), [(CELL, "TearDownCell"), (RUN, "TearDown")])
def test_no_way_leads_past_teardown(level: asl.Level, teardown: str) -> None:
    assert _ends(level)
    assert not _ends(level) & asl.reached(level.start, level.states, without=teardown)


def test_whatever_a_step_of_a_cell_fails_of_is_recorded_before_teardown() -> None:
    for name, state in CELL.states.items():
        for rule in state.get("Catch", []):
            assert rule["ErrorEquals"] == ["States.ALL"], name
            after = {"FailCell": "TearDownCell", "TearDownCell": "CellIsLeftOver", "Again": "CellOver"}
            expected = after.get(name, "FailCell")
            assert rule["Next"] == expected, name
        if state["Type"] == "Choice":
            assert state["Default"] == ("CellOver" if name == "IsThereAnother" else "FailCell"), name


def test_a_cell_that_fails_is_settled_as_one_that_does_not() -> None:
    cells = STATES["Cells"]
    assert cells["ToleratedFailurePercentage"] == 100
    assert "ToleratedFailureCount" not in cells  # either limit alone would end the map
    assert cells["Next"] == cells["Catch"][0]["Next"] == "Settle"
    assert cells["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}


def test_concurrency_of_cells_is_that_of_the_run() -> None:
    """A path that leads nowhere is an error that nothing catches: the first step always answers with it."""
    assert STATES["Cells"]["MaxConcurrencyPath"] == "$.parallel"
    assert "MaxConcurrency" not in STATES["Cells"]
    assert STATES["Open"]["ResultSelector"]["parallel.$"] == "$.Payload.parallel"
    assert "ResultPath" not in STATES["Open"]


def test_only_a_run_that_succeeded_ends_well() -> None:
    (good,) = STATES["WasGood"]["Choices"]
    assert (good["StringEquals"], good["Next"]) == (RunStatus.SUCCEEDED, "RunSucceeded")
    assert STATES[STATES["WasGood"]["Default"]]["Type"] == "Fail"
    assert STATES["NotSettled"]["Result"]["status"] == RunStatus.FAILED
    assert [name for name, state in RUN.states.items() if state["Type"] == "Succeed"] == ["RunSucceeded"]


def test_every_answer_of_a_step_has_its_way() -> None:
    def ways(choice: str) -> dict[str, str]:
        return {rule["StringEquals"]: rule["Next"] for rule in STATES[f"Cells/{choice}"]["Choices"]}

    assert ways("AreAllThere") == {
        State.WAITING: "BeforeGather",
        State.READY: "Release",
        State.SHORT: "Backup",
    }
    assert ways("IsThereAnother") == {State.AGAIN: "Launch"}
    assert ways("HowIsThePhase") == {State.WAITING: "BeforeCheck", State.NEXT: "Release", State.DONE: "Collect"}


def test_permanent_error_is_not_retried() -> None:
    def at_once(name: str) -> set[str]:
        return {e for r in STATES[name]["Retry"] if r.get("MaxAttempts") == 0 for e in r["ErrorEquals"]}

    assert at_once("Cells/Launch") >= {"RunClosedError", "LaunchImpossibleError", "DefinitionError"}
    assert at_once("Cells/Backup") == at_once("Cells/Launch")
    assert "RunClosedError" in at_once("Cells/Release")
    assert "SummaryError" in at_once("Cells/Collect")


def test_each_execution_that_is_waited_for_names_its_starter() -> None:
    """So that the console shows which run a teardown belongs to."""
    executions = dict(asl.executions(MACHINE))
    assert set(executions) == {"TearDown", "Cells/TearDownCell"}
    for task in executions.values():
        payload = task["Parameters"]["Input"]
        assert payload["AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID.$"] == "$$.Execution.Id"
        assert payload["run.$"] == "$.run"
    assert "cell.$" not in executions["TearDown"]["Parameters"]["Input"]


# Time


def test_the_right_to_create_outlives_the_function_that_has_it() -> None:
    assert LONGEST.total_seconds() >= asl.function_timeouts()["launch"]
    assert STATES["Cells/Launch"]["TimeoutSeconds"] > LONGEST.total_seconds()
    assert STATES["Cells/Backup"]["TimeoutSeconds"] > LONGEST.total_seconds()


def _worst(task: Mapping[str, Any]) -> float:
    """Seconds that a task takes at most, with all its retries."""
    if task["Resource"] == "${LambdaInvoke}":
        return asl.worst(task)
    (retrier,) = task["Retry"]
    return float((retrier["MaxAttempts"] + 1) * task["TimeoutSeconds"] + asl.waits(retrier))


def test_the_machine_outlives_the_longest_run() -> None:
    around = ["Open", "Settle", "TearDown", "Cells/FailCell", "Cells/TearDownCell", "Cells/Again"]
    # A run ends by itself at its expiry; a step that is at work then may still take its time.
    last = max(_worst(STATES[name]) for name in ("Cells/Launch", "Cells/Gather", "Cells/Check", "Cells/Collect"))
    assert MACHINE["TimeoutSeconds"] > LONGEST_RUN + last + sum(_worst(STATES[name]) for name in around)


# Events


def _looks(phases: int, seconds: float) -> int:
    """Looks at a cell that takes its time: it boots, and then does phases of equal length, each to its last moment."""
    each = seconds / (phases + 1)
    looks, elapsed = 0, 0.0
    while elapsed < each:
        elapsed += wait(elapsed)
        looks += 1
    for measured in (False, True) * (phases // 2) + (False,) * (phases % 2):
        length = int(each) - GRACE - 1
        phase = Phase("p", ("r",), "s", length, measured=length // 2 if measured else 0)
        now = began = START + timedelta(seconds=5 if measured else 0)
        while now - began < timedelta(seconds=each):
            now += timedelta(seconds=wait_in_phase(phase, began, now))
            looks += 1
    return looks


def _most_events(looks: int, releases: int, seconds: float) -> float:
    """Events of all looks and releases: the cell's time that tries of the one take is not there for the other."""
    release, check = STATES["Cells/Release"], STATES["Cells/Check"]
    assert asl.retriers(check) == (STATES["Cells/Gather"]["Retry"][0], STATES["Cells/Gather"]["Retry"][-1])
    passing, failed = asl.retriers(release)
    most = 0.0
    for refused, failures in product(range(passing["MaxAttempts"] + 1), range(failed["MaxAttempts"] + 1)):
        left = seconds - releases * (asl.waits(passing, refused) + asl.waits(failed, failures)) / 2
        if left <= 0:
            continue
        looked = asl.most_events(check, looks * left / seconds, left)
        most = max(most, releases * (2 + 3 * (1 + refused + failures)) + looked)
    return most


def _cells() -> Iterator[tuple[int, int, float]]:
    """Steps and number of attempts, and the most seconds of all attempts that are admitted with them."""
    for steps in (1, 2, 5, 20, MOST_PHASES, 60, 80, 100, 130, 150, 180, 200, MOST_STEPS):
        if (seconds := execution_history.most_seconds(steps)) >= steps * (BETWEEN + 1):
            yield steps, 1, seconds
    for steps, attempts in ((1, 5), (8, 5), (13, 3), (20, 2), (20, 5), (40, 3), (50, 2), (80, 2)):
        allowed = [s for s in range(0, LONGEST_CELL + 1, 600) if execution_history.allows_further(s, steps * attempts)]
        if allowed and allowed[-1] >= steps * attempts * (BETWEEN + 1):
            yield steps, attempts, allowed[-1]


@pytest.mark.parametrize(("steps", "attempts", "seconds"), [*_cells()])
def test_the_longest_cell_fits_into_one_execution_history(steps: int, attempts: int, seconds: float) -> None:
    """All attempts share the time of the run, each of them with the same part of it."""
    looks = attempts * _looks(steps, seconds / attempts)
    assert looks >= seconds / LONGEST_WAIT
    tries = 1 + max(sum(r["MaxAttempts"] for r in task["Retry"]) for task in CELL.states.values() if "Retry" in task)
    around = 2 + attempts * (6 * (2 + 3 * tries) + 2) + 2
    assert _most_events(looks, attempts * steps, seconds) + around < asl.HISTORY


def test_the_most_points_are_admitted_in_a_cell_of_hours() -> None:
    assert execution_history.most_seconds(MOST_POINTS) >= 12 * 3600
    assert execution_history.most_seconds(2 * MOST_POINTS - 1) > 0, "with a script between all of them"


def test_no_more_phases_are_admitted_than_fit() -> None:
    schema = json.loads((asl.ROOT / "benchmarks" / "benchmark.schema.json").read_text())
    assert schema["properties"]["phases"]["maxItems"] <= MOST_PHASES


def test_waits_grow_from_two_seconds_to_a_minute() -> None:
    elapsed, waits = 0.0, []
    while elapsed < 3600:
        waits.append(wait(elapsed))
        elapsed += waits[-1]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (FIRST_WAIT, LONGEST_WAIT) == (2, 60)


# Payloads


SMALL = {
    *("run", "cell", "bucket", "key", "parallel", "error"),
    *("phase_index", "state", "wait_seconds", "status", "reason"),
}


def test_nothing_but_small_fields_is_passed_on() -> None:
    """Lists of nodes, documents and results travel through S3; the workflow hands on ids, numbers and short words."""
    for name, task in asl.calls(MACHINE):
        assert "ResultPath" not in task or task["ResultPath"] in ("$.at", "$.end"), name
        fields = {key.removesuffix(".$") for key in task["ResultSelector"]}
        assert fields <= SMALL


def test_the_largest_payload_fits() -> None:
    cause = "c" * 32_768
    run, cell = "20261121-150312-1f0c9b2e", "c001"
    state = {
        "run": run, "cell": cell, "error": {"Error": "E" * 256, "Cause": cause}, "torn_down": {"status": "SUCCEEDED"},
        "fail_error": {"Error": "E" * 256, "Cause": cause},
        "at": {"phase_index": MOST_STEPS, "state": max(State, key=len), "wait_seconds": LONGEST_WAIT},
        "end": {"status": max(RunStatus, key=len), "reason": "r" * LONGEST_REASON},
    }  # fmt: skip
    assert len(json.dumps(state)) < PAYLOAD


def test_results_of_all_cells_fit_into_a_payload() -> None:
    ends = [state for state in CELL.states.values() if state.get("End")]
    assert [(end["Type"], end["InputPath"]) for end in ends] == [("Pass", "$.cell")]
    assert len(json.dumps(["c001"] * 10_000)) < PAYLOAD


def test_the_machine_asks_for_no_intrinsic_functions() -> None:
    """Not all that emulates Step Functions has them."""
    texts: Iterable[str] = expressions(MACHINE)
    assert not [e for e in texts if e.startswith(("States.", "{%"))]


def test_no_status_of_a_cell_is_unknown_to_the_run() -> None:
    assert set(CellStatus) - {"PENDING", "RUNNING", "INVALID"} <= set(RunStatus)
