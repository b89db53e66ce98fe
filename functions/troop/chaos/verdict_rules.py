"""Judges the hypothesis of an event by its recovery and by what its alarms did. Pure.

:func:`judge` uses only what the event stores, so that anybody can repeat a verdict when AWS has forgotten: see
:func:`repeated`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, pairwise

from troop.chaos.events import Event, Status
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.verdict import AlarmRecord, Verdict, VerdictValue
from troop.shared import moments

OK, ALARM, INSUFFICIENT_DATA = "OK", "ALARM", "INSUFFICIENT_DATA"
"""CloudWatch's states of an alarm."""

LONGEST_NEED = timedelta(hours=1)
"""The longest wait for alarms. One that needs longer to go off cannot break the hypothesis in time, nor confirm it."""

MARGIN = timedelta(seconds=60)
"""The time after an alarm's last period in which CloudWatch receives its data, evaluates it, and lists the change."""

MOST_STATES = 50
"""The most states of an alarm that a verdict stores."""

MOST_REASONS = 5
"""The most reasons in the sentence of a verdict; the stored states have all of them."""

LONGEST_DOUBT = 200

JUDGED = frozenset({Status.RECOVERED, Status.UNRECOVERED, Status.GROUP_DELETED})
"""The statuses with which an event gets a verdict."""


def settles_at(recovered_at: datetime, needs: Iterable[timedelta]) -> datetime:
    """Returns from when on the alarms have had the time to go off.

    Args:
        needs: the time that each alarm needs to go off: its period times its evaluation periods.
    """
    return recovered_at + min(max(needs, default=timedelta()), LONGEST_NEED) + MARGIN


def judge(event: Event, alarms: Sequence[AlarmRecord], at: datetime, until: datetime) -> Verdict:
    """Gives the verdict on an event that has ended.

    BROKEN: an alarm was in ALARM at a moment of the span, the group did not recover, or its recovery certainly took
    longer than ``recovery_within``. UNKNOWN: none of these, but what is recorded cannot exclude them, or the command of
    a lasting fault did not run to its end and the instance stays. HELD: the rest. Moments count in milliseconds, as
    they are stored.

    Args:
        event: one with a status of :data:`JUDGED`, and everything that its recovery has recorded.
        alarms: the records of its success alarms; one without a record makes the verdict UNKNOWN.
        at: the moment of the verdict.
        until: the end of the span, which begins with :attr:`Event.hit_at`.
    """
    assert event.status in JUDGED, event.status
    since, until = _stored(event.hit_at or event.at), _stored(until)
    hypothesis = event.hypothesis or Hypothesis()
    by_name = {record.name: _stored_record(record) for record in alarms}
    records = tuple(by_name.get(name, AlarmRecord(name)) for name in hypothesis.success_alarms)
    broken = [*_failures(event, hypothesis), *(f"alarm {name} went off" for name in _in_alarm(records, since, until))]
    unknown = [*_open_questions(event, hypothesis), *_doubts(records, since, until)]
    value = VerdictValue.BROKEN if broken else VerdictValue.UNKNOWN if unknown else VerdictValue.HELD
    why = _listed(broken or unknown) if broken or unknown else _praise(event)
    return Verdict(value, why, _stored(at), since, until, records)


def repeated(event: Event) -> Verdict | None:
    """Gives an event's verdict again, from the rest of the event and the stored states of its alarms alone. None for an
    event without a verdict.
    """
    verdict = event.verdict
    return verdict and judge(replace(event, verdict=None), verdict.alarms, verdict.at, verdict.until)


def went_off(verdict: Verdict) -> tuple[str, ...]:
    """Returns the names of the alarms that were in ALARM at a moment of the span."""
    return tuple(_in_alarm(verdict.alarms, verdict.since, verdict.until))


def recovery_bounds(event: Event) -> tuple[float, float] | None:
    """Returns the least and the most seconds that the recovery took; None for an event that has not recovered.

    The group was whole at the first of two good checks, and not yet at ``short_at`` of its watch.
    """
    if event.recovered_at is None or event.recovers_from is None:
        return None
    began, most = _stored(event.recovers_from), _stored(event.recovered_at)
    least = _stored(event.watch.short_at) if event.watch.short_at else began
    return max(0.0, (min(least, most) - began).total_seconds()), max(0.0, (most - began).total_seconds())


