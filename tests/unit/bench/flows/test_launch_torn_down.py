"""The step Launch dies at any of its creations; a teardown of the run then leaves nothing of it, and only of it."""

from __future__ import annotations

from typing import Any

import pytest

from handlers import teardown
from tests.unit.account.account import CONTEXT, Account, Kill, calls, cut_at, cuts
from tests.unit.account.benches import Bench
from troop.bench.records.record import RunStatus
from troop.bench.wiring.inventory import tagged_resources


def _tear_down(account: Account, run: str) -> None:
    def step(name: str, work: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = teardown.handler({"step": name, "work": work, "execution": "e"}, CONTEXT)
        return answer

    work = step("close", {"run": run, "status": "STOPPED", "reason": "stopped by ann"})
    while not (work := step("remove", work))["over"]:
        account.clock.forward(seconds=work["wait_seconds"])
    step("conclude", work)


def test_a_launch_that_dies_at_a_creation_leaves_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = bench.again("beside")
    beside.launched()
    others = tagged_resources().find(beside.run)
    assert len(others) >= 5

    whole = bench.again("whole")
    whole.open()
    with calls(monkeypatch) as operations:
        whole.launch()
    _tear_down(bench.account, whole.run)
    creations = [number for number, name in enumerate(operations) if name.startswith("Create")]
    assert {"CreateSecurityGroup", "CreateLaunchTemplate", "CreateAutoScalingGroup"} <= set(operations)
    for number, acted in cuts(creations):
        cut = bench.again(f"cut {number} {acted}")
        cut.open()
        with calls(monkeypatch, cut_at(number, acted, Kill)), pytest.raises(Kill):
            cut.launch()
        _tear_down(bench.account, cut.run)
        words = f"cut at call {number}, {operations[number]}, {'after' if acted else 'before'} it acted"
        assert tagged_resources().find(cut.run) == [], words
        assert [r for r in bench.runs.resources.get_all(cut.run) if not r.gone_at] == [], words
        assert bench.runs.get(cut.run).status is RunStatus.STOPPED, words
    assert {one.id for one in tagged_resources().find()} == {one.id for one in others}
