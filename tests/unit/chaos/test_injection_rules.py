"""Which step of a lasting fault is due when its command is over, and nobody knows yet whether the fault is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from troop.chaos.events import Event, Status
from troop.chaos.injection import Injection
from troop.chaos.injection_rules import AGAIN, DELIVERY, SENDING, Command, Seen, Step, due
from troop.chaos.probe import Probe, Reading
from troop.faults.cpu import CPU

ATTEMPT = datetime(2026, 5, 4, 12, tzinfo=UTC)
CLEAN = Reading(boot="first", qdiscs=0, drops=0, stress=0, rollbacks=0, hosts=0, used=40.0)
BEFORE = Probe("a" * 32, ATTEMPT - timedelta(minutes=1), answered_at=ATTEMPT, reading=CLEAN)


def running(status: str, over: int, probed: int | None = None, reading: Reading | None = CLEAN) -> Event:
    """A fault whose command was over, and a probe sent, so many seconds after the attempt."""
    moment = ATTEMPT + timedelta(seconds=probed or 0)
    answered_at = moment if reading else None
    after = None if probed is None else Probe("b" * 32, moment, "probe", answered_at=answered_at, reading=reading)
    return Event(
        event_id="od#web#1",
        unit="web",
        day=date(2026, 5, 4),
        status=Status.RUNNING,
        at=ATTEMPT,
        group="web",
        instance_id="i-1",
        zone="a",
        method="cpu",
        rolled=None,
        probability=None,
        desired=2,
        attempted_at=ATTEMPT,
        attempts=1,
        injection=Injection(
            CPU.complete({"seconds": "60"}),
            before=BEFORE,
            ends_by=ATTEMPT + timedelta(seconds=110),
            command_id="command",
            status=status,
            over_at=ATTEMPT + timedelta(seconds=over),
            after=after,
        ),
    )


def _after(seconds: float) -> Seen:
    return Seen(ATTEMPT + timedelta(seconds=seconds))


@pytest.mark.parametrize("status", ["Cancelled", "Failed", "TimedOut"])
def test_a_clean_instance_proves_nothing_while_the_command_may_still_be_delivered(status: str) -> None:
    latest = (SENDING + DELIVERY).total_seconds() + CPU.overrun
    too_early = due(running(status, over=2, probed=3), _after(5))
    assert too_early.step is Step.WAIT
    assert due(running(status, over=2), _after(latest - 1)).step is Step.WAIT
    assert due(running(status, over=2), _after(latest)).step is Step.SEND_PROBE
    assert due(running(status, over=2, probed=int(latest)), _after(latest + 1)).step is Step.RECORD_PROOF


def test_a_command_that_its_agent_has_finished_cannot_start_again() -> None:
    assert due(running("Success", over=2), _after(3)).step is Step.SEND_PROBE
    assert due(running("Success", over=2, probed=3), _after(5)).step is Step.RECORD_PROOF


def test_an_instance_that_must_stay_is_looked_at_rarely() -> None:
    spared = replace(_after(600), spared="it is protected", ended=False, probe=Command("probe", "Pending"))
    silent = due(running("Success", over=60, probed=590, reading=None), spared)
    assert (silent.step, silent.wait) == (Step.WAIT, AGAIN)
    present = due(running("Success", over=60, probed=599, reading=replace(CLEAN, stress=4)), spared)
    assert present.step is Step.WAIT
    assert present.wait > timedelta(seconds=30)
