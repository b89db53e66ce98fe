"""A function dies at any of its calls, before the call has acted or after: in the end nothing is left all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import Kill, calls, cut_at, cuts, ends
from tests.unit.bench.flows.removal.tables import NOON, RUN
from tests.unit.bench.flows.removal.test_teardown import all_gone
from tests.unit.bench.flows.removal.world import World, set_up
from troop.bench.records.record import RunStatus
from troop.bench.removal.reaping import PATIENCE
from troop.shared.errors import RunClosedError

READS = ("Describe", "Get", "Query", "List")
"""How operations begin that change nothing: to be cut off there is the same as at the next one that does."""

HURRY = 10
"""So many times as long are the waits for a dead launch's right to run out: each look is a dozen calls of moto."""

Do = Callable[[World], Any]


@contextmanager
def _prepared(monkeypatch: pytest.MonkeyPatch, prepare: Do) -> Iterator[World]:
    """An account of its own: moto gets slower with everything that was ever in one."""
    with set_up(monkeypatch) as world:
        world.doubles()
        prepare(world)
        yield world


def _operations(monkeypatch: pytest.MonkeyPatch, prepare: Do, work: Do) -> list[str]:
    with (
        _prepared(monkeypatch, prepare) as world,
        calls(monkeypatch) as operations,
    ):
        work(world)
    return operations


def _cut_everywhere(
    monkeypatch: pytest.MonkeyPatch, prepare: Do, work: Do, finish: Callable[[World, int], Any]
) -> list[str]:
    """Cuts ``work`` at each of its calls; the operations that were cut."""
    operations = _operations(monkeypatch, prepare, work)
    writes = [number for number, name in enumerate(operations) if not name.startswith(READS)]
    for count, (number, acted) in enumerate(cuts(writes)):
        with _prepared(monkeypatch, prepare) as world:
            with calls(monkeypatch, cut_at(number, acted, Kill)), pytest.raises(Kill):
                work(world)
            with _noted(f"cut at call {number}, {operations[number]}, {'after' if acted else 'before'} it acted"):
                finish(world, count)
                all_gone(world)
    return [operations[number] for number, _ in cuts(writes)]


def _at_every_call(monkeypatch: pytest.MonkeyPatch, prepare: Do, work: Do, between: Do, finish: Do) -> None:
    """Does ``between`` before those calls of ``work`` that change something: after what was read, before it is acted
    upon. Of each operation that is the first and the last call, with ``TROOP_EXHAUSTIVE`` all.
    """
    operations = _operations(monkeypatch, prepare, work)
    writes = ends((n for n, name in enumerate(operations) if not name.startswith(READS)), operations)
    assert len(writes) > 5
    for at, name in ((number, operations[number]) for number in writes):
        with _prepared(monkeypatch, prepare) as world:

            def intercepted(number: int, operation: str, call: Callable[[], Any], at: int = at, w: Any = world) -> Any:
                if number == at:
                    between(w)
                return call()

            with _noted(f"something else came before call {at}, {name}"):
                with calls(monkeypatch, intercepted):
                    work(world)
                finish(world)
                all_gone(world)


@contextmanager
def _noted(words: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(words)
        raise


def _launched(world: World) -> None:
    world.launched()


def test_teardown_that_dies_at_any_call_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By another teardown, as the reaper starts it; or by the workflow, which tries the step again."""
    last: dict[str, tuple[str, dict[str, Any]]] = {}

    def work(world: World) -> None:
        real = world.step

        def step(name: str, state: dict[str, Any]) -> dict[str, Any]:
            last["step"] = name, state
            return real(name, state)

        world.step = step  # type: ignore[method-assign,assignment]
        world.tear_down(status="SUCCEEDED")

    def finish(world: World, count: int) -> None:
        if count % 2:
            world.tear_down(status="FAILED", reason="its workflow was stopped")
            return
        name, state = last["step"]
        state = world.step(name, state)
        while name != "conclude":
            name = "conclude" if state.get("over") else "remove"
            state = world.step(name, state)
        assert world.runs.get(RUN).status is RunStatus.SUCCEEDED

    cut = _cut_everywhere(monkeypatch, _launched, work, finish)
    assert set(cut) > {"DeleteAutoScalingGroup", "DeleteLaunchTemplate", "DeleteSecurityGroup", "TransactWriteItems"}


def test_a_launch_that_dies_anywhere_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tears down waits until the dead one's right to create things has run out."""

    def finish(world: World, count: int) -> None:
        died, leased = world.now, bool(world.runs.launches.get_all(RUN))
        world.tear_down(hurry=HURRY, status="STOPPED", reason="stopped by ann")
        assert not leased or world.now > died + timedelta(seconds=310)

    cut = _cut_everywhere(monkeypatch, lambda w: w.admit(), lambda w: w.launch_by_the_rules(), finish)
    assert set(cut) > {"CreateAutoScalingGroup", "CreateLaunchTemplate", "CreateSecurityGroup"}


def test_a_run_that_is_stopped_before_any_change_of_its_launch_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed, and all that was there removed, just before the call."""
    state: dict[str, Any] = {}

    def launch(world: World) -> None:
        # Closed; or what it was about to use is gone already.
        with suppress(RunClosedError, ClientError):
            world.launch_by_the_rules()

    def stop(world: World) -> None:
        state.clear()
        state.update(world.step("close", {"run": RUN, "status": "STOPPED", "reason": "stopped by ann"}))
        for _ in range(2):
            state.update(world.step("remove", state))

    def finish(world: World) -> None:
        while not state["over"]:
            world.forward(seconds=state["wait_seconds"] * HURRY)
            state.update(world.step("remove", state))
        world.step("conclude", state)
        assert world.runs.get(RUN).status is RunStatus.STOPPED

    _at_every_call(monkeypatch, lambda w: w.admit(), launch, stop, finish)


def test_two_teardowns_of_one_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One runs as a whole before each call of the other."""
    _at_every_call(
        monkeypatch,
        _launched,
        work=lambda w: w.tear_down(status="SUCCEEDED"),
        between=lambda w: w.tear_down(status="STOPPED", reason="stopped by ann"),
        finish=lambda w: None,
    )


def test_a_reaper_that_dies_anywhere_finds_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run that has expired, and whose workflow goes on."""

    def prepare(world: World) -> None:
        _launched(world)
        world.start_workflow()
        world.clock.moment = NOON + timedelta(hours=3)

    def finish(world: World, count: int) -> None:
        world.forward(seconds=PATIENCE.total_seconds())
        world.reap()
        started = world.teardowns().values()
        assert started
        for work in started:
            world.tear_down(**work)

    cut = _cut_everywhere(monkeypatch, prepare, lambda w: w.reap(), finish)
    assert set(cut) > {"StartExecution", "StopExecution", "DeleteAutoScalingGroup", "TransactWriteItems"}
