"""Which step of a lasting fault is due: a table, and what must be true of every event and everything seen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import FRIDAY, calendar
from troop import faults
from troop.chaos import claim_rules
from troop.chaos.claim_rules import LAST_CALL
from troop.chaos.events import AbandonReason, Abort, Event, Status
from troop.chaos.injection import EndRequest, Injection, Proof, Way
from troop.chaos.injection_rules import (
    AGAIN,
    DELIVERY,
    FINAL,
    NO_COMMAND,
    SENDING,
    UNPROVEN,
    Command,
    Objection,
    Seen,
    Step,
    deadline,
    due,
    ends_by,
    first_backstop,
    is_over,
    is_unproven,
    latest_end,
    next_backstop,
    settled_at,
)
from troop.chaos.probe import Probe, Reading
from troop.faults.cpu import CPU
from troop.faults.lasting_fault import INSTALLATION, LastingFault
from troop.shared.choice import Choice

AT = datetime(2026, 11, 20, 18, 0, 30, tzinfo=UTC)
CLEAN = Reading(boot="a", qdiscs=0, drops=0, stress=0, rollbacks=0, hosts=0, used=20.0)
STRESSED = replace(CLEAN, stress=3)
SENT = Probe("1" * 32, AT, "command")
ANSWERED = replace(SENT, answered_at=AT, reading=CLEAN)
FINE, AGAINST = Objection(), Objection("chaos was halted first", AbandonReason.SWITCHED_OFF)
ABSENT = Objection("it left its group", absent=True)
RUNS, ENDED = Command("fault", "InProgress"), Command("fault", "Success")
PROBING, PROBED = Command("probe", "InProgress"), Command("probe", "Success", "{}")
LOST = replace(SENT, command_id="")
"""A probe of which the answer to SendCommand was lost."""


def event(stage: Status = Status.CLAIMED, method: str = "cpu", signal: str = "SIGKILL", **injection: Any) -> Event:
    parameters = {"load": "100", "processors": "0", "seconds": "60"}
    if method == "kill":
        parameters = {"process": "nginx", "signal": signal, "seconds": "60"}
    return Event(
        event_id=f"{FRIDAY}#web",
        unit="web",
        day=FRIDAY,
        status=stage,
        at=AT,
        group="web",
        instance_id="i-1",
        zone="a",
        method=method,
        rolled=None,
        probability=None,
        desired=2,
        deadline=AT + timedelta(minutes=10),
        injection=Injection(parameters, **injection),
    )


def injected(method: str = "cpu", **injection: Any) -> Event:
    before = event(Status.RUNNING, method, before=ANSWERED)
    known: dict[str, Any] = {"before": ANSWERED, "ends_by": ends_by(before, AT), "command_id": "fault"}
    known |= {"began_at": BEGAN} | injection
    return replace(event(Status.RUNNING, method, **known), attempted_at=AT, attempts=1)


BEGAN = AT + timedelta(seconds=3)
"""When the fault's command was seen on its instance."""


def after(seconds: float, **seen: Any) -> Seen:
    return Seen(AT + timedelta(seconds=seconds), **seen)


OVER: dict[str, Any] = {"over_at": AT + timedelta(seconds=61), "status": "Success"}
"""The command has ended, as its agent reports: the end must be proven until 141 s after the attempt."""


def probed(seconds: float, reading: Reading | None = None, failure: str = "") -> Probe:
    """A probe after the fault that was sent so many seconds after the attempt, and its answer, which came at once."""
    at = AT + timedelta(seconds=seconds)
    return Probe("2" * 32, at, "probe", at if reading or failure else None, reading, failure)


def ended(seconds: float, reading: Reading | None = None, failure: str = "", **injection: Any) -> Event:
    """A fault whose command is over, and that was probed after it."""
    return injected(**OVER | {"after": probed(seconds, reading, failure)} | injection)


