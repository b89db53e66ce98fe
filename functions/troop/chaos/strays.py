"""Finds stray items: items of the table ``GroupTags`` whose key names no unit, so that their policy has no effect.

An item whose key nearly names a unit makes that unit malformed: somebody may have meant to opt it out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, TypeVar

from troop.chaos.groups import Group
from troop.chaos.near_keys import Nearest, folded, shown
from troop.chaos.policy import MOST_NEAR, has_values

QUIET = timedelta(days=1)
"""The time without a group after which an item's owner hears of it: a deployment replaces groups within this time."""

NAMED = 10
"""The most stray items that a tick and a health check name; all are counted."""

REPORTS_OF_A_TICK = 20
"""The most stray items of which one tick tells the owners; later ticks tell the others."""

_WAITING_BYTES = _NEAR_BYTES = 80_000
_MOST_REPORTED = 5000
"""The limits of the record, which DynamoDB limits to 400 KB."""

_OVERHEAD = 8
"""The bytes that DynamoDB adds for an entry of a map, and for its value."""

_LONGEST_OWNER = 256


@dataclass(frozen=True)
class Strays:
    """The stray items of one moment.

    Attributes:
        keys: all, in their order. An item without any value of a policy is no stray: nothing is lost.
        near: by unit, the keys that nearly name it, or that name one of its groups.
    """

    keys: tuple[str, ...] = ()
    near: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Stray:
    """A stray item that is named.

    Attributes:
        nearest: the unit that was probably meant; None if none is near.
        owner: the item's owner; "" if not set.
        since: when a tick first found it without a unit; None if not known.
    """

    key: str
    nearest: str | None
    owner: str = ""
    since: datetime | None = None

    @property
    def in_words(self) -> str:
        nearest = f"nearest unit: {shown(self.nearest)}" if self.nearest else "no unit is near"
        return f"{shown(self.key)} ({nearest})"


@dataclass(frozen=True)
class StrayRecord:
    """What ticks remember of stray items.

    Attributes:
        version: how often it was written.
        count: the number of stray items.
        named: the first of them.
        near: as in :class:`Strays`, for the API and for claims, which do not read all items.
        waiting: since when items whose owners have not heard have been stray, by key.
        reported: digests of the items whose owners have heard.
        reports: the items of which this version tells.
        at: the tick that wrote it; None for the empty record.
    """

    version: int = 0
    count: int = 0
    named: tuple[Stray, ...] = ()
    near: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: Mapping[str, datetime] = field(default_factory=dict)
    reported: frozenset[str] = frozenset()
    reports: tuple[Stray, ...] = ()
    at: datetime | None = None


def find(items: Mapping[str, Mapping[str, Any]], units: Mapping[str, Sequence[Group]]) -> Strays:
    """Returns the stray items.

    Args:
        items: the items of the table ``GroupTags``, by key.
        units: all units, with their groups.
    """
    folds = {key: folded(key) for key in sorted(items.keys() - units.keys()) if has_values(items[key])}
    if not folds:
        return Strays()
    sought = {*folds.values()} - {""}
    meant: dict[str, list[str]] = {}
    for unit, groups in units.items():
        for fold in {folded(name) for name in (unit, *(group.name for group in groups))} & sought:
            meant.setdefault(fold, []).append(unit)
    near: dict[str, list[str]] = {}
    for key, fold in folds.items():
        for unit in meant.get(fold, ()):
            near.setdefault(unit, []).append(key)
    return Strays(tuple(folds), {unit: tuple(keys) for unit, keys in near.items()})


def next_record(
    before: StrayRecord,
    strays: Strays,
    items: Mapping[str, Mapping[str, Any]],
    units: Collection[str],
    now: datetime,
) -> StrayRecord | None:
    """Returns the record after a tick; None if it stays as it is.

    Args:
        before: the last record.
        strays: the stray items of this tick.
        items: the items of the table ``GroupTags``, by key.
        units: all units.
        now: the tick.
    """
    digests = {key: _digest(key) for key in strays.keys}
    reported = before.reported & frozenset(digests.values())
    # The longest known first: a crowd of new items must not displace them.
    untold = sorted((before.waiting.get(key, now), key) for key in strays.keys if digests[key] not in reported)
    room = min(REPORTS_OF_A_TICK, _MOST_REPORTED - len(reported))
    due = [(since, key) for since, key in untold if now - since >= QUIET][:room]
    nearest = _nearest(strays, units)
    after = StrayRecord(
        version=before.version + 1,
        count=len(strays.keys),
        named=tuple(Stray(key, nearest(key), _owner(items[key])) for key in strays.keys[:NAMED]),
        near=_fitting({unit: keys[:MOST_NEAR] for unit, keys in strays.near.items()}, _NEAR_BYTES),
        waiting=_fitting({key: since for since, key in untold if (since, key) not in due}, _WAITING_BYTES),
        reported=reported | {digests[key] for _, key in due},
        reports=tuple(Stray(key, nearest(key), _owner(items[key]), since) for since, key in due),
        at=now,
    )
    unchanged = replace(after, version=before.version, reports=before.reports, at=before.at) == before
    return None if unchanged and not due else after


def _nearest(strays: Strays, units: Collection[str]) -> Callable[[str], str | None]:
    """Returns a function from a stray key to the unit that was probably meant."""
    exact = {key: unit for unit, keys in strays.near.items() for key in keys}
    by_spelling: list[Nearest] = []  # made for the first key that needs it

    def nearest(key: str) -> str | None:
        if key in exact:
            return exact[key]
        if not by_spelling:
            by_spelling.append(Nearest(units))
        return by_spelling[0].find(key)

    return nearest


def _digest(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:12]


def _owner(item: Mapping[str, Any]) -> str:
    owner = item.get("owner")
    return owner[:_LONGEST_OWNER] if isinstance(owner, str) else ""


T = TypeVar("T")


def _fitting(entries: Mapping[str, T], most: int) -> dict[str, T]:
    """Returns the first entries that take at most so many bytes."""
    fitting, size = {}, 0
    for key, value in entries.items():
        size += len(json.dumps([key, value], default=str, ensure_ascii=False).encode()) + _OVERHEAD
        if size > most:
            break
        fitting[key] = value
    return fitting
