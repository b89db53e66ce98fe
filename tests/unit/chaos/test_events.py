"""Events: ids that survive a URL, and seconds that mean what they say."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.chaos.build import FRIDAY, at, event
from troop.chaos.events import from_url, on_demand_id, scheduled_id, to_url
from troop.shared import moments

NAMES = st.text(min_size=1, max_size=60)
AWKWARD = ["web", "web/api", "a b", "100%", "~", "~~7E", "%23", "#", "od#x", "..", "ünï", "a?b=c&d", "\N{SNOWMAN}"]


@pytest.mark.parametrize(
    ("event_id", "segment"),
    [
        ("2026-11-20#web", "2026-11-20~web"),
        ("2026-11-20#web/api", "2026-11-20~web~2Fapi"),
        ("2026-11-20#a~b%c", "2026-11-20~a~7Eb~25c"),
        ("od#web#key", "od~web~23key"),
    ],
)
def test_an_id_as_a_path_segment(event_id: str, segment: str) -> None:
    assert to_url(event_id) == segment
    assert from_url(segment) == event_id


@pytest.mark.parametrize("unit", AWKWARD)
def test_awkward_units_come_back_as_they_went(unit: str) -> None:
    assert from_url(to_url(scheduled_id(FRIDAY, unit))) == scheduled_id(FRIDAY, unit)
    assert from_url(to_url(on_demand_id(unit, unit))) == on_demand_id(unit, unit)


@given(NAMES, NAMES)
def test_any_id_survives_as_one_segment_of_unreserved_characters(unit: str, key: str) -> None:
    for event_id in (scheduled_id(FRIDAY, unit), on_demand_id(unit, key)):
        segment = to_url(event_id)
        assert re.fullmatch(r"[A-Za-z0-9._~-]+", segment)
        assert from_url(segment) == event_id


@given(NAMES, NAMES)
@example("web", "WEB")
@example("~", "%7E")
@example("a~2Fb", "a/b")
def test_two_ids_are_two_segments(one: str, other: str) -> None:
    assert (to_url(scheduled_id(FRIDAY, one)) == to_url(scheduled_id(FRIDAY, other))) == (one == other)


@given(st.text("~%#aA7eE2fF", max_size=12).map("2026-11-20{}".format))
@example("od~web~2f")
def test_an_id_has_one_spelling_only(segment: str) -> None:
    """Whatever else is asked for is no event's id: a path that a policy denies cannot be spelled another way."""
    event_id = from_url(segment)
    assert to_url(event_id) == segment or not re.match(r"\d{4}-\d\d-\d\d#|od#", event_id)


@pytest.mark.parametrize("segment", ["", "web", "2026-11-20#web", "2026-11-20~a%20b", "2026-11-20~~77eb", "od~~2f"])
def test_another_spelling_finds_nothing(segment: str) -> None:
    assert from_url(segment).startswith("~")


def test_recovery_counts_from_the_termination() -> None:
    assert event(recovered_at=at("12:00:47")).recovery_seconds == 45
    assert event().recovery_seconds is None
    assert event(recovered_at=at("12:00:47"), terminated_at=None).recovery_seconds is None
    assert event(recovered_at=at("11:59")).recovery_seconds == 0  # clocks differ


# ------------------------------------------------------------------ moments as text

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(MOMENTS, MOMENTS)
def test_the_order_of_moments_is_the_order_of_their_text(one: datetime, other: datetime) -> None:
    def whole(moment: datetime) -> datetime:
        return moment - timedelta(microseconds=moment.microsecond % 1000)

    assert (moments.iso(one) < moments.iso(other)) == (whole(one) < whole(other))
    assert moments.parse(moments.iso(one)) == whole(one)


def test_a_moment_is_written_in_utc() -> None:
    assert moments.iso(datetime.fromisoformat("2026-11-20T09:05:00.1239-08:00")) == "2026-11-20T17:05:00.123Z"


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-20", "2026-11-20T17:05:00"])
def test_a_moment_without_an_offset_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        moments.parse(text)
