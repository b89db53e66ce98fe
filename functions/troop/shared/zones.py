"""Provides the time zones of the pinned package tzdata, and no others.

Machines and runtimes have zone files of their own, often years old, which the standard library prefers. Each would give
the same calendar another window.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo  # noqa: TID251  # the one place that reads zones

import tzdata

from troop.shared.errors import TroopError

Zone = ZoneInfo

VERSION: str = tzdata.IANA_VERSION
"""The release of the IANA database, such as ``2026f``."""

_PACKAGE = Path(tzdata.__file__).parent
_NO_ZONES = frozenset({"Factory"})
"""Names of the package that are not zones of places."""

_STEP = timedelta(hours=12)
"""The step of the search: no zone changes its clocks twice in so short a time."""


class UnknownZoneError(TroopError):
    """The pinned time zones do not have a name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is no time zone of the IANA database {VERSION}, such as Europe/Vienna: correct the name, or pin "
            "a release of tzdata that has it"
        )


@cache
def names() -> frozenset[str]:
    """Returns the names of all zones."""
    return frozenset((_PACKAGE / "zones").read_text(encoding="utf-8").split()) - _NO_ZONES


@cache
def zone(name: str) -> Zone:
    """Returns a zone by its name, such as ``Europe/Vienna``.

    Raises:
        UnknownZoneError: there is none, whatever zones the machine has.
    """
    if name not in names():
        raise UnknownZoneError(name)
    with _PACKAGE.joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return Zone.from_file(file, key=name)


def offsets(name: str, first: datetime, last: datetime) -> list[tuple[datetime, int, str]]:
    """Lists a zone's changes of the clock from ``first`` to ``last``, for readers that have zones of their own.

    Returns:
        Moments in UTC, and the minutes ahead of UTC and the abbreviation from then on. The first moment is ``first``.

    Raises:
        UnknownZoneError: there is no such zone.
    """
    there = zone(name)

    def clock(moment: datetime) -> tuple[int, str]:
        local = moment.astimezone(there)
        return (local.utcoffset() or timedelta()) // timedelta(minutes=1), local.tzname() or ""

    moment = first.astimezone(UTC)
    changes = [(moment, *clock(moment))]
    while moment < last:
        before, moment = moment, moment + _STEP
        if clock(moment) != changes[-1][1:]:
            early, late = before, moment
            while late - early > timedelta(seconds=1):
                middle = early + (late - early) // 2
                early, late = (middle, late) if clock(middle) == clock(before) else (early, middle)
            changes.append((late.replace(microsecond=0), *clock(moment)))
    return changes