def killed(seconds: float, running: int) -> Event:
    """A killed process of which a probe has found so many."""
    return injected("kill", **OVER, after=probed(seconds, replace(CLEAN, running=running)))


END = EndRequest(AT + timedelta(seconds=9), "chaos was halted")
STUCK: dict[str, Any] = {"command": RUNS, "cancelled": True, "ended": False}
"""The command was to end, and has not; nor has the instance."""

LEFT: dict[str, Any] = {"command": RUNS, "objection": ABSENT}
SPARED: dict[str, Any] = {"ended": False, "spared": "it is protected"}
WAITED_FOR = injected(began_at=None)
WAITS: dict[str, Any] = {"command": Command("fault", "Pending"), "objection": FINE}
"""The command is not on its instance yet."""

KILLED = injected("kill", **OVER)
FAREWELL = injected("kill", signal="SIGTERM", **OVER)
"""A process that can end in its own way, by SIGTERM."""

TABLE: dict[str, list[tuple[str, Event, Seen, Step]]] = {
    "claimed": [
        ("the unit is read before the probe", event(), after(1), Step.READ_OBJECTION),
        ("a probe is first", event(), after(1, objection=FINE), Step.SEND_PROBE),
        ("an objection ends the claim", event(), after(1, objection=AGAINST), Step.ABANDON),
        ("so does an alarm", replace(event(), abort=Abort(AT, "stop")), after(1, objection=FINE), Step.ABANDON),
        ("there is time until the last call", event(), after(569), Step.READ_OBJECTION),
        ("then there is none", event(), after(570), Step.ABANDON),
        ("the probe's answer is read", event(before=SENT), after(1), Step.READ_PROBE),
        ("an answer is recorded", event(before=SENT), after(3, probe=PROBED), Step.RECORD_ANSWER),
        ("it is waited for", event(before=SENT), after(60, probe=PROBING), Step.WAIT),
        ("but not for ever", event(before=SENT), after(61, probe=PROBING), Step.RECORD_ANSWER),
        ("a lost probe is sent again", event(before=LOST), after(11, probe=NO_COMMAND), Step.SEND_PROBE),
        ("but not at once", event(before=LOST), after(10, probe=NO_COMMAND), Step.WAIT),
        ("and not one that has an id", event(before=SENT), after(11, probe=NO_COMMAND), Step.WAIT),
        ("and not if it was found", event(before=LOST), after(11, probe=PROBING), Step.WAIT),
        ("no answer ends the claim", event(before=replace(SENT, failure="silent")), after(62), Step.ABANDON),
        ("an unclean instance does", event(before=replace(ANSWERED, reading=STRESSED)), after(4), Step.ABANDON),
        ("the backstop comes before the fault", event(before=ANSWERED), after(4, objection=FINE), Step.ARM),
        ("the unit is read again", event(before=ANSWERED), after(4, armed=True), Step.READ_OBJECTION),
        ("a late objection counts", event(before=ANSWERED), after(4, armed=True, objection=AGAINST), Step.ABANDON),
        ("then it is injected", event(before=ANSWERED), after(4, armed=True, objection=FINE), Step.INJECT),
    ],
    "lasting": [
        ("the command is looked for", injected(command_id=""), after(1), Step.READ_COMMAND),
        ("and adopted", injected(command_id=""), after(1, command=RUNS), Step.ADOPT),
        ("but never sent again", injected(command_id=""), after(1, command=NO_COMMAND, objection=FINE), Step.WAIT),
        ("the unit is read", injected(), after(30, command=RUNS), Step.READ_OBJECTION),
        ("a fault lasts", injected(), after(60, command=RUNS, objection=FINE), Step.WAIT),
        ("an objection is recorded", injected(), after(30, command=RUNS, objection=AGAINST), Step.RECORD_END),
        ("so is an alarm", replace(injected(), abort=Abort(AT, "stop")), after(30, command=RUNS), Step.RECORD_END),
        ("once", injected(end_request=END), after(31, command=RUNS, objection=AGAINST), Step.CANCEL),
        ("it is not cancelled twice", injected(end_request=END), after(31, command=RUNS, cancelled=True), Step.WAIT),
        ("what has no id is not", injected(end_request=END, command_id=""), after(31, command=NO_COMMAND), Step.WAIT),
        ("its begin is recorded", injected(began_at=None), after(3, command=RUNS), Step.RECORD_BEGIN),
        ("an overdue fault is cancelled", injected(), after(73, command=RUNS, objection=FINE), Step.CANCEL),
        ("not before", injected(), after(72, command=RUNS, objection=FINE), Step.WAIT),
        ("one that is not there has longer", WAITED_FOR, after(109, **WAITS), Step.WAIT),
        ("but not for ever", WAITED_FOR, after(110, **WAITS), Step.CANCEL),
        ("a final status is recorded", injected(), after(62, command=ENDED), Step.RECORD_OVER),
        ("an end that is late is repaired", injected(end_request=END), after(109, **STUCK), Step.REPAIR),
        ("not before", injected(end_request=END), after(108, **STUCK), Step.WAIT),
        ("what left is looked at", injected(end_request=END), after(9, **LEFT), Step.READ_INSTANCE),
        ("its end is a proof", injected(end_request=END), after(9, ended=True, **LEFT), Step.RECORD_PROOF),
    ],
    "ended": [
        ("a final status is no proof", injected(**OVER), after(62), Step.SEND_PROBE),
        ("a clean probe is", ended(62, CLEAN), after(64), Step.RECORD_PROOF),
        ("an unclean one is not", ended(62, STRESSED), after(64), Step.WAIT),
        ("it is repeated", ended(62, STRESSED), after(67), Step.SEND_PROBE),
        ("but not when time is up", ended(62, STRESSED), after(132), Step.WAIT),
        ("a probe without an answer asks EC2", ended(62, failure="x"), after(124), Step.READ_INSTANCE),
        ("and is repeated", ended(62, failure="x"), after(124, ended=False), Step.SEND_PROBE),
        ("EC2 is asked before the repair", ended(62, STRESSED), after(141), Step.READ_INSTANCE),
        ("what has ended is proven", ended(62, STRESSED), after(141, ended=True), Step.RECORD_PROOF),
        ("what has not is repaired", ended(62, STRESSED), after(141, ended=False), Step.REPAIR),
        ("not before", ended(62, STRESSED), after(140, ended=False), Step.WAIT),
        ("an earlier probe proves nothing", ended(60, CLEAN), after(141, ended=False), Step.REPAIR),
        ("nor does silence", ended(90), after(141, ended=False, probe=PROBING), Step.REPAIR),
        ("a clean probe is late, and counts", ended(90, CLEAN), after(141, ended=False), Step.RECORD_PROOF),
        ("a repair in doubt is repeated", ended(90, CLEAN, repair_at=AT), after(141), Step.REPAIR),
        ("and nothing else meanwhile", ended(90, CLEAN, repair_at=AT), after(141, **SPARED), Step.WAIT),
        ("what must stay is probed on", ended(90, STRESSED), after(200, **SPARED), Step.SEND_PROBE),
        ("and not waited for any more", ended(90), after(151, probe=PROBING, **SPARED), Step.RECORD_ANSWER),
        ("chaos that stops ends nothing more", injected(**OVER), after(62, objection=AGAINST), Step.SEND_PROBE),
    ],
    "killed": [
        ("it is not back at once", KILLED, after(70, objection=FINE), Step.WAIT),
        ("it has some time", KILLED, after(71, objection=FINE), Step.SEND_PROBE),
        ("one that can say farewell has more", FAREWELL, after(90, objection=FINE), Step.WAIT),
        ("but not for ever", FAREWELL, after(91, objection=FINE), Step.SEND_PROBE),
        ("it has until its end to come back", killed(70, 0), after(142, objection=FINE), Step.SEND_PROBE),
        ("then it is repaired", killed(70, 0), after(153, objection=FINE, ended=False), Step.REPAIR),
        ("it is over when it is back", killed(81, 1), after(82, objection=FINE), Step.RECORD_PROOF),
        ("chaos that stops is recorded", KILLED, after(62, objection=AGAINST), Step.RECORD_END),
    ],
    "over": [
        ("proven faults", injected(proof=Proof(Way.PROBE, AT, "")), after(1), Step.OVER),
        ("terminated instances", replace(injected(), status=Status.TERMINATED), after(1), Step.OVER),
        ("claims without a fault", event(Status.ABANDONED), after(1), Step.OVER),
    ],
}  # fmt: skip


