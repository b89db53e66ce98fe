"""The page of a period: pictures, tables, and text that people have set."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from tests.unit.chaos.test_period import lost, now, outcome, summary
from troop.chaos.letter import letter
from troop.chaos.period import Period
from troop.report import period_pictures
from troop.report.html import MOST_ROWS
from troop.report.period_page import period_page
from troop.report.period_pictures import BAR, HEIGHT, MOST_BARS, STAGE_WORDS, WIDTH, Weeks
from troop.risks.last_reading import LastReading
from troop.risks.risk import Risk
from troop.risks.risk_changes import risk_changes
from troop.risks.rule import Severity

STAGES = {"noticed": 5.0, "launched": 10.0, "in_service": 60.0, "healthy": 20.0, "recovered": 5.0}


def document(read: dict[str, Any]) -> dict[str, Any]:
    return {
        "deployment": "Troop",
        "where": "Troop in account 111122223333, region eu-central-1",
        "created_at": "2026-10-26T09:00:00.000Z",
        "created_by": "1.2.3",
        "events_read": 7,
        "expired": ["Events do not expire: all of the period are read."],
        "letter": letter(read),
        "risks": None,
        **read,
    }


NOW = datetime(2026, 11, 1, tzinfo=UTC)
SEEN = datetime(2026, 10, 6, tzinfo=UTC)
ON_RECORD = Risk("one-zone", "web", Severity.HIGH, "", {"zone": "a"}, SEEN, NOW)
HOSTILE = '<img src=x onerror="alert(1)">\u202e'


def test_text_of_people_is_only_text() -> None:
    page = period_page(
        document(summary([lost(HOSTILE, owner=HOSTILE, why=HOSTILE), outcome(HOSTILE, "2026-10-08", stages=STAGES)],
                         [now(HOSTILE + "2", HOSTILE, endless=True)]))
    )  # fmt: skip
    assert "<img" not in page
    assert "\u202e" not in page
    assert "&lt;img src=x" in page
    assert "<script" not in page
    assert "script-src &#39;none&#39;" in page


def test_risks_that_appeared_and_that_are_gone_are_listed() -> None:
    hostile = replace(ON_RECORD, subject=HOSTILE, owner=HOSTILE, confirmed="2026-10-07#web")
    gone = replace(ON_RECORD, subject="db", gone_since=datetime(2026, 10, 8, tzinfo=UTC))
    read = summary([])
    reading = LastReading(NOW - timedelta(days=3), unread=(f"images could not be read: {HOSTILE}",))
    changes = risk_changes([(hostile, False), (gone, False)], reading, datetime(2026, 10, 5, tzinfo=UTC), NOW, NOW)
    page = period_page(document(read) | {"risks": changes})
    assert "<img" not in page
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert "1 high, 0 medium, 0 low hold now. The account was last read at 2026-10-29T00:00:00Z" in text
    assert "Not known: images could not be read" in text
    assert "2026-10-07#web" in text
    assert "high one-zone db no owner 2026-10-06 2026-10-08" in text
    assert "They could not be read." in period_page(document(read))


def test_empty_period_has_a_page() -> None:
    page = period_page(document(Period(datetime(2026, 10, 5, tzinfo=UTC), datetime(2026, 10, 12, tzinfo=UTC),
                                       date(2026, 10, 5), date(2026, 10, 11)).document([])))  # fmt: skip
    assert "Nothing was hit." in page
    assert "<svg" not in page


def test_lasting_faults_are_counted_apart_from_terminations() -> None:
    both = [outcome("web"), outcome("db", method="latency", lasting=True, stays=True, seconds=3.0)]
    page = period_page(document(summary(both)))
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert "Hits 2 of 2 units: 1 termination, 1 lasting fault" in text
    assert "of 1; after lasting faults 3 s, of 1" in text.replace("\N{NO-BREAK SPACE}", " ")
    only = period_page(document(summary(both[1:])))
    assert "Nothing was hit." not in only


def test_more_rows_than_a_page_shows_are_counted() -> None:
    read = summary([], [now(f"unit-{n:05}") for n in range(MOST_ROWS + 7)])
    page = period_page(document(read))
    assert page.count('<th scope="row">unit-') == MOST_ROWS
    assert "7 more units: the JSON file has all." in page


WEEKS = summary(
    [outcome("web", "2026-10-06"), lost("db", "2026-10-06"), outcome("web", "2026-10-20", "unknown", seconds=90.0)]
)["weeks"]


@pytest.mark.parametrize("place", [period_pictures.verdicts_by_week, period_pictures.recoveries_by_week])
def test_bars_of_weeks_stand_on_the_floor_and_stay_inside(place: Any) -> None:
    picture: Weeks = place(WEEKS)
    columns: dict[float, list[period_pictures.Rect]] = {}
    for bar in picture.bars:
        columns.setdefault(bar.x, []).append(bar)
        assert 0 <= bar.x <= bar.x + bar.width <= WIDTH
        assert 0 <= bar.y <= HEIGHT
    floor = picture.rows[0][0]
    for bars in columns.values():
        assert sum(bar.height for bar in bars) == pytest.approx(floor - min(bar.y for bar in bars))
        assert max(bar.y + bar.height for bar in bars) == pytest.approx(floor)
    assert len(columns) == 2  # weeks without hits have no bar
    assert [text for _, text in picture.labels] == ["10-05", "10-12", "10-19"]


def test_height_of_a_week_is_its_number_of_hits() -> None:
    picture = period_pictures.verdicts_by_week(WEEKS)
    first, last = min(bar.x for bar in picture.bars), max(bar.x for bar in picture.bars)
    heights = [sum(bar.height for bar in picture.bars if bar.x == x) for x in (first, last)]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.2)


@pytest.mark.parametrize(
    ("most", "labels"),
    [(1, ["0", "1"]), (3, ["0", "1", "2", "3"]), (5019, ["0", "2,000", "4,000", "6,000"]), (0, ["0", "1"])],
)
def test_scale_has_round_numbers(most: int, labels: list[str]) -> None:
    week = {"week": "2026-10-05", "held": most, "hits": most}
    picture = period_pictures.verdicts_by_week([dict.fromkeys(period_pictures.VERDICTS, 0) | week])
    assert [text for _, text in picture.rows] == labels


def test_long_period_leaves_out_labels_of_weeks() -> None:
    weeks = [{**WEEKS[0], "week": f"20{n:02}-10-05"} for n in range(53)]
    assert len(period_pictures.verdicts_by_week(weeks).labels) == 14


def test_bars_of_stages_add_up_and_the_slowest_unit_is_the_widest() -> None:
    slow = {stage: 2 * seconds for stage, seconds in STAGES.items()}
    read = summary(
        [outcome("web", stages=STAGES, seconds=100.0), outcome("db", stages=slow, seconds=200.0), outcome("old")]
    )
    bars = period_pictures.stage_bars(read["units"], read["totals"])
    assert [bar.unit for bar in bars] == ["all units", "db", "web"]
    widths = {bar.unit: sum(part.width for part in bar.parts) for bar in bars}
    assert (widths["db"], widths["web"]) == (BAR, BAR / 2)
    for bar in bars:
        assert [part.style for part in bar.parts] == [f"part{n + 1}" for n in range(len(STAGE_WORDS))]
        ends = [part.x + part.width for part in bar.parts]
        assert [part.x for part in bar.parts][1:] == pytest.approx(ends[:-1])


def test_stages_that_no_unit_has_leave_the_colours_of_the_others() -> None:
    without = {stage: seconds for stage, seconds in STAGES.items() if stage != "healthy"}
    page = period_page(document(summary([outcome("web", stages=without)])))
    key = re.findall(r'<rect class="(part\d)" width="10" height="10"/></svg>until ([a-z ]+)', page)
    drawn = re.findall(r'<rect class="(part\d)"[^>]*><title>until ([a-z ]+):', page)
    assert key == [("part1", "noticed"), ("part2", "launched"), ("part3", "in service"), ("part5", "recovered")]
    assert set(key) == set(drawn)


def test_stages_are_drawn_of_some_units_only() -> None:
    read = summary(outcome(f"unit-{n}", stages=STAGES, seconds=float(n)) for n in range(MOST_BARS + 5))
    bars = period_pictures.stage_bars(read["units"], read["totals"])
    assert len(bars) == MOST_BARS + 1
    assert bars[1].unit == f"unit-{MOST_BARS + 4}"
    page = period_page(document(read))
    assert len(re.findall(r'<svg class="timeline"', page)) == MOST_BARS + 1
    assert period_pictures.stage_bars(summary([outcome("old")])["units"], read["totals"]) == []
