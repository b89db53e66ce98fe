"""Defines the record of the last reading. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from troop.shared import moments
from troop.shared.formatting import counted

STALE = timedelta(hours=26)
"""The age from which on a reading is old: there is one a day, and it tries again for two hours at most."""


@dataclass(frozen=True)
class LastReading:
    """The last reading of the account.

    Attributes:
        subjects: how many subjects of each kind it has read.
        unread: what it could not read, or not completely, in sentences.
        unrecorded: the risks that exceed what is recorded.
        since: the first reading of the deployment; None if it is not known.
    """

    at: datetime
    subjects: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    unrecorded: int = 0
    since: datetime | None = None

    def remarks(self, now: datetime, unknown: int) -> Iterator[str]:
        """Yields what a person must know of risks that are only counted, in sentences.

        Args:
            unknown: how many of these risks the reading could not decide about.
        """
        if now - self.at > STALE:
            yield f"The account was last read at {moments.second(self.at)}: later changes of risks are not known."
        if unknown:
            yield f"{unknown:,} of these risks could not be checked, and count as before."
        if self.unread:
            yield f"Not known: {'; '.join(self.unread)}."
        if self.unrecorded:
            yield f"{counted(self.unrecorded, 'more risk')} not recorded, of the lowest severities."
