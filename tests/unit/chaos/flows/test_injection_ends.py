"""What ends a lasting fault before its time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.account.account import WEB, Account
from tests.unit.account.injecting import (
    ENDS,
    LATENCY,
    WITH_FAULTS,
    alarm_went_off,
    halt,
    injection_of,
    opt_out,
    over,
    policy_changed,
    running,
    switch_changed,
    wait,
)
from tests.unit.account.insides import Insides
from troop.chaos.events import Status
from troop.shared import moments

pytestmark = WITH_FAULTS


@pytest.mark.parametrize("end", ENDS)
def test_the_end_is_requested_in_one_call(
    account: Account, insides: Insides, end: Callable[[Account], dict[str, str]]
) -> None:
    account.alarm("stop", "OK")
    running(account, insides, stop_alarms="stop")
    account.clock.forward(seconds=20)
    begun = account.clock()
    assert end(account) == {WEB: "RUNNING"}
    injection = injection_of(account.event(WEB))
    assert injection.end_request
    assert injection.end_request.at == begun
    assert insides.injected[0].cancelled_at == begun
    event = over(account, insides)
    assert not insides.present()
    assert injection_of(event).proof
    assert account.gone() == []


def test_an_alarm_stops_the_fault_whoever_hears_of_it_first(account: Account, insides: Insides) -> None:
    account.alarm("stop", "OK")
    running(account, insides, stop_alarms="stop")
    account.clock.forward(seconds=20)
    detail = {"alarmName": "stop", "state": {"value": "ALARM", "timestamp": moments.iso(account.clock())}}
    assert account.hear("aws.cloudwatch", detail, kind="CloudWatch Alarm State Change") == [WEB]
    event = account.event(WEB)
    assert event.abort
    assert "the fault is being ended" in event.detail
    assert alarm_went_off(account, "stop") == {WEB: "RUNNING"}
    assert injection_of(account.event(WEB)).end_request


def test_other_alarms_and_units_end_nothing(account: Account, insides: Insides) -> None:
    running(account, insides)
    assert alarm_went_off(account, "other") == {}
    assert policy_changed(account, "other") == {}
    assert insides.injected[0].cancelled_at is None


def test_an_unhealthy_group_does_not_end_the_fault(account: Account, insides: Insides) -> None:
    """That is what the fault is for."""
    event = running(account, insides)
    account.autoscaling.set_instance_health(InstanceId=event.instance_id, HealthStatus="Unhealthy")
    wait(account)
    assert injection_of(account.event(WEB)).end_request is None


def test_cancelling_is_repeated_until_the_command_is_over(account: Account, insides: Insides) -> None:
    running(account, insides)
    real, requests = insides._CancelCommand, []

    def deaf(request: dict[str, Any]) -> Any:
        requests.append(account.clock())
        return real(request) if len(requests) > 3 else {}

    insides._CancelCommand = deaf  # type: ignore[method-assign]
    account.switch(halted=True)
    switch_changed(account)
    assert len(requests) == 1
    wait(account)
    assert len(requests) == 4
    assert requests[-1] - requests[0] <= timedelta(seconds=10)


@pytest.mark.parametrize("end", [halt, opt_out])
def test_repairs_go_on_although_chaos_was_stopped(
    account: Account, insides: Insides, end: Callable[[Account], dict[str, str]]
) -> None:
    account.alarm("stop", "OK")
    running(account, insides, LATENCY, stop_alarms="stop")
    insides.has_atd = False
    end(account)
    event = over(account, insides)
    assert (event.status, account.gone()) == (Status.TERMINATED, [event.instance_id])
