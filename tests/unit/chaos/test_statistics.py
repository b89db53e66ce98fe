"""Statistics of the rolls, through the decisions themselves.

Salts are fixed, so these tests say the same every time. Each bound states the chance with which it would have refused
a right implementation when its salt was chosen: at most one in a million for each of the checks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import holidays
import pytest

from tests.unit.chaos.build import FRIDAY, SALT, at, calendar, calendars, days, facts, group, settings
from troop.chaos.decisions import decide
from troop.chaos.facts import UnitState
from troop.chaos.guards import Target, judge
from troop.chaos.roll import due_at, roll

pytestmark = pytest.mark.slow

Z = 4.9
"""Standard deviations: a normal variable is further out, to either side, with probability 9.6e-7."""

WORKING_WEEK = ["MON", "TUE", "WED", "THU", "FRI"]
SUN_TO_THU = ["SUN", "MON", "TUE", "WED", "THU"]


def business_days(first: date, count: int) -> list[date]:
    off = holidays.country_holidays("US", years=range(first.year, first.year + 30))
    candidates = (first + timedelta(days=n) for n in range(count * 2))
    return [day for day in candidates if day.weekday() < 5 and day not in off][:count]


def chi_square(counts: Iterable[int]) -> tuple[float, float]:
    """The statistic against equal shares, and its bound at one in a million (Wilson and Hilferty's approximation)."""
    observed = list(counts)
    expected, freedom = sum(observed) / len(observed), len(observed) - 1
    assert expected >= 5, "too few for the approximation"
    statistic = sum((count - expected) ** 2 / expected for count in observed)
    return statistic, freedom * (1 - 2 / (9 * freedom) + 4.76 * math.sqrt(2 / (9 * freedom))) ** 3


# ------------------------------------------------------------------ probability 1


@pytest.mark.parametrize(
    ("zone", "raw"),
    [
        ("America/Los_Angeles", {}),
        ("Asia/Jerusalem", {"weekdays": SUN_TO_THU, "country": "IL", "open": "10:10", "close": "11:11"}),
        ("Europe/Vienna", {"weekdays": [*WORKING_WEEK, "SUN"], "country": "AT", "open": "00:00", "close": "24:00"}),
        ("Europe/Vienna", {"weekdays": ["SUN"], "country": None, "open": "00:30", "close": "03:00"}),
        ("Europe/Vienna", {"weekdays": ["SUN"], "country": None, "open": "02:10", "close": "04:00"}),
    ],
    ids=["Mon-Fri", "Sun-Thu", "all day", "until the clocks change", "while the clocks change"],
)
def test_probability_one_hits_a_unit_once_on_every_business_day_only(zone: str, raw: dict[str, Any]) -> None:
    """Ticks every 15 minutes of half a year and more, day and night: over both clock changes and the turn of a year."""
    chosen = settings(calendars=calendars(time_zone=zone, **raw))
    one = chosen.calendars["default"]
    unit = facts(chosen=chosen)
    hits: Counter[date] = Counter()
    with_an_open_tick = set()
    moment = datetime(2026, 10, 1, tzinfo=UTC)
    while (day := one.at(moment).day) <= date(2027, 4, 4):
        if one.at(moment).closure is None:
            with_an_open_tick.add(day)
            decision = decide(replace(unit, now=moment))
            if decision.reason == "terminate":
                hits[day] += 1
                unit = replace(unit, state=UnitState(last_day=day))
        else:
            assert decide(replace(unit, now=moment)).reason != "terminate"
        moment += timedelta(minutes=15)
    business = {day for day in days(date(2026, 10, 1), date(2027, 4, 4)) if one.is_business_day(day)}
    assert set(hits) == with_an_open_tick
    assert with_an_open_tick == business
    assert set(hits.values()) == {1}


# ------------------------------------------------------------------ probability p


@pytest.mark.parametrize("probability", [0.02, 0.2, 0.5, 0.9])
def test_terminations_are_binomial(probability: float) -> None:
    """Of n days of units, the number decided for termination is within 4.9 standard deviations of n*p."""
    chosen = settings(probability=probability)
    trials = hits = 0
    for day in business_days(date(2026, 1, 1), 100):
        unit = facts(chosen=chosen, now=at("14:45", day))
        for number in range(30):
            trials += 1
            hits += decide(replace(unit, unit=f"unit-{number}")).reason == "terminate"
    deviation = math.sqrt(trials * probability * (1 - probability))
    assert abs(hits - trials * probability) <= Z * deviation


def test_a_year_of_one_unit_is_as_spread_as_a_binomial_should_be() -> None:
    """The variance over units of the days hit in a year: 400 units, p = 0.2. The sum of squared deviations, over the
    variance, is chi-square with 400 degrees of freedom; both of its tails are bounded."""
    year, p = business_days(date(2026, 1, 1), 250), 0.2
    spread = sum(
        (sum(roll(SALT, day, f"unit-{n}") < p for day in year) - 250 * p) ** 2 / (250 * p * (1 - p)) for n in range(400)
    )
    low, high = (400 * (1 - 2 / 3600 + z * math.sqrt(2 / 3600)) ** 3 for z in (-Z, Z))
    assert low < spread < high


def test_rolls_are_uniform() -> None:
    """Chi-square over 100 equal bins."""
    bins = Counter(
        int(roll(SALT, day, f"unit-{n}") * 100) for day in business_days(date(2026, 1, 1), 100) for n in range(200)
    )
    statistic, bound = chi_square(bins[n] for n in range(100))
    assert statistic < bound


# ------------------------------------------------------------------ minutes


def test_due_minutes_are_uniform_over_the_window_less_its_last_quarter_of_an_hour() -> None:
    """Chi-square over the 345 minutes from 09:00 to 14:44."""
    one, counts = calendar(), Counter[str]()
    for day in business_days(date(2026, 1, 1), 100):
        for n in range(120):
            counts[f"{one.local(due_at(SALT, day, f'unit-{n}', one)):%H:%M}"] += 1
    minutes = [f"{m // 60:02}:{m % 60:02}" for m in range(9 * 60, 14 * 60 + 45)]
    assert set(counts) == set(minutes)
    statistic, bound = chi_square(counts[minute] for minute in minutes)
    assert statistic < bound


def test_a_tick_every_quarter_of_an_hour_hits_at_each_of_them_alike() -> None:
    """What users see: the tick at which a due roll fires. 09:00 takes only the first minute's rolls, so it stays out;
    the 23 others take 15 minutes each, but for the last, which takes 14."""
    chosen = settings()
    ticks = [timedelta(minutes=15 * n) for n in range(24)]
    fired = Counter[timedelta]()
    for day in business_days(date(2026, 1, 1), 30):
        start = at("09:00", day)
        first = facts(chosen=chosen, now=start)
        for n in range(40):
            unit = replace(first, unit=f"unit-{n}")
            fired[next(t for t in ticks if decide(replace(unit, now=start + t)).reason == "terminate")] += 1
    statistic, bound = chi_square(fired[t] for t in ticks[1:-1])
    assert statistic < bound
    assert fired[ticks[-1]] > 0


# ------------------------------------------------------------------ instances


@pytest.mark.parametrize("sizes", [(5,), (2, 7), (1, 1, 1)])
def test_instances_are_hit_alike_whichever_group_of_the_unit_they_are_in(sizes: tuple[int, ...]) -> None:
    """Chi-square over the instances, 1500 days."""
    groups = tuple(group(f"web-{n}", size=size, first=100 * n) for n, size in enumerate(sizes))
    unit = facts(groups=groups, item={"min_healthy": 1})
    hits: Counter[str] = Counter()
    for day in business_days(date(2026, 1, 1), 1500):
        verdict = judge(replace(unit, now=at("14:45", day)))
        assert isinstance(verdict, Target)
        hits[verdict.instance.instance_id] += 1
    statistic, bound = chi_square(hits[i.instance_id] for g in groups for i in g.instances)
    assert statistic < bound


# ------------------------------------------------------------------ independence


def correlation(one: list[float], other: list[float]) -> float:
    """In standard deviations: for independent uniform numbers, nearly standard normal."""
    return math.sqrt(len(one)) * 12 * sum((a - 0.5) * (b - 0.5) for a, b in zip(one, other, strict=True)) / len(one)


LONG = [FRIDAY + timedelta(days=n) for n in range(4000)]


def rolls(unit: str, salt: bytes = SALT) -> list[float]:
    return [roll(salt, day, unit) for day in LONG]


def minutes(unit: str) -> list[float]:
    """The due minute as a share of the window: 345 steps, so its middle is shifted by half of one."""
    one = calendar(time_zone="UTC", country=None)
    opens = timedelta(hours=9)
    seconds = [
        (due_at(SALT, day, unit, one) - datetime.combine(day, time.min, UTC) - opens).total_seconds() for day in LONG
    ]
    return [(s / 60 + 0.5) / 345 for s in seconds]


WEB = rolls("web")


@pytest.mark.parametrize(
    ("case", "other"),
    [
        ("a unit of a similar name", lambda: rolls("web2")),
        ("a unit whose name begins with its name", lambda: rolls("web|web")),
        ("a unit of another name", lambda: rolls("a-service-of-another-team")),
        ("its own roll of the day before", lambda: [roll(SALT, day - timedelta(days=1), "web") for day in LONG]),
        ("its own roll of the week before", lambda: [roll(SALT, day - timedelta(days=7), "web") for day in LONG]),
        ("its own minute", lambda: minutes("web")),
        ("its own roll in another deployment", lambda: rolls("web", b"another salt")),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_roll_is_independent_of(case: str, other: Any) -> None:
    assert abs(correlation(WEB, other())) < Z


def test_two_units_are_hit_on_one_day_as_often_as_chance_has_it() -> None:
    """Of 190 pairs of 20 units over 500 days at p = 0.2, the joint hits: expected 0.04 of 95,000. The hits of a day
    are a function of the number of units hit, whose second factorial moment has this variance a day."""
    n, p, count = 20, 0.2, 500
    pairs = 0
    for day in LONG[:count]:
        hit = sum(roll(SALT, day, f"unit-{k}") < p for k in range(n))
        pairs += hit * (hit - 1) // 2
    pmf = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    mean = sum(q * k * (k - 1) / 2 for k, q in enumerate(pmf))
    variance = sum(q * (k * (k - 1) / 2 - mean) ** 2 for k, q in enumerate(pmf))
    assert math.isclose(mean, 190 * p * p)
    assert abs(pairs - count * mean) <= Z * math.sqrt(count * variance)
