"""Reads the groups of the account once for all views and tabs of the page, and gives out what has arrived so far."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cli.chaos.malformed import LOOKED_AT
from cli.client.client import TroopClient
from cli.shared import times
from troop.shared import moments

SECONDS = 60
"""The age at which a view that opens causes another reading."""

STEP = LOOKED_AT
"""The groups that are read at once; more are read when somebody asks for them."""


@dataclass
class _Reading:
    """What was read since one moment.

    Attributes:
        pages: the pages of the API that are not read yet.
        goal: the number of groups up to which it continues by itself.
        active: whether a thread reads.
        over: whether there are no more pages.
        error: why a page could not be read; the reading ends with it.
    """

    at: datetime
    pages: Iterator[list[dict[str, Any]]]
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    rows: list[dict[str, Any]] = field(default_factory=list)
    goal: int = 0
    active: bool = False
    over: bool = False
    error: BaseException | None = None


@dataclass
class GroupsReader:
    """Reads groups in a thread of its own, and keeps them for a minute, or until a change is made.

    A page of the API begins where the one before ends: Auto Scaling has no other way to read a part of its groups. So
    pages follow each other, but no view waits for the last one, and none is read for each view.
    """

    client: TroopClient
    now: Callable[[], datetime] = times.now
    _reading: _Reading | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def after(self, known: int, reading: str = "", *, fresh: bool = False) -> dict[str, Any]:
        """Waits until more than ``known`` groups are read, or all, and returns the others.

        Args:
            known: the number of groups that the caller has.
            reading: the id of the reading from which it has them. If there is another one by now, the answer begins
                with the first group.
            fresh: whether to begin another reading.

        Returns:
            ``reading``, the moment ``at`` which it began, ``groups``, and whether there are ``more``.

        Raises:
            CliError: a page cannot be read. The next call begins another reading.
        """
        with self._changed:
            current = self._begin() if fresh else self._current(reading)
            while True:
                start = known if current.id == reading else 0
                if current.error or current.over or len(current.rows) > start:
                    break
                self._go_on(current, (start // STEP + 1) * STEP)
                self._changed.wait()
                current = current if current is self._reading else self._current()
            self._raise_error(current, start)
            return {
                "reading": current.id,
                "at": moments.iso(current.at),
                "groups": current.rows[start:],
                "more": not current.over,
            }

    def first(self, most: int) -> list[dict[str, Any]]:
        """Returns the first groups, at most ``most``, once all of these are read.

        Raises:
            CliError: a page cannot be read. The next call begins another reading.
        """
        with self._changed:
            current = self._current()
            while not (current.error or current.over or len(current.rows) >= most):
                self._go_on(current, most)
                self._changed.wait()
                current = current if current is self._reading else self._current()
            self._raise_error(current, most)
            return current.rows[:most]

    def forget(self) -> None:
        """Drops what was read before a change, and what is being read now."""
        with self._changed:
            self._reading = None
            self._changed.notify_all()

    def _current(self, reading: str = "") -> _Reading:
        """Returns the reading of that id if it is the last one, or one that is not old."""
        last = self._reading
        if last is None or (last.error and last.id != reading):
            return self._begin()
        is_old = (self.now() - last.at).total_seconds() > SECONDS
        return self._begin() if is_old and not last.active and last.id != reading else last

    def _begin(self) -> _Reading:
        self._reading = _Reading(self.now(), self.client.group_pages())
        self._changed.notify_all()
        return self._reading

    def _raise_error(self, reading: _Reading, known: int) -> None:
        """Raises the error of a reading to a caller who has everything before it."""
        if reading.error and len(reading.rows) <= known:
            self._reading = None if reading is self._reading else self._reading
            raise reading.error

    def _go_on(self, reading: _Reading, goal: int) -> None:
        reading.goal = max(reading.goal, goal)
        if not reading.active:
            reading.active = True
            threading.Thread(target=self._read, args=(reading,), daemon=True).start()

    def _read(self, reading: _Reading) -> None:
        page: list[dict[str, Any]] | None = []
        error: BaseException | None = None
        while True:
            try:
                page = next(reading.pages, None)
            except BaseException as raised:  # noqa: BLE001 raised again to those who wait
                error = raised
            with self._changed:
                reading.rows += page or []
                reading.over, reading.error = page is None, error
                superseded = reading is not self._reading
                reading.active = not (reading.over or error or superseded or len(reading.rows) >= reading.goal)
                self._changed.notify_all()
                if not reading.active:
                    return