ROWS = [pytest.param(*row[1:], id=f"{stage}-{row[0]}") for stage, rows in TABLE.items() for row in rows]


@pytest.mark.parametrize(("claim", "seen", "step"), ROWS)
def test_the_step_that_is_due(claim: Event, seen: Seen, step: Step) -> None:
    assert due(claim, seen).step is step


@pytest.mark.parametrize(
    ("status", "began_at", "latest"),
    [
        *((status, BEGAN, 3 + CPU.overrun) for status in sorted(FINAL - {"Success"})),
        ("Failed", None, 4 + CPU.overrun),
        *((status, None, 40 + CPU.overrun) for status in ("Cancelled", "TimedOut")),
    ],
)
def test_a_clean_instance_proves_nothing_while_the_fault_may_still_begin(
    status: str, began_at: datetime | None, latest: int
) -> None:
    """It begins late if its command is delivered late, or if its document takes long to prepare it."""
    over: dict[str, Any] = {"over_at": AT + timedelta(seconds=4), "status": status, "began_at": began_at}
    assert due(injected(**over, after=probed(3, CLEAN)), after(5)).step is Step.WAIT
    assert due(injected(**over), after(latest - 1)).step is Step.WAIT
    assert due(injected(**over), after(latest)).step is Step.SEND_PROBE
    assert due(injected(**over, after=probed(latest, CLEAN)), after(latest + 1)).step is Step.RECORD_PROOF


