"""Lasting faults, from the claim to the proof of their end: the way, and what comes back to it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.account.account import WEB, Account, Call, calls
from tests.unit.account.injecting import (
    METHODS,
    WITH_FAULTS,
    claimed,
    come_back,
    command_changed,
    injection_of,
    over,
    running,
    wait,
)
from tests.unit.account.insides import Insides
from troop.chaos.events import Status
from troop.chaos.flows.clock_check import ClockError
from troop.chaos.injection import Way
from troop.chaos.injection_rules import UNPROVEN, comment_of, first_backstop
from troop.shared import moments
from troop.shared.choice import parse_choice

pytestmark = WITH_FAULTS


@pytest.mark.parametrize("method", METHODS)
def test_from_the_claim_to_the_proof_and_the_recovery(account: Account, insides: Insides, method: str) -> None:
    claim = claimed(account, insides, method)
    assert wait(account) == {WEB: "RUNNING"}
    event, (command,) = account.event(WEB), insides.injected
    fault = parse_choice(method).lasting
    assert fault
    assert (command.document, command.instance_id, command.comment) == (
        fault.document,
        claim.instance_id,
        comment_of(WEB),
    )
    assert command.parameters == fault.request(injection_of(claim).parameters) | {"InstallDependencies": "False"}
    assert (event.attempts, injection_of(event).command_id) == (1, command.command_id)
    assert insides.present(command.at + timedelta(seconds=1))
    event = over(account, insides)
    injection = injection_of(event)
    assert not insides.present()
    assert injection.proof
    assert injection.proof.by is Way.PROBE
    assert insides.answers == [("token", {"event_id": WEB, "status": "RUNNING", "settles_at": None})]
    assert len(insides.injected) == 1
    account.wait_for_recovery(WEB, "another")
    event = account.event(WEB)
    assert (event.status, account.gone()) == (Status.RECOVERED, [])
    assert event.recovery_seconds is not None
    assert event.recovery_seconds < 10
    assert event.verdict
    assert event.verdict.why.startswith("the fault was proven over after ")
    assert account.count("in-flight") == 0


def test_an_event_of_systems_manager_starts_the_proof_at_once(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    account.clock.moment = insides.injected[0].ends
    assert command_changed(account, event) == {WEB: "RUNNING"}
    proof = injection_of(account.event(WEB)).proof
    assert proof
    assert proof.at - insides.injected[0].ends <= timedelta(seconds=5)
    assert [token for token, _ in insides.answers] == ["token"]


def test_the_backstop_exists_before_the_fault(
    account: Account, insides: Insides, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed(account, insides)
    seen: list[bool] = []

    def watched(number: int, operation: str, call: Call) -> Any:
        if operation == "TransactWriteItems" and not seen:
            seen.append(bool(insides.schedules))
        return insides(number, operation, call)

    with calls(monkeypatch, watched):
        wait(account)
    assert seen == [True]
    ((_, expression, call),) = insides.schedules
    ends_by = injection_of(account.event(WEB)).ends_by
    assert ends_by
    assert expression == f"at({first_backstop(ends_by, account.clock()):%Y-%m-%dT%H:%M}:00)"
    assert call == {"event_id": WEB, "due": "<aws.scheduler.scheduled-time>"}


def _backstops_alone(account: Account, insides: Insides, until: datetime) -> None:
    """Nobody but backstops calls, each as late as Scheduler may."""
    called: set[str] = set()
    while True:
        due = sorted(
            (datetime.fromisoformat(expression[3:-1] + "+00:00"), name)
            for name, expression, _ in insides.schedules
            if name not in called
        )
        if not due or due[0][0] > until:
            return
        moment, name = due[0]
        called.add(name)
        account.clock.moment = max(account.clock(), moment + timedelta(seconds=59))
        come_back(account)


@pytest.mark.parametrize("method", METHODS)
def test_a_dead_workflow_is_replaced_by_backstops(account: Account, insides: Insides, method: str) -> None:
    event = running(account, insides, method)
    ends_by = injection_of(event).ends_by
    assert ends_by
    _backstops_alone(account, insides, ends_by + UNPROVEN)
    proof = injection_of(account.event(WEB)).proof
    assert proof
    assert proof.at <= ends_by + UNPROVEN
    assert not insides.present()
    assert len(insides.schedules) <= 4


def test_backstops_repair_what_a_dead_agent_has_left(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    ends_by, insides.dead_since = injection_of(event).ends_by, account.clock()
    assert ends_by
    _backstops_alone(account, insides, ends_by + UNPROVEN)
    event = account.event(WEB)
    assert (event.status, account.gone()) == (Status.TERMINATED, [event.instance_id])
    assert event.terminated_at
    assert event.terminated_at <= ends_by + UNPROVEN


def test_a_round_of_all_faults_finds_one_that_has_lost_its_backstop(account: Account, insides: Insides) -> None:
    """Such as that of a deployment from which the setting was removed while a fault ran."""
    event = running(account, insides)
    insides.schedules.clear()
    account.clock.forward(hours=2)
    assert account.inject(due=moments.iso(account.clock())) == {WEB: "TERMINATED"}
    assert account.gone() == [event.instance_id]
    assert len(insides.schedules) == 1
    account.clock.forward(minutes=15)
    assert account.inject(due=moments.iso(account.clock())) == {WEB: "TERMINATED"}
    assert len(insides.schedules) == 1


def test_a_late_backstop_arms_another_and_does_nothing_else(account: Account, insides: Insides) -> None:
    """Its clock can be wrong: then it would end the fault too soon, and the next one comes too late. So it fails, and
    Lambda repeats it.
    """
    running(account, insides)
    scheduled = account.clock()
    account.clock.forward(minutes=20)
    with pytest.raises(ClockError):
        account.inject(event_id=WEB, due=moments.iso(scheduled))
    assert len(insides.schedules) == 2
    assert (account.event(WEB).status, account.gone()) == (Status.RUNNING, [])


def test_a_clock_that_is_behind_arms_by_scheduler_s(account: Account, insides: Insides) -> None:
    """Otherwise the next one would be due by the wrong clock, and a function with such a clock would not notice it."""
    running(account, insides)
    scheduled = account.clock()
    account.clock.moment -= timedelta(hours=1)
    with pytest.raises(ClockError):
        account.inject(event_id=WEB, due=moments.iso(scheduled))
    _, expression, _ = insides.schedules[-1]
    assert datetime.fromisoformat(expression[3:-1] + "+00:00") > scheduled


def test_a_backstop_of_what_is_over_arms_no_other(account: Account, insides: Insides) -> None:
    running(account, insides)
    over(account, insides)
    assert come_back(account) == {WEB: "RUNNING"}
    assert len(insides.schedules) == 1


def test_a_workflow_whose_clock_is_not_the_function_s_injects_nothing(account: Account, insides: Insides) -> None:
    claimed(account, insides)
    with pytest.raises(ClockError):
        account.inject(event_id=WEB, entered=moments.iso(account.clock() - timedelta(hours=1)), token="token")
    assert insides.sent == []
