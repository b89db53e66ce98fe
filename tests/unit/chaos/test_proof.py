"""Whether a lasting fault is over: what proves it, and what does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from troop.chaos.injection import Injection
from troop.chaos.probe import Probe, Reading
from troop.chaos.proof import Presence, prove
from troop.faults.blackhole import BLACKHOLE
from troop.faults.cpu import CPU
from troop.faults.disk import DISK
from troop.faults.kill import KILL
from troop.faults.lasting_fault import LastingFault
from troop.faults.latency import LATENCY

OVER = datetime(2026, 5, 4, 12, tzinfo=UTC)
CLEAN = Reading(boot="first", qdiscs=0, drops=2, stress=0, rollbacks=0, hosts=0, used=40.0, running=3)
SET_BY_OWNERS = {"port": "80", "process": "nginx"}


def injection(fault: LastingFault, now: Reading | None, before: Reading = CLEAN, late: int = 1) -> Injection:
    """A fault whose command was over, with a probe that was sent so many seconds later."""
    parameters = {one.name: SET_BY_OWNERS[one.name] for one in fault.parameters if one.name in SET_BY_OWNERS}
    return Injection(
        parameters=fault.complete(parameters),
        before=Probe("a" * 32, OVER - timedelta(minutes=5), answered_at=OVER, reading=before),
        over_at=OVER,
        after=Probe("b" * 32, OVER + timedelta(seconds=late), answered_at=OVER, reading=now),
    )


@pytest.mark.parametrize("fault", [BLACKHOLE, CPU, DISK, LATENCY], ids=lambda fault: fault.name)
def test_no_trace_is_more_than_before(fault: LastingFault) -> None:
    assert prove(fault, injection(fault, CLEAN))[0] is Presence.GONE


@pytest.mark.parametrize(
    ("fault", "left"),
    [
        (BLACKHOLE, {"drops": 3}),
        (BLACKHOLE, {"rollbacks": 1}),
        (CPU, {"stress": 1}),
        (DISK, {"used": 89.0}),
        (LATENCY, {"qdiscs": 1}),
        (LATENCY, {"hosts": 1}),
    ],
    ids=lambda one: getattr(one, "name", None) or next(iter(one)),
)
def test_more_of_a_trace_than_before_is_the_fault(fault: LastingFault, left: dict[str, Any]) -> None:
    presence, why = prove(fault, injection(fault, replace(CLEAN, **left)))
    assert presence is Presence.PRESENT
    assert next(iter(left)) in why


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        (None, CLEAN, "no answer"),
        (replace(CLEAN, boot="second"), CLEAN, "booted again"),
        (replace(CLEAN, drops=None), CLEAN, "could not read drops"),
        (CLEAN, replace(CLEAN, drops=None), "could not read drops"),
        (replace(CLEAN, drops=0, missing=("iptables",)), CLEAN, "iptables no longer exists"),
    ],
    ids=["silence", "reboot", "unread", "unread-before", "reader-gone"],
)
def test_nothing_but_a_reading_of_the_same_boot_proves(now: Reading | None, before: Reading, words: str) -> None:
    presence, why = prove(BLACKHOLE, injection(BLACKHOLE, now, before))
    assert presence is Presence.UNKNOWN
    assert words in why


def test_program_that_never_existed_left_no_trace() -> None:
    without = replace(CLEAN, drops=0, missing=("iptables",))
    assert prove(BLACKHOLE, injection(BLACKHOLE, without, without))[0] is Presence.GONE
    lost = replace(CLEAN, missing=("iptables",))
    assert prove(CPU, injection(CPU, lost))[0] is Presence.GONE, "this fault does not need it"


def test_probe_that_was_sent_before_the_end_proves_nothing() -> None:
    assert prove(CPU, injection(CPU, CLEAN, late=-1))[0] is Presence.UNKNOWN


def test_killed_process_is_over_when_one_runs_again() -> None:
    assert prove(KILL, injection(KILL, replace(CLEAN, running=0)))[0] is Presence.PRESENT
    assert prove(KILL, injection(KILL, replace(CLEAN, running=1)))[0] is Presence.GONE
    assert prove(KILL, injection(KILL, replace(CLEAN, running=None)))[0] is Presence.UNKNOWN
