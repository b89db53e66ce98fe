"""What is known of a node whose phase ended early."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from troop.measure.histogram import Histogram
from troop.measure.live import Live, LiveOperation
from troop.measure.operations import Operation
from troop.measure.partial import partial
from troop.measure.summary import LOST, Summary, parse
from troop.measure.windows import coarse, highest_in, index_of

FROM = 1_000_000.0
LIVE = Live("i-1", "drivers", "measure", int(FROM) + 45, 15, FROM, 60.0)


def times(*micros: int) -> Histogram:
    one = Histogram()
    for each in micros:
        one.record(each)
    return one


def live(*micros: int, failed: int = 0, **changes: Any) -> Live:
    return replace(LIVE, operations={"read": LiveOperation(measured=coarse(times(*micros)), failed=failed)}, **changes)


def left(outcome: str, ended_at: float, *micros: int) -> Summary:
    operations = {"read": Operation(times(*micros))} if micros else {}
    return Summary(
        "i-1", "drivers", 3, "measure", outcome, FROM - 5, ended_at, measured_from=FROM, measured_seconds=60.0,
        operations=operations,
    )  # fmt: skip


def test_a_lost_node_has_measured_what_it_had_uploaded() -> None:
    one = partial(live(1000, 1001, 50_000, failed=2), None, 3)
    assert one is not None
    assert (one.rank, one.outcome, one.measured_from, one.measured_seconds) == (3, "partial", FROM, 45.0)
    read = one.operations["read"]
    assert (read.times.count, read.errors) == (3, {"other": 2})
    assert read.times.max == highest_in(index_of(50_000))
    assert 50_000 <= read.times.max <= 50_000 * 17 / 16


def test_a_summary_whose_script_was_killed_gets_the_operations_of_the_running_summary() -> None:
    one = partial(live(1000, 2000), left(LOST, FROM + 50), 3)
    assert one is not None
    assert (one.outcome, one.operations["read"].times.count) == (LOST, 2)
    assert one.measured_seconds == 45.0, "it has operations up to then, and a longer time would lower its rate"
    more = partial(live(1000), left(LOST, FROM + 50, 1000, 2000), 3)
    assert more is not None
    assert more.operations["read"].times.max == 2000, "the summary has more, and exactly"


def test_a_whole_summary_stays_as_it_is() -> None:
    whole = left("ok", FROM + 61, 1000)
    assert partial(live(1000, 2000, 3000), whole, 3) is whole


@pytest.mark.parametrize(
    "nothing",
    [
        (None, None),
        (live(), None),
        (live(1000, until=int(FROM) - 10), None),
        (None, left(LOST, FROM + 30)),
        (None, left(LOST, FROM - 1, 1000)),
        (None, replace(left(LOST, FROM + 30, 1000), measured_from=None)),
    ],
)
def test_a_node_that_had_measured_nothing_is_left_out(nothing: tuple[Live | None, Summary | None]) -> None:
    assert partial(*nothing, 3) is None


def test_partial_summary_has_the_form_of_a_summary() -> None:
    one = partial(live(1000, failed=1), left(LOST, FROM + 50), 3)
    assert one is not None
    assert parse(one.document()) == one
