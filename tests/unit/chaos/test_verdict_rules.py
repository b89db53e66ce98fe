"""Verdicts: what breaks a hypothesis, what leaves it open, and that what is stored gives the same verdict again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import at, event, injected, injection, replaced, still_there
from troop.chaos.aws.event_items import from_item, to_item
from troop.chaos.events import Event, Status, Watch
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.injection import EndRequest, Proof, Way
from troop.chaos.stages import Stages
from troop.chaos.verdict import AlarmRecord, AlarmState, Verdict, VerdictValue
from troop.chaos.verdict_rules import ALARM, INSUFFICIENT_DATA, OK, judge, repeated, settles_at, went_off

HELD, BROKEN, UNKNOWN = VerdictValue.HELD, VerdictValue.BROKEN, VerdictValue.UNKNOWN

KILLED, WHOLE, SETTLED = at("12:00:02"), at("12:02:02"), at("12:08:02")


def recovered(*alarms: str, within: int | None = None, **changes: Any) -> Event:
    """Recovered in 120 s; the last check that found it short was at 115 s."""
    hypothesis = Hypothesis(success_alarms=alarms, recovery_within=within)
    watch = Watch(checks=9, whole=2, short_at=WHOLE - timedelta(seconds=5))
    values = {"status": Status.RECOVERED, "recovered_at": WHOLE, "watch": watch, "hypothesis": hypothesis}
    return event(**{**values, **changes})


def alarm(*states: tuple[str, str], name: str = "errors", doubt: str = "") -> AlarmRecord:
    """An alarm with its states: (clock, state)."""
    return AlarmRecord(name, tuple(AlarmState(at(clock), state) for clock, state in states), doubt)


QUIET = alarm(("11:00", OK))


def verdict(ended: Event, *alarms: AlarmRecord) -> Verdict:
    return judge(ended, alarms, at("12:08:03"), SETTLED)


# ------------------------------------------------------------------ the alarms


@pytest.mark.parametrize(
    ("states", "value"),
    [
        ([("11:00", OK)], HELD),
        ([("12:00:02", OK)], HELD),
        ([("11:00", ALARM), ("12:00:01", OK)], HELD),
        ([("11:00", OK), ("12:08:02.001", ALARM)], HELD),
        ([("11:00", INSUFFICIENT_DATA), ("12:00", OK), ("12:09", INSUFFICIENT_DATA)], HELD),
        ([("11:00", OK), ("12:03", ALARM)], BROKEN),
        ([("11:00", OK), ("12:03", ALARM), ("12:03:10", OK)], BROKEN),
        ([("11:00", OK), ("12:08:02", ALARM)], BROKEN),
        ([("11:00", ALARM), ("12:00:03", OK)], BROKEN),
        ([("11:00", OK), ("12:00:02", ALARM), ("12:00:02", OK)], BROKEN),
        ([("12:05", ALARM)], BROKEN),
        ([("11:00", INSUFFICIENT_DATA), ("12:05", ALARM)], BROKEN),
        ([("11:00", OK), ("12:05", INSUFFICIENT_DATA), ("12:06", OK)], UNKNOWN),
        ([("11:00", INSUFFICIENT_DATA), ("12:00:03", OK)], UNKNOWN),
        ([("12:05", OK)], UNKNOWN),
        ([("11:00", OK), ("12:05", "PAUSED")], UNKNOWN),
        ([], UNKNOWN),
    ],
)
def test_one_alarm_at_any_moment_of_the_span(states: list[tuple[str, str]], value: VerdictValue) -> None:
    assert verdict(recovered("errors"), alarm(*states)).value is value


def test_a_doubt_makes_a_quiet_alarm_prove_nothing() -> None:
    outcome = verdict(recovered("errors"), alarm(("11:00", OK), doubt="it was changed at 12:04"))
    assert (outcome.value, outcome.why) == (UNKNOWN, "alarm errors: it was changed at 12:04")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (INSUFFICIENT_DATA, "alarm errors had insufficient data"),
        ("PAUSED", "alarm errors had a state that this version does not know"),
    ],
)
def test_a_state_that_proves_nothing_is_named(state: str, why: str) -> None:
    assert verdict(recovered("errors"), alarm(("11:00", OK), ("12:05", state))).why == why


def test_an_alarm_that_went_off_breaks_in_spite_of_doubts() -> None:
    loud = alarm(("11:00", OK), ("12:04", ALARM), doubt="it was changed at 12:05")
    outcome = verdict(recovered("errors", "latency"), loud, alarm(name="latency"))
    assert (outcome.value, outcome.why, went_off(outcome)) == (BROKEN, "alarm errors went off", ("errors",))


def test_an_alarm_without_a_record_is_unknown() -> None:
    outcome = verdict(recovered("errors", "latency"), QUIET)
    assert outcome.value is UNKNOWN
    assert outcome.why == "alarm latency: its state is not known for the whole time"
    assert [record.name for record in outcome.alarms] == ["errors", "latency"]


def test_only_success_alarms_count() -> None:
    outcome = verdict(recovered("errors"), QUIET, alarm(("11:00", ALARM), name="stops"))
    assert (outcome.value, outcome.alarms) == (HELD, (QUIET,))
    assert outcome.why == "the group recovered in 120 s, and its success alarms stayed OK"


def test_the_sentence_names_a_few_of_many_alarms() -> None:
    names = [f"a{number}" for number in range(7)]
    outcome = verdict(recovered(*names), *(alarm(("12:01", ALARM), name=name) for name in names))
    assert outcome.why == "; ".join([*(f"alarm a{n} went off" for n in range(5)), "and 2 more"])
    assert went_off(outcome) == tuple(names)


# ------------------------------------------------------------------ the recovery


@pytest.mark.parametrize(
    ("within", "value"), [(None, HELD), (120, HELD), (119, UNKNOWN), (115, UNKNOWN), (114, BROKEN)]
)
def test_a_limit_breaks_only_where_the_recovery_certainly_took_longer(within: int | None, value: VerdictValue) -> None:
    assert verdict(recovered(within=within)).value is value


def _short_until(seconds: float) -> Watch:
    return Watch(checks=9, whole=2, short_at=WHOLE - timedelta(seconds=seconds))


def test_the_replacement_in_service_is_no_evidence_of_a_slow_recovery() -> None:
    """The group can have become whole before, when it wanted fewer instances."""
    slow = recovered(within=117, stages=Stages(in_service=WHOLE - timedelta(seconds=2)))
    outcome = verdict(slow)
    assert (outcome.value, outcome.why) == (UNKNOWN, "the recovery took 115 s to 120 s; recovery_within is 117 s")


def test_the_sentence_contradicts_no_limit_that_was_missed_by_less_than_a_second() -> None:
    slow = recovered(within=117, watch=_short_until(2.6))
    assert verdict(slow).why == "the recovery took at least 117.4 s; recovery_within is 117 s"
    unclear = recovered(within=118, watch=_short_until(2.4))
    assert verdict(unclear).why == "the recovery took 117.6 s to 120 s; recovery_within is 118 s"


def test_a_recovery_of_which_one_check_is_known_may_have_been_instant() -> None:
    outcome = verdict(recovered(within=60, watch=Watch(checks=2, whole=2)))
    assert (outcome.value, outcome.why) == (UNKNOWN, "the recovery took 0 s to 120 s; recovery_within is 60 s")


def test_a_clock_ahead_of_ours_makes_no_recovery_longer_than_it_was() -> None:
    ahead = recovered(within=125, watch=_short_until(-30))
    assert verdict(ahead).value is HELD


def test_a_unit_without_alarms_has_the_verdict_of_its_recovery_and_says_so() -> None:
    assert verdict(recovered()).why == "the group recovered in 120 s; the unit has no success alarms"
    within = "the group recovered in 120 s, within 300 s; the unit has no success alarms"
    assert verdict(recovered(within=300)).why == within


def test_an_event_of_an_earlier_version_says_that_it_had_no_hypothesis() -> None:
    outcome = verdict(recovered(hypothesis=None))
    assert outcome.value is HELD
    assert outcome.why == "the group recovered in 120 s; an earlier version claimed it, without a hypothesis"


def test_a_fault_that_did_not_last_shows_nothing_about_a_unit_that_stayed_whole() -> None:
    request = EndRequest(at("12:00:40"), "chaos was halted")
    ended_early = injection(end_request=request, status="Cancelled")
    outcome = verdict(injected(injection=ended_early, verdict=None))
    assert (outcome.value, outcome.why) == (UNKNOWN, "the fault was ended early: chaos was halted")
    outcome = verdict(injected(injection=injection(status="Failed"), verdict=None))
    assert outcome.value is UNKNOWN
    assert outcome.why == "the fault's command ended as Failed: the instance may not have felt all of the fault"


def test_a_fault_with_a_late_end_request_has_lasted() -> None:
    request = EndRequest(at("12:01:04"), "chaos was halted")
    outcome = verdict(injected(injection=injection(end_request=request), verdict=None))
    assert (outcome.value, outcome.why) == (
        HELD,
        "the fault was proven over after 66 s, and the group whole 3 s later, within 300 s; "
        "the unit has no success alarms",
    )


def test_an_instance_that_was_replaced_is_a_loss_that_the_unit_survived() -> None:
    assert verdict(replaced(injection=still_there(status="Failed"), verdict=None)).value is HELD


@pytest.mark.parametrize(
    ("status", "quiet", "loud"), [(Status.UNRECOVERED, BROKEN, BROKEN), (Status.GROUP_DELETED, UNKNOWN, BROKEN)]
)
def test_without_a_recovery(status: Status, quiet: VerdictValue, loud: VerdictValue) -> None:
    ended = recovered("errors", status=status, recovered_at=None)
    assert verdict(ended, QUIET).value is quiet
    assert verdict(ended, alarm(("11:00", OK), ("12:01", ALARM))).value is loud
    assert verdict(recovered(status=status, recovered_at=None)).value is quiet


def test_the_span_begins_with_the_termination() -> None:
    outcome = verdict(recovered("errors"), QUIET)
    assert (outcome.since, outcome.until, outcome.at) == (KILLED, SETTLED, at("12:08:03"))


# ------------------------------------------------------------------ lasting faults

TIGHT = Hypothesis((), (), 5)
GONE = injection(over_at=None, status="", after=None, proof=Proof(Way.GONE, at("12:00:35"), "the instance has ended"))
SHORT = Watch(checks=9, whole=2, whole_since=at("12:01:31"), short_at=at("12:01:27"))


@pytest.mark.parametrize(
    ("ended", "value", "why"),
    [
        pytest.param(
            injected(hypothesis=Hypothesis()),
            HELD,
            "the fault was proven over after 66 s, and the group whole 3 s later; the unit has no success alarms",
            id="the instance stays",
        ),
        pytest.param(
            injected(hypothesis=TIGHT),
            HELD,
            "the fault was proven over after 66 s, and the group whole 3 s later, within 5 s; "
            "the unit has no success alarms",
            id="the time of the fault itself is no recovery",
        ),
        pytest.param(
            injected(hypothesis=TIGHT, watch=SHORT, recovered_at=at("12:01:31")),
            BROKEN,
            "the recovery took at least 16 s; recovery_within is 5 s",
            id="the recovery after the fault was too long",
        ),
        pytest.param(
            injected(hypothesis=TIGHT, watch=Watch(checks=2, whole=2), recovered_at=at("12:01:31")),
            UNKNOWN,
            "the recovery took 0 s to 20 s; recovery_within is 5 s",
            id="it may have been too long",
        ),
        pytest.param(
            replaced(),
            HELD,
            "the group recovered in 140 s, within 300 s; the unit has no success alarms",
            id="Troop has terminated the instance",
        ),
        pytest.param(
            replaced(hypothesis=Hypothesis((), (), 120)),
            BROKEN,
            "the recovery took at least 136 s; recovery_within is 120 s",
            id="the replacement was too slow",
        ),
        pytest.param(
            injected(injection=GONE, recovered_at=at("12:01:35")),
            HELD,
            "the group recovered in 60 s, within 300 s; the unit has no success alarms",
            id="the instance has ended by itself",
        ),
        pytest.param(
            injected(status=Status.UNRECOVERED, recovered_at=None),
            BROKEN,
            "the group did not recover",
            id="the group stays short after the fault",
        ),
        pytest.param(
            replaced(status=Status.UNRECOVERED, recovered_at=None),
            BROKEN,
            "the group did not recover",
            id="the group stays short after the replacement",
        ),
        pytest.param(
            injected(status=Status.GROUP_DELETED, recovered_at=None),
            UNKNOWN,
            "the group was deleted before it recovered",
            id="the group was deleted",
        ),
    ],
)
def test_the_verdict_on_a_lasting_fault(ended: Event, value: VerdictValue, why: str) -> None:
    outcome = verdict(ended)
    assert (outcome.value, outcome.why) == (value, why)
    stored = from_item(to_item(replace(ended, verdict=outcome)))
    assert repeated(stored) == outcome


@pytest.mark.parametrize(("on", "off", "value"), [("12:00:05", "12:00:40", BROKEN), ("11:59", "12:00:05", HELD)])
def test_alarms_count_from_the_request_to_inject(on: str, off: str, value: VerdictValue) -> None:
    watched = injected(hypothesis=Hypothesis(("errors",)))
    outcome = verdict(watched, alarm(("11:00", OK), (on, ALARM), (off, OK)))
    assert (outcome.value, outcome.since) == (value, at("12:00:05"))


# ------------------------------------------------------------------ settling


@pytest.mark.parametrize(
    ("minutes", "settled"), [([], "12:03:02"), ([5], "12:08:02"), ([1, 15], "12:18:02"), ([60 * 24], "13:03:02")]
)
def test_alarms_have_the_time_that_the_slowest_needs_but_an_hour_at_most(minutes: list[int], settled: str) -> None:
    assert settles_at(WHOLE, [timedelta(minutes=one) for one in minutes]) == at(settled)


# ------------------------------------------------------------------ any event

MOMENTS = st.datetimes(at("11:59").replace(tzinfo=None), at("12:12").replace(tzinfo=None)).map(
    lambda moment: moment.replace(tzinfo=KILLED.tzinfo)
)
STATES = st.builds(AlarmState, MOMENTS, st.sampled_from([OK, OK, OK, ALARM, INSUFFICIENT_DATA]))
NAMES = ("errors", "latency", "queue")


@st.composite
def records(draw: st.DrawFn) -> AlarmRecord:
    states = sorted(draw(st.lists(STATES, max_size=4)), key=lambda state: state.at)
    if draw(st.booleans()):
        states.insert(0, AlarmState(at("11:58"), draw(st.sampled_from([OK, OK, ALARM]))))
    return AlarmRecord(draw(st.sampled_from(NAMES)), tuple(states), draw(st.sampled_from(["", "", "changed"])))


@st.composite
def ended(draw: st.DrawFn) -> Event:
    status = draw(st.sampled_from([Status.RECOVERED, Status.RECOVERED, Status.UNRECOVERED, Status.GROUP_DELETED]))
    success = tuple(draw(st.lists(st.sampled_from(NAMES), unique=True)))
    hypothesis = Hypothesis(success, (), draw(st.none() | st.integers(1, 300)))
    return event(
        status=status,
        terminated_at=KILLED + timedelta(microseconds=draw(st.integers(0, 999_999))),
        recovered_at=draw(MOMENTS) if status is Status.RECOVERED else None,
        watch=Watch(short_at=draw(st.none() | MOMENTS)),
        stages=draw(st.none() | st.builds(Stages, in_service=st.none() | MOMENTS)),
        hypothesis=draw(st.just(hypothesis) | st.none()),
    )


SEEN = st.lists(records(), max_size=4)


@given(ended(), SEEN, MOMENTS)
def test_stored_values_give_the_same_verdict_again(event: Event, seen: list[AlarmRecord], until: datetime) -> None:
    judged = replace(event, verdict=judge(event, seen, at("12:30"), until))
    stored = from_item(to_item(judged))
    assert stored.verdict == judged.verdict
    assert repeated(stored) == judged.verdict
    assert repeated(replace(stored, verdict=None)) is None


def _at_every_moment(record: AlarmRecord, since: datetime, until: datetime) -> set[str]:
    """The states by asking at each millisecond at which one can begin or end; "" where none is known."""
    moments = {since, until, *(state.at for state in record.states if since <= state.at <= until)}
    states = set()
    for moment in moments:
        begun = [state for state in record.states if state.at <= moment]
        states |= {begun[-1].state} if begun else {""}
        states |= {state.state for state in record.states if state.at == moment}
    return states


@given(ended(), SEEN, MOMENTS)
def test_the_rules_in_other_words(event: Event, seen: Sequence[AlarmRecord], until: datetime) -> None:
    outcome = judge(event, seen, at("12:30"), max(until, at("12:00:03")))
    states = [_at_every_moment(record, outcome.since, outcome.until) for record in outcome.alarms]
    limit = event.hypothesis.recovery_within if event.hypothesis else None
    took = from_item(to_item(event)).recovery_seconds
    if any(ALARM in one for one in states) or event.status is Status.UNRECOVERED:
        assert outcome.value is BROKEN
    if outcome.value is HELD:
        assert all(one == {OK} for one in states)
        assert not any(record.doubt for record in outcome.alarms)
        assert event.status is Status.RECOVERED
        assert took is not None
        assert limit is None or took <= limit
    if outcome.value is BROKEN and event.status is Status.RECOVERED and not any(ALARM in one for one in states):
        assert took is not None
        assert limit is not None
        assert took > limit