def test_a_command_that_its_agent_has_finished_cannot_start_again() -> None:
    over: dict[str, Any] = {"over_at": AT + timedelta(seconds=2), "status": "Success"}
    assert due(injected(**over), after(3)).step is Step.SEND_PROBE
    assert due(injected(**over, after=probed(3, CLEAN)), after(5)).step is Step.RECORD_PROOF


def test_an_instance_that_must_stay_is_looked_at_rarely() -> None:
    silent = due(ended(590), after(600, probe=PROBING, **SPARED))
    assert (silent.step, silent.wait) == (Step.WAIT, AGAIN)
    present = due(ended(599, STRESSED), after(600, **SPARED))
    assert present.step is Step.WAIT
    assert present.wait > timedelta(seconds=30)


readings = st.builds(
    Reading,
    boot=st.sampled_from(["a", "a", "b"]),
    stress=st.sampled_from([0, 0, 3, None]),
    rollbacks=st.sampled_from([0, 0, 1]),
    hosts=st.just(0),
    running=st.sampled_from([0, 1, None]),
)
moments = st.integers(0, 400).map(lambda seconds: AT + timedelta(seconds=seconds))
probes = st.builds(Probe, token=st.just("2" * 32), sent_at=moments, command_id=st.sampled_from(["", "probe"]),
                   reading=st.none() | readings, failure=st.sampled_from(["", "", "silent"]))  # fmt: skip
commands = st.none() | st.builds(
    Command,
    command_id=st.sampled_from(["", "fault"]),
    status=st.sampled_from(["", "Pending", "InProgress", *sorted(FINAL)]),
)
everything_seen = st.builds(
    Seen,
    now=moments,
    objection=st.sampled_from([None, FINE, AGAINST]),
    command=commands,
    probe=commands,
    ended=st.sampled_from([None, False, True]),
    armed=st.booleans(),
    cancelled=st.booleans(),
    spared=st.sampled_from(["", "it is protected"]),
)


