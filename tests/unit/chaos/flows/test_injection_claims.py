"""Claims of lasting faults that inject nothing, and those that inject once, whatever fails in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.unit.account.account import WEB, Account, Call, Kill, before, calls, cuts
from tests.unit.account.injecting import (
    WITH_FAULTS,
    alarm,
    claimed,
    halt,
    halt_itself,
    injection_of,
    leash,
    opt_out,
    over,
    protect_group,
    protect_instance,
    untag_instances,
    wait,
)
from tests.unit.account.insides import PROBE, Insides
from troop import faults
from troop.chaos.aws.event_table import StepRefused
from troop.chaos.aws.injection_steps import InjectionSteps
from troop.chaos.events import AbandonReason, Status
from troop.chaos.injection import Way
from troop.chaos.probe import Probe

pytestmark = WITH_FAULTS


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (lambda reading: reading.update(rollbacks=1), "the instance is not clean: the probe found rollbacks 1"),
        (lambda reading: reading.update(missing=["stress-ng"]), "install stress-ng in its image"),
        (lambda reading: reading.update(stress=None), "could not read stress"),
        (lambda reading: reading.update(token="0" * 32), "has no answer"),
        (lambda reading: reading.update(boot=""), "has no answer"),
    ],
)
def test_an_instance_that_is_not_as_it_must_be_has_no_fault(
    account: Account, insides: Insides, forged: Callable[[dict[str, Any]], object], why: str
) -> None:
    insides.forged = forged
    claimed(account, insides)
    wait(account)
    event = account.event(WEB)
    assert (event.status, insides.injected, insides.schedules) == (Status.ABANDONED, [], [])
    assert why in event.detail
    assert insides.answers == [("token", {"event_id": WEB, "status": "ABANDONED", "settles_at": None})]
    assert account.gone() == []


def test_a_silent_instance_has_no_fault(account: Account, insides: Insides) -> None:
    insides.dead_since = account.clock()
    claimed(account, insides)
    event = over(account, insides)
    assert (event.status, insides.injected) == (Status.ABANDONED, [])
    assert "no answer within 60 s" in event.detail


@pytest.mark.parametrize("answer", [("InternalServerError", 500), ("ThrottlingException", 400)])
def test_a_probe_that_aws_has_not_taken_is_sent_again(
    account: Account, insides: Insides, answer: tuple[str, int]
) -> None:
    claimed(account, insides)
    insides.refusals[PROBE] = answer
    wait(account)
    assert account.event(WEB).status is Status.CLAIMED
    insides.refusals.clear()
    account.clock.forward(seconds=11)
    wait(account)
    assert (account.event(WEB).status, len(insides.probes)) == (Status.RUNNING, 1)


STOPS = [
    (halt, AbandonReason.SWITCHED_OFF),
    (leash, AbandonReason.SWITCHED_OFF),
    (halt_itself, AbandonReason.SWITCHED_OFF),
    (opt_out, AbandonReason.REFUSED),
    (alarm, AbandonReason.ALARM),
    (untag_instances, AbandonReason.REFUSED),
    (protect_group, AbandonReason.REFUSED),
    (protect_instance, AbandonReason.REFUSED),
]


@pytest.mark.parametrize(("stop", "cause"), STOPS)
@pytest.mark.parametrize("probed", [False, True])
def test_a_stop_of_chaos_before_the_fault_abandons_the_claim(
    account: Account,
    insides: Insides,
    monkeypatch: pytest.MonkeyPatch,
    stop: Callable[[Account], dict[str, str]],
    cause: AbandonReason,
    probed: bool,
) -> None:
    account.alarm("stop", "OK")
    claimed(account, insides, stop_alarms="stop")
    if probed:  # the last moment at which it can matter
        with calls(monkeypatch, before_backstop(insides, lambda: stop(account))):
            wait(account)
    else:
        stop(account)
    wait(account)
    event = account.event(WEB)
    assert (event.status, event.cause, insides.injected) == (Status.ABANDONED, cause, [])
    assert bool(insides.probes) is probed


def before_backstop(insides: Insides, do: Callable[[], object]) -> Any:
    other = before("CreateSchedule", do)
    return lambda number, name, call: other(number, name, partial(insides, number, name, call))


def test_an_answer_that_comes_after_the_end_of_the_event_changes_nothing(account: Account, insides: Insides) -> None:
    steps = InjectionSteps(account.events)
    sent = Probe("0" * 32, account.clock())
    probed = steps.send_probe(claimed(account, insides), sent)
    closed = account.events.close(probed, Status.ABANDONED, "opted out")
    answered = replace(sent, answered_at=account.clock(), failure="no answer")
    for late in (lambda: steps.probe_sent(probed, "a-command"), lambda: steps.probe_answered(probed, answered)):
        with pytest.raises(StepRefused):
            late()
    assert account.event(WEB) == closed


def test_an_answered_probe_is_replaced_only_by_who_knows_its_answer(account: Account, insides: Insides) -> None:
    steps = InjectionSteps(account.events)
    sent = Probe("0" * 32, account.clock())
    probed = steps.send_probe(claimed(account, insides), sent)
    answered = steps.probe_answered(probed, replace(sent, answered_at=account.clock(), failure="no answer"))
    with pytest.raises(StepRefused):
        steps.send_probe(probed, Probe("1" * 32, account.clock()))
    assert account.event(WEB) == answered
    following = injection_of(steps.send_probe(answered, Probe("2" * 32, account.clock()))).before
    assert following
    assert following.token == "2" * 32


def test_a_claim_without_time_left_is_abandoned(account: Account, insides: Insides) -> None:
    event = claimed(account, insides)
    assert event.deadline
    account.clock.moment = event.deadline - timedelta(seconds=30)
    wait(account)
    event = account.event(WEB)
    assert (event.status, event.detail, insides.sent) == (Status.ABANDONED, "no time was left for the fault", [])


def test_a_stale_claim_is_abandoned_by_a_sweep(account: Account, insides: Insides) -> None:
    event = claimed(account, insides)
    account.ec2.terminate_instances(InstanceIds=[event.instance_id])
    account.clock.forward(minutes=12)
    account.sweep()
    assert account.event(WEB).status is Status.ABANDONED


# Once


def test_a_lost_answer_counts_as_injected_and_is_never_repeated(account: Account, insides: Insides) -> None:
    document = faults.LASTING[0].document
    insides.lost = {document}
    claimed(account, insides)
    wait(account)
    event = account.event(WEB)
    assert (event.status, len(insides.injected)) == (Status.RUNNING, 1)
    event = over(account, insides)
    injection = injection_of(event)
    assert len(insides.injected) == 1
    assert injection.command_id == insides.injected[0].command_id
    assert injection.proof
    assert injection.proof.by is Way.PROBE


def test_a_command_that_no_list_shows_is_not_sent_again_but_repaired(account: Account, insides: Insides) -> None:
    claimed(account, insides)
    insides.lost, insides.hidden_for = {faults.LASTING[0].document}, timedelta()
    real = insides._ListCommandInvocations
    insides._ListCommandInvocations = lambda request: (  # type: ignore[method-assign]
        real(request) if "CommandId" in request else {"CommandInvocations": []}
    )
    event = over(account, insides)
    assert (event.status, len(insides.injected)) == (Status.TERMINATED, 1)
    assert account.gone() == [event.instance_id]


@pytest.mark.parametrize(
    ("code", "status"), [("ThrottlingException", 400), ("AccessDeniedException", 400), ("InvalidInstanceId", 400)]
)
def test_a_claim_that_aws_certainly_refuses_is_abandoned(
    account: Account, insides: Insides, code: str, status: int
) -> None:
    insides.refusals[faults.LASTING[0].document] = code, status
    event = claimed(account, insides)
    wait(account)
    event = account.event(WEB)
    assert (event.status, event.cause) == (Status.ABANDONED, AbandonReason.REFUSED)
    assert code in event.detail
    assert (account.count("in-flight"), account.count(f"day#{event.day}")) == (0, 0)
    assert insides.answers == [("token", {"event_id": WEB, "status": "ABANDONED", "settles_at": None})]


@pytest.mark.parametrize(("code", "status"), [("InternalServerError", 500), ("RequestTimeout", 408)])
def test_a_request_in_doubt_counts_as_injected(account: Account, insides: Insides, code: str, status: int) -> None:
    insides.refusals[faults.LASTING[0].document] = code, status
    claimed(account, insides)
    wait(account)
    assert account.event(WEB).status is Status.RUNNING
    insides.refusals.clear()
    assert over(account, insides).status is Status.TERMINATED
    assert insides.injected == []


def test_a_request_that_would_be_late_is_not_sent(account: Account, insides: Insides, monkeypatch: Any) -> None:
    """It would begin after the moment by which the fault ends."""
    claimed(account, insides)

    def slow(number: int, operation: str, call: Call) -> Any:
        if operation == "TransactWriteItems" and "ends_by" in str(call.args[-1]):
            account.clock.forward(seconds=11)
        return insides(number, operation, call)

    with calls(monkeypatch, slow):
        wait(account)
    assert insides.injected == []
    assert account.event(WEB).status is Status.ABANDONED


def test_calls_at_the_same_time_inject_once(account: Account, insides: Insides, monkeypatch: Any) -> None:
    """Another call does everything just before each write of the first."""
    claimed(account, insides)
    for operation in ("UpdateItem", "TransactWriteItems", "SendCommand", "CreateSchedule"):
        other = before(operation, lambda: wait(account, token="other"), times=2)

        def both(number: int, name: str, call: Call, other: Any = other) -> Any:
            return other(number, name, lambda: insides(number, name, call))

        with calls(monkeypatch, both):
            wait(account)
    event = over(account, insides)
    assert len(insides.injected) == 1
    assert injection_of(event).proof


WRITES = frozenset(
    {"UpdateItem", "TransactWriteItems", "SendCommand", "CreateSchedule", "CancelCommand", "SendTaskSuccess"}
)


def test_a_call_that_ends_anywhere_injects_at_most_once_and_the_end_is_proven(
    account: Account, insides: Insides, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write is once the last that a function makes, before it acts or after it."""
    start, reached = account.clock(), 0
    for number, acts in cuts(range(100)):
        account.clock.moment = start
        insides.sent, insides.schedules, insides.answers = [], [], []
        unit = f"u{number}{acts}"
        event_id, left = claimed(account, insides, unit=unit).event_id, [number]

        def stop(at: int, name: str, call: Call, left: list[int] = left, acts: bool = acts) -> Any:
            left[0] -= name in WRITES
            if name not in WRITES or left[0] != -1:
                return insides(at, name, call)
            if acts:
                with suppress(Exception):
                    insides(at, name, call)
            raise Kill(name)

        def ended(event_id: str = event_id) -> None:
            while not insides.answers and account.clock() < start + timedelta(minutes=4):
                wait(account, event_id)
                account.clock.forward(seconds=20)

        with calls(monkeypatch, stop), suppress(Kill):
            ended()
        ended()
        event = account.event(event_id)
        assert len(insides.injected) <= 1, (number, acts)
        assert event.status in (Status.ABANDONED, Status.TERMINATED) or injection_of(event).proof, (number, acts)
        assert not insides.present() or event.instance_id in account.gone(), (number, acts)
        account.drop_group(unit)
        account.clock.forward(minutes=20)
        account.sweep()
        reached = number
        if left[0] >= 0:
            break  # it has ended before it was cut
    assert 15 < reached < 99
