"""The deployment's own halt: what counts as one cause, and for how long."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import at
from troop.chaos.self_halt import BrokenEvent, causes, recent, self_halt
from troop.shared.codec import to_document

NOON = at("12:00")


def broken(unit: str, *alarms: str, minute: int = 0, event_id: str = "") -> BrokenEvent:
    return BrokenEvent(event_id or f"2026-11-20#{unit}", unit, NOON + timedelta(minutes=minute), alarms)


def counted(*events: BrokenEvent) -> int:
    return len(causes(events))


@pytest.mark.parametrize(
    ("events", "count"),
    [
        ([], 0),
        ([broken("a")], 1),
        ([broken("a"), broken("b")], 2),
        ([broken("a", "x"), broken("b", "y")], 2),
        ([broken("a", "x"), broken("b", "x"), broken("c", "x")], 1),
        ([broken("a", "x"), broken("b")], 2),
        ([broken("a", "x"), broken("b", "y"), broken("c", "x", "y")], 1),
        ([broken("a", "x", "y"), broken("b", "y", "z"), broken("c", "z"), broken("d", "w")], 2),
        ([broken("a"), broken("a", "x", event_id="od#a#1"), broken("b", "x")], 1),
        ([broken("x"), broken("b", "x")], 2),
    ],
)
def test_events_of_one_unit_or_with_a_common_alarm_have_one_cause(events: list[BrokenEvent], count: int) -> None:
    assert counted(*events) == count


def test_a_halt_names_units_and_alarms() -> None:
    events = [broken("web", "errors"), broken("api", "errors"), broken("db"), broken("queue", "age")]
    assert self_halt(events, 4, NOON) is None
    halt = self_halt(events, 3, NOON)
    assert halt
    assert halt.why == "3 causes broke units within an hour: web, api (alarm errors); db (recovery); queue (alarm age)"
    assert halt.events == tuple(event.event_id for event in events)
    assert halt.at == NOON
    alone = self_halt(events[:1], 1, NOON)
    assert alone
    assert alone.why == "1 cause broke units within an hour: web (alarm errors)"


def test_zero_never_halts() -> None:
    assert self_halt([broken(str(number)) for number in range(9)], 0, NOON) is None


def test_a_halt_by_many_is_short() -> None:
    events = [broken(f"unit-{number}", *(f"a{number}-{n}" for n in range(5))) for number in range(12)]
    halt = self_halt(events, 3, NOON)
    assert halt
    assert "unit-9 (alarm a9-0, a9-1, a9-2 and 2 more); and 2 more" in halt.why


def test_events_count_for_an_hour() -> None:
    newest = recent([broken("a", minute=-61), broken("b", minute=-60), broken("c", minute=-1)], broken("d"))
    assert [event.unit for event in newest] == ["b", "c", "d"]


def test_an_event_counts_once() -> None:
    events = recent((), broken("a"))
    assert recent(events, broken("a")) == events


def test_the_newest_events_that_fit_into_an_item_stay() -> None:
    many: tuple[BrokenEvent, ...] = ()
    for number in range(200):
        many = recent(many, broken(f"unit-{number}"))
    assert len(many) == 200
    for number in range(40):
        many = recent(many, broken(f"large-{number}", *(f"{number}-{n}".ljust(255) for n in range(50))))
    assert many[-1].unit == "large-39"
    item = {f"{at}": to_document(event) for at, event in enumerate(many)}
    assert 150_000 < len(json.dumps(item)) < 400_000
    assert len(recent((), broken("u" * 255, *(f"{n}".ljust(255) for n in range(50))))) == 1


EVENTS = st.lists(
    st.builds(
        broken,
        st.sampled_from("abcdef"),
        st.sampled_from("xyz"),
        event_id=st.integers(0, 99).map(str),
    )
    | st.builds(broken, st.sampled_from("abcdef"), event_id=st.integers(100, 199).map(str)),
    max_size=8,
    unique_by=lambda event: event.event_id,
)


@given(EVENTS, st.randoms())
def test_the_order_of_events_does_not_change_their_causes(events: list[BrokenEvent], shuffle: Random) -> None:
    mixed = list(events)
    shuffle.shuffle(mixed)
    assert {frozenset(one) for one in causes(events)} == {frozenset(one) for one in causes(mixed)}
    assert sorted(event.event_id for one in causes(events) for event in one) == sorted(e.event_id for e in events)


@given(EVENTS)
def test_events_of_different_causes_share_nothing(events: list[BrokenEvent]) -> None:
    groups = causes(events)
    for one in groups:
        for other in groups:
            if one is not other:
                assert not {event.unit for event in one} & {event.unit for event in other}
                assert not {a for event in one for a in event.alarms} & {a for event in other for a in event.alarms}