@st.composite
def events_that_run(draw: st.DrawFn) -> Event:
    injection: dict[str, Any] = {
        "command_id": draw(st.sampled_from(["", "fault"])),
        "end_request": draw(st.none() | moments.map(lambda at: EndRequest(at, "halted"))),
        "status": draw(st.sampled_from(sorted(FINAL))),
        "began_at": draw(st.none() | moments),
        "over_at": draw(st.none() | moments),
        "after": draw(st.none() | probes),
        "repair_at": draw(st.none() | moments),
    }
    return injected(draw(st.sampled_from(["cpu", "kill"])), **injection)


@given(events_that_run(), everything_seen)
def test_an_injected_fault_is_never_injected_again_nor_abandoned(claim: Event, seen: Seen) -> None:
    assert due(claim, seen).step not in {Step.INJECT, Step.ABANDON, Step.ARM, Step.OVER}


@given(events_that_run(), everything_seen)
def test_a_proof_needs_an_ended_instance_or_a_probe_after_the_command(claim: Event, seen: Seen) -> None:
    step = due(claim, seen)
    if step.step is not Step.RECORD_PROOF:
        return
    if step.way is Way.GONE:
        assert seen.ended
        return
    injection = claim.injection
    assert injection
    assert injection.after
    assert injection.after.reading
    assert injection.over_at
    assert injection.after.sent_at >= settled_at(claim) >= injection.over_at
    assert injection.after.reading.boot == "a"
    assert injection.repair_at is None


@given(events_that_run(), everything_seen)
def test_a_late_fault_is_repaired_or_proven_and_not_waited_for(claim: Event, seen: Seen) -> None:
    if seen.now >= deadline(claim) and not seen.spared:
        assert due(claim, seen).step is not Step.WAIT


@given(events_that_run(), everything_seen)
def test_repairs_come_only_after_the_time_for_the_proof(claim: Event, seen: Seen) -> None:
    if due(claim, seen).step is Step.REPAIR:
        assert claim.injection
        assert claim.injection.repair_at or seen.now >= deadline(claim)


@given(events_that_run(), everything_seen)
def test_a_wait_is_never_past_the_deadline_unless_the_instance_must_stay(claim: Event, seen: Seen) -> None:
    step = due(claim, seen)
    if step.step is Step.WAIT:
        assert step.wait > timedelta()
        if seen.spared:
            assert step.wait <= AGAIN
        elif claim.injection and claim.injection.over_at:
            assert seen.now + step.wait <= deadline(claim) + timedelta(seconds=2)


@given(events_that_run())
def test_every_deadline_is_within_two_minutes_of_the_end(claim: Event) -> None:
    injection = claim.injection
    assert injection
    assert injection.ends_by
    assert deadline(claim) <= injection.ends_by + UNPROVEN
    if injection.end_request:
        assert deadline(claim) <= injection.end_request.at + UNPROVEN


@given(st.sampled_from([None, ANSWERED, SENT]), everything_seen)
def test_a_fault_needs_a_clean_probe_a_backstop_and_no_objection(before: Probe | None, seen: Seen) -> None:
    if due(event(before=before), seen).step is Step.INJECT:
        assert before is ANSWERED
        assert seen.armed
        assert seen.objection == FINE


@given(moments)
def test_backstops_are_due_in_whole_minutes(now: datetime) -> None:
    assert timedelta(seconds=30) < next_backstop(now) - now <= timedelta(seconds=90)
    earliest = now + timedelta(minutes=5)
    first = first_backstop(earliest + SENDING + DELIVERY, now)
    assert next_backstop(now).second == first.second == 0
    assert timedelta() <= earliest - first < timedelta(seconds=60)


