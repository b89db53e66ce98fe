"""Defines the halt that the deployment gives itself when too many units are broken. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SelfHalt:
    """The deployment has halted itself. Only the API removes this.

    Attributes:
        at: when.
        why: a sentence with the broken units and their alarms.
        events: the ids of the events that led to it.
    """

    at: datetime
    why: str
    events: tuple[str, ...] = ()
