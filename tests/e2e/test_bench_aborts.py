"""Whatever state a run's workflow, or a teardown, is stopped in: nothing of the run is left, and its record says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.benches import EXHAUSTIVE, NOTHING, Bench, assert_nothing_left, left, states_of, step_of

AT_ONCE = 6
"""Runs at a time."""

CREATIONS = ("CreateSecurityGroup", "CreateLaunchTemplate", "CreateAutoScalingGroup")


BACKING_UP = ("", "UpdateAutoScalingGroup", "CreateAutoScalingGroup")
NO_SPOT = "m7g.xlarge"
"""An instance type that spot does not have."""


@dataclass(frozen=True)
class Stop:
    """A state to stop an execution in.

    Attributes:
        teardown: whether it is the teardown's own execution that is stopped, instead of the run's.
        orders: what brings a run to that state, and keeps it there.
        role: of the run's node.
        fleet: further keys of its fleet.
    """

    name: str
    orders: Mapping[str, Any]
    teardown: bool = False
    role: str = "drivers"
    fleet: Mapping[str, Any] = field(default_factory=dict)


def _leading_to(states: Mapping[str, dict[str, Any]], wait: str) -> str:
    """The step whose answer a wait reads first: of the task before it, with or without a choice in between."""
    direct = [state for state in states.values() if state["Type"] == "Task" and state.get("Next") == wait]
    choices = [
        name
        for name, state in states.items()
        if state["Type"] == "Choice" and wait in [state.get("Default"), *(c["Next"] for c in state["Choices"])]
    ]
    behind = [state for state in states.values() if state["Type"] == "Task" and state.get("Next") in choices]
    return step_of((direct or behind)[0])


def _stops(machine: str) -> Iterator[Stop]:
    """A stop for every state in which time passes; the others (choices and the like) are over when they begin."""
    states, is_teardown = states_of(machine), machine == "teardown"
    suffix = " run" if is_teardown else ""
    for name, state in states.items():
        if state["Type"] == "Wait":
            yield Stop(f"{machine}-{name}", {"stretch": {"step": _leading_to(states, name) + suffix}}, is_teardown)
        elif state["Type"] == "Task":
            if "Payload" in state["Parameters"]:
                step = step_of(state) + (suffix if "work.$" in state["Parameters"]["Payload"] else "")
            else:  # it waits for a teardown, of a cell or of the run
                step = "close" if "cell.$" in state["Parameters"]["Input"] else "close run"
            role = "failing" if step == "fail" else "drivers"
            befores = {"launch": ("", *CREATIONS), "backup": BACKING_UP}.get(step, ("",))
            fleet = {"purchase": "spot", "instance_type": NO_SPOT} if step == "backup" else {}
            for before in befores:
                where = f"{machine}-{name}" + (f"-{before}" if before else "")
                yield Stop(where, {"pause": {"step": step, "before": before}}, is_teardown, role, fleet)


TELLING = ("benchmark-Launch-CreateSecurityGroup", "benchmark-BeforeGather", "benchmark-Check", "teardown-Remove")
"""The stops of every test run: while things are created, boot, measure, and are removed. All together take minutes."""

STOPS = {
    stop.name: stop
    for machine in ("benchmark", "teardown")
    for stop in _stops(machine)
    if EXHAUSTIVE or stop.name in TELLING
}


@pytest.fixture(scope="module")
def stopped(bench: Bench) -> Iterator[Callable[[str], str]]:
    """The run that was stopped in a state, by the state's name. Several are under way at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs: dict[str, Future[str]] = {name: pool.submit(_stopped, bench, stop) for name, stop in STOPS.items()}
        yield lambda name: runs[name].result()


def _stopped(bench: Bench, stop: Stop) -> str:
    bench.account.make_scarce(NO_SPOT, 0, "MaxSpotInstanceCountExceeded", "spot")
    run = bench.start(stop.name, {stop.role: 1}, stop.orders, fleets={stop.role: stop.fleet})
    bench.await_there(run)
    if stop.teardown:
        bench.abort_teardown(run)
    else:
        bench.abort(run)
    bench.let_go(run)  # a function goes on though nobody waits for it any more
    bench.ended(run)
    return run


@pytest.mark.parametrize("name", STOPS)
def test_whatever_it_is_stopped_in_nothing_is_left(bench: Bench, stopped: Callable[[str], str], name: str) -> None:
    run = stopped(name)
    detail = assert_nothing_left(bench, run)
    if not STOPS[name].teardown:
        assert bench.execution(run)["status"] == "ABORTED"
    if name.split("-")[1] in ("Launch", "BeforeGather", "Gather", "Backup", "Release", "BeforeCheck", "Check"):
        assert detail["run"]["status"] == "FAILED"
        assert "was stopped" in detail["run"]["reason"]
        assert {cell["status"] for cell in detail["cells"]} == {"FAILED"}


def test_a_function_that_goes_on_behind_a_stopped_launch_has_created_what_was_removed(
    bench: Bench, stopped: Callable[[str], str]
) -> None:
    """What was about to be created when the workflow was stopped was created after that, and is on record as gone."""
    detail = bench.detail(stopped("benchmark-Launch-CreateSecurityGroup"))
    (group,) = [one for one in detail["resources"] if one["kind"] == "security-group"]
    assert group["created_at"]
    assert group["gone_at"]


def test_nothing_at_all_is_left(bench: Bench, stopped: Callable[[str], str]) -> None:
    for name in STOPS:
        stopped(name)
    assert left(bench.account, {"troop:deployment": bench.deployment.name}) | {"security groups": []} == NOTHING
