"""Defines the record of the last reading. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class LastReading:
    """The last reading of the account.

    Attributes:
        subjects: how many subjects of each kind it has read.
        unread: what it could not read, or not completely, in sentences.
        unrecorded: the risks that exceed what is recorded.
    """

    at: datetime
    subjects: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    unrecorded: int = 0
