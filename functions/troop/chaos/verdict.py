"""Defines the verdict on an event's hypothesis, with what led to it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class VerdictValue(StrEnum):
    """Whether the hypothesis held; UNKNOWN: what was recorded cannot tell."""

    HELD = "HELD"
    BROKEN = "BROKEN"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class AlarmState:
    """An alarm's state from ``at`` on: OK, ALARM or INSUFFICIENT_DATA."""

    at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class AlarmRecord:
    """What an alarm did in the watched span.

    Attributes:
        name: the alarm's.
        states: its state when the span began, and each change until it ended, oldest first; empty if not known.
        doubt: why these states prove nothing, such as that the alarm was changed; "" for no doubt.
    """

    name: str
    states: tuple[AlarmState, ...] = ()
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an event.

    Attributes:
        value: HELD, BROKEN or UNKNOWN.
        why: a sentence.
        at: when it was given.
        since, until: the watched span, both ends included.
        alarms: the record of each success alarm; empty for a unit without any, whose recovery alone decides.
    """

    value: VerdictValue
    why: str
    at: datetime
    since: datetime
    until: datetime
    alarms: tuple[AlarmRecord, ...] = ()
