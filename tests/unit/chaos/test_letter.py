"""The letter of a period: short, by owner, and one line for an empty week."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from tests.unit.chaos.test_period import lost, outcome, summary
from troop.chaos.events import Status
from troop.chaos.letter import MOST_NAMES, MOST_OWNERS, bounds, letter, week_before
from troop.shared.zones import zone


def test_empty_week_takes_one_line() -> None:
    assert letter(summary([])) == ["2026-10-05 to 2026-10-25: no hits."]


def test_leashed_week_says_what_the_leash_prevented() -> None:
    assert letter(summary([outcome(verdict="", status=Status.LEASHED)])) == [
        "2026-10-05 to 2026-10-25: no hits; the leash prevented 1 hit."
    ]


def test_lines_of_owners() -> None:
    usual = [outcome("web", f"2026-09-{n + 10}", owner="team-web") for n in range(5)]
    lines = letter(
        summary(
            [
                *usual,
                outcome("web", "2026-10-07", owner="team-web", seconds=200.0),
                outcome("shop", "2026-10-07", "unknown", owner="team-web"),
                lost("db", "2026-10-07", owner="team-db"),
                outcome("db", "2026-10-08", owner="team-db"),
                outcome("old", "2026-10-08", "unjudged", status=Status.GROUP_DELETED, seconds=None),
            ]
        )
    )
    assert lines == [
        "2026-10-05 to 2026-10-25: 5 terminations of 4 units, 2 HELD, 1 BROKEN, 1 UNKNOWN, 1 without a verdict.",
        "team-db: 2 terminations, 1 HELD, 1 BROKEN; recovered in 60 s (median); broken or not recovered: db; "
        "held again: db.",
        "team-web: 2 terminations, 1 HELD, 1 UNKNOWN; recovered in 2 min 10 s (median); verdict unknown: shop; "
        "slower than before: web (3 min 20 s, usually 60 s).",
        "no owner: 1 termination, 1 without a verdict.",
    ]


def test_lasting_faults_have_their_own_words() -> None:
    fault = outcome("web", "2026-10-08", method="latency", lasting=True, stays=True, seconds=3.0, owner="team-web")
    assert letter(summary([outcome("web", owner="team-web"), fault])) == [
        "2026-10-05 to 2026-10-25: 1 termination and 1 lasting fault of 1 unit, 2 HELD.",
        "team-web: 1 termination and 1 lasting fault, 2 HELD; recovered in 60 s (median); "
        "recovered 3 s after a lasting fault (median).",
    ]
    assert letter(summary([fault]))[0] == "2026-10-05 to 2026-10-25: 1 lasting fault of 1 unit, 1 HELD."


def test_letter_stays_short() -> None:
    many = [lost(f"unit-{n}\n{'x' * 300}", owner=f"team-{n % 100}\n" + "y" * 300) for n in range(1000)]
    lines = letter(summary(many))
    assert len(lines) == MOST_OWNERS + 2
    assert lines[-1] == "60 more owners: `troop report` has all of them."
    assert all("\n" not in line and len(line) < 200 + 110 * MOST_NAMES for line in lines)


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        ("2026-11-23T17:00:00+00:00", ("2026-11-16", "2026-11-22")),  # Monday morning
        ("2026-11-23T07:59:00+00:00", ("2026-11-09", "2026-11-15")),  # still Sunday in Los Angeles
        ("2026-11-29T12:00:00+00:00", ("2026-11-16", "2026-11-22")),
    ],
)
def test_last_full_week_on_the_zones_clock(moment: str, week: tuple[str, str]) -> None:
    first, last = week_before(datetime.fromisoformat(moment), zone("America/Los_Angeles"))
    assert (first.isoformat(), last.isoformat()) == week


def test_week_of_another_clock_has_167_hours() -> None:
    since, until = bounds(date(2026, 3, 2), date(2026, 3, 8), zone("America/Los_Angeles"))
    assert (until.astimezone(UTC) - since.astimezone(UTC)).total_seconds() == 167 * 3600
