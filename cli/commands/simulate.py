"""Implements `troop simulate`: simulates years of decisions in seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.forecasts import group_files, what_if
from cli.forecasts.simulation import Days, UnitYears, by_weekday, days_of, free_week_share, statistics
from cli.forecasts.simulation import simulate as run
from cli.shared import settings_files, show
from cli.shared.errors import CliError, Exit
from troop.shared.formatting import counted, plain, share

_BAR = 40
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_COLUMN = " ▁▂▃▄▅▆▇█"
_COLUMNS = (
    "unit",
    "terminations",
    "probability",
    "realised",
    "business days",
    "eligible",
    "week without any",
    "other days",
)


def simulate(
    groups: Annotated[Path, typer.Option("--groups", help="A YAML or JSON list of groups.")],
    first: Annotated[str | None, typer.Option("--from", help="First day, YYYY-MM-DD; by default today.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last day; by default a year from the first.")] = None,
    settings: what_if.SettingsFile = None,
    salt: what_if.Salt = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Show only this unit; all are simulated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Simulate terminations over months or years, by the code that decides in Lambda. Needs no AWS.

    Shows the terminations of each unit by weekday and hour, the rate after all guards beside the probability, and the
    chance of a week without a termination.
    """
    tried = settings_files.load(settings)
    start = what_if.day(first, "--from") if first else tried.chaos.calendars["default"].at(what_if.now()).day
    end = what_if.day(last, "--to") if last else _year_from(start)
    if end < start:
        raise CliError(Exit.USAGE, f"--to is {str(end)!r}: must not be before --from ({start})")
    account = group_files.load(groups).account(tried.chaos)
    unit_years = run(account, tried, what_if.salt_of(salt), start, end)
    if unit is not None:
        known = [u.unit for u in unit_years]
        unit_years = [u for u in unit_years if u.unit == unit]
        if not unit_years:
            raise CliError(Exit.NO_SUCH_UNIT, f"{groups} has no unit {unit!r}, only {', '.join(known)}")
    days = {name: days_of(calendar, start, end) for name, calendar in tried.chaos.calendars.items()}
    document = _document(unit_years, days, start, end) | {
        "assumptions": what_if.assumptions(*what_if.FILE_ASSUMPTIONS, what_if.salt_note(salt))
    }
    if as_json:
        show.document(document)
    else:
        _show(document)
        what_if.tell(document["assumptions"])


def _year_from(day: date) -> date:
    """Returns the day before the same date of the next year."""
    try:
        following = day.replace(year=day.year + 1)
    except ValueError:  # 29 February
        following = date(day.year + 1, 3, 1)
    return following - timedelta(days=1)


def _document(unit_years: Sequence[UnitYears], days: Mapping[str, Days], first: date, last: date) -> dict[str, Any]:
    groups = [
        {"name": group.name, "unit": unit.unit, **statistics(unit, days[unit.calendar.name], group.name)}
        for unit in unit_years
        for group in unit.groups
    ]
    units = [
        {"unit": unit.unit, "groups": [g.name for g in unit.groups], **statistics(unit, days[unit.calendar.name])}
        for unit in unit_years
    ]
    hits = [t for unit in unit_years for t in unit.terminations]
    hours = Counter(t.hour for t in hits)
    weeks = {monday for calendar_days in days.values() for monday in calendar_days.weeks}
    return {
        "from": first.isoformat(),
        "to": last.isoformat(),
        "groups": groups,
        "units": units,
        "total": {
            "terminations": len(hits),
            "by_weekday": by_weekday(hits),
            "by_hour": {f"{hour:02d}": hours[hour] for hour in range(min(hours), max(hours) + 1)} if hours else {},
            "chance_of_a_week_without": free_week_share((t.day for t in hits), weeks),
        },
        "calendars": [{"calendar": n, "business_days": d.business, "open_days": d.open} for n, d in days.items()],
    }


def _show(document: Mapping[str, Any]) -> None:
    units, total = document["units"], document["total"]
    terminations = counted(total["terminations"], "termination")
    show.say(f"{document['from']} to {document['to']}: {terminations} of {counted(len(units), 'unit')}")
    show.table(_COLUMNS, [_row(unit) for unit in units])
    if total["terminations"]:
        for key, title in (("by_weekday", "by weekday"), ("by_hour", "by hour")):
            rows = []
            for unit in units:
                counts = [unit[key].get(step, 0) for step in total[key]]
                rows.append((unit["unit"], *counts, _spark(counts)))
            show.table((title, *total[key], ""), rows, title=" ")
            show.table(("", "", ""), _bars(total[key]), title=" ")
    chance = share(total["chance_of_a_week_without"])
    show.say(f"A week without any termination at all: {chance}")


def _row(unit: Mapping[str, Any]) -> tuple[Any, ...]:
    others = [f"{reason} {count}" for reason, count in unit["reasons"].items() if reason != "terminate"]
    expected = share(unit["configured_chance_of_a_week_without"])
    return (
        unit["unit"],
        unit["terminations"],
        show.NOTHING if unit["probability"] is None else f"{unit['probability']:g}",
        show.NOTHING if unit["realised_rate"] is None else plain(unit["realised_rate"]),
        unit["business_days"],
        unit["eligible_days"],
        f"{share(unit['chance_of_a_week_without'])} (by the roll alone {expected})",
        ", ".join(others),
    )


def _bars(counts: Mapping[str, int]) -> list[tuple[str, str, str]]:
    most = max(counts.values(), default=0)
    return [(step, str(count), _bar(count / most if most else 0)) for step, count in counts.items()]


def _spark(counts: Sequence[int]) -> str:
    """Draws a column for each count; the largest count has the highest."""
    most = max(counts, default=0)
    return "".join(_COLUMN[-(-count * 8 // most)] for count in counts) if most else ""


def _bar(share: float) -> str:
    """Draws a bar of up to 40 characters, to an eighth of one."""
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