def recovery_in_words(event: Event, took: str) -> str:
    """Returns how the group of an event recovered, to follow its name: ``recovered in 3 s``.

    A lasting fault on an instance that stays can leave nothing to recover from. The time until the first check would
    look like a recovery then, so the words leave it out.

    Args:
        took: the time from :attr:`Event.recovers_from` to the recovery, in words.
    """
    if not event.victim_stays:
        return f"recovered in {took}"
    bounds = recovery_bounds(event)
    if bounds and bounds[0] > 0:
        return f"was whole {took} after {event.method} was over"
    return f"was whole when {event.method} was over"


def _failures(event: Event, hypothesis: Hypothesis) -> Iterator[str]:
    if event.status is Status.UNRECOVERED:
        yield "the group did not recover"
    bounds, limit = recovery_bounds(event), hypothesis.recovery_within
    if bounds and limit is not None and bounds[0] > limit:
        yield f"the recovery took at least {_seconds(bounds[0])}; recovery_within is {limit} s"


def _open_questions(event: Event, hypothesis: Hypothesis) -> Iterator[str]:
    if event.status is Status.GROUP_DELETED:
        yield "the group was deleted before it recovered"
    bounds, limit = recovery_bounds(event), hypothesis.recovery_within
    if bounds and limit is not None and bounds[0] <= limit < bounds[1]:
        yield f"the recovery took {_seconds(bounds[0])} to {_seconds(bounds[1])}; recovery_within is {limit} s"
    injection = event.injection
    if injection and event.victim_stays and injection.status != "Success":
        if injection.end_request:
            yield f"the fault was ended early: {injection.end_request.why}"
        else:
            yield f"the fault's command ended as {injection.status}: the instance may not have felt all of the fault"


def _in_alarm(records: Iterable[AlarmRecord], since: datetime, until: datetime) -> Iterator[str]:
    return (record.name for record in records if ALARM in _states_in(record, since, until))


def _doubts(records: Iterable[AlarmRecord], since: datetime, until: datetime) -> Iterator[str]:
    for record in records:
        states = _states_in(record, since, until)
        if record.doubt:
            yield f"alarm {record.name}: {record.doubt}"
        elif not states or record.states[0].at > since:
            yield f"alarm {record.name}: its state is not known for the whole time"
        elif INSUFFICIENT_DATA in states:
            yield f"alarm {record.name} had insufficient data"
        elif set(states) != {OK}:
            yield f"alarm {record.name} had a state that this version does not know"


def _states_in(record: AlarmRecord, since: datetime, until: datetime) -> list[str]:
    """Returns the states that an alarm had at any moment of the span, in their order."""
    return [
        one.state
        for one, after in pairwise((*record.states, None))
        if one and one.at <= until and (one.at >= since or after is None or after.at > since)
    ]


def _praise(event: Event) -> str:
    bounds = recovery_bounds(event)
    recovered = f"the group recovered in {_seconds(bounds[1])}" if bounds else "the group recovered"
    if bounds and event.victim_stays and event.hit_at and event.recovers_from:
        lasted = (_stored(event.recovers_from) - _stored(event.hit_at)).total_seconds()
        recovered = (
            f"the fault was proven over after {_seconds(lasted)}, and the group whole {_seconds(bounds[1])} later"
        )
    if event.hypothesis and event.hypothesis.recovery_within is not None:
        recovered += f", within {event.hypothesis.recovery_within} s"
    if event.hypothesis is None:
        return f"{recovered}; an earlier version claimed it, without a hypothesis"
    if not event.hypothesis.success_alarms:
        return f"{recovered}; the unit has no success alarms"
    return f"{recovered}, and its success alarms stayed OK"


def _seconds(seconds: float) -> str:
    return f"{round(seconds, 1):.6g} s"  # a whole number would contradict a limit that was missed by less than a second


def _listed(reasons: Sequence[str]) -> str:
    more = len(reasons) - MOST_REASONS
    return "; ".join([*islice(reasons, MOST_REASONS), *([f"and {more} more"] if more > 0 else [])])


def _stored_record(record: AlarmRecord) -> AlarmRecord:
    return replace(record, states=tuple(replace(state, at=_stored(state.at)) for state in record.states))


def _stored(moment: datetime) -> datetime:
    """Returns a moment as it is read back after it was stored."""
    return moments.parse(moments.iso(moment))