@given(moments)
def test_the_first_backstop_of_a_short_fault_is_not_due_in_the_past(now: datetime) -> None:
    """Scheduler refuses, or never calls, what is due before it has heard of it."""
    ends = now + timedelta(seconds=60)
    assert timedelta(seconds=5) < first_backstop(ends, now) - now <= timedelta(seconds=65)


REQUIRED = {"kill": (("process", "nginx"),), "blackhole": (("port", "8080"),)}
"""The parameters without a default, by fault."""

LACKING = replace(ANSWERED, reading=replace(CLEAN, missing=("stress-ng",)))


def test_packages_take_time_before_the_fault() -> None:
    plain, refused = event(before=ANSWERED, installs=True), event(before=LACKING)
    installing = event(before=LACKING, installs=True)
    assert ends_by(plain, AT) == ends_by(refused, AT)
    assert ends_by(installing, AT) - ends_by(plain, AT) == timedelta(seconds=INSTALLATION)


@pytest.mark.parametrize("seconds", [10, 900])
@pytest.mark.parametrize("installs", [False, True])
@pytest.mark.parametrize("fault", faults.LASTING, ids=lambda fault: fault.name)
def test_the_proof_of_the_latest_fault_is_due_before_the_window_closes(
    fault: LastingFault, installs: bool, seconds: int
) -> None:
    """The latest fault is claimed as late as a guard allows, and carried out as late as its claim allows."""
    hours = calendar()
    _, closes = hours.window(FRIDAY)
    takes = Choice(fault.name, (*REQUIRED.get(fault.name, ()), ("seconds", str(seconds)))).takes(installs)
    claimed_at = claim_rules.latest(closes, hours, None, takes) - LAST_CALL - timedelta(seconds=1)
    reading = replace(CLEAN, running=1, missing=tuple(fault.tools.keys() - fault.modules) if installs else ())
    parameters = fault.complete({**dict(REQUIRED.get(fault.name, ())), "seconds": str(seconds)})
    claim = replace(
        event(method=fault.name),
        at=claimed_at,
        deadline=claim_rules.deadline(claimed_at, hours, None, takes),
        injection=Injection(parameters, installs=installs, before=replace(ANSWERED, reading=reading)),
    )
    assert due(claim, Seen(claimed_at, objection=FINE, armed=True)).step is Step.INJECT
    assert due(claim, Seen(claimed_at + timedelta(seconds=1), objection=FINE, armed=True)).step is Step.ABANDON
    assert claim.injection
    fault_ends = ends_by(claim, claimed_at)
    running = replace(claim, status=Status.RUNNING, injection=replace(claim.injection, ends_by=fault_ends))
    assert fault_ends < deadline(running) <= closes


def test_an_unproven_fault_is_reported_after_two_minutes() -> None:
    claim = injected()
    late = latest_end(claim) + UNPROVEN
    assert not is_unproven(claim, late)
    assert is_unproven(claim, late + timedelta(seconds=1))
    assert not is_unproven(injected(proof=Proof(Way.PROBE, AT, "")), late + timedelta(hours=1))
    terminated = replace(claim, status=Status.TERMINATED, terminated_at=late)
    assert not is_unproven(terminated, late + timedelta(minutes=10))
    assert is_unproven(terminated, late + timedelta(minutes=11))
    assert is_over(terminated)
    refused = replace(claim, status=Status.ABANDONED)
    assert not is_unproven(refused, late + timedelta(hours=1))


@pytest.mark.parametrize(
    ("claim", "seconds", "wait"),
    [
        (injected(), 20, 40),
        (injected(), 59.5, 2),
        (injected(), 70, 2),
        (injected("kill"), 20, 2),
        (injected(end_request=END), 20, 2),
    ],
)
def test_a_command_is_looked_at_often_only_when_it_can_be_over(claim: Event, seconds: float, wait: float) -> None:
    step = due(claim, after(seconds, command=RUNS, objection=FINE, cancelled=True))
    assert (step.step, step.wait) == (Step.WAIT, timedelta(seconds=wait))
