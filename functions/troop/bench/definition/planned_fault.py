"""Defines the planned faults of a measured phase: what hits which nodes when, and what the load must bear.

A fault is on nodes of the run, or on an instance of a unit of the account. Its victims are nodes whose role does not
run the phase's script.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from troop.bench.definition.keys import FILE, ROLE, Checked, duration, finite, key, text, whole
from troop.shared.choice import LONGEST
from troop.shared.codec import stored

STOP, PAUSE, CRASH, CUT, SLOW, SCRIPT = "stop", "pause", "crash", "cut", "slow", "script"
METHODS = (STOP, PAUSE, CRASH, CUT, SLOW, SCRIPT)
"""Methods of faults on nodes."""

ENDING = frozenset({PAUSE, CUT, SLOW})
"""Methods whose faults always end; those of :data:`SCRIPT` can."""

LASTING = frozenset({STOP, CRASH})
"""Methods whose faults never end."""

STEP_SECONDS = 1
"""Seconds of the steps in which nodes store times in a phase with faults."""

MOST_FAULTS = 20
"""The most faults of a phase, and of all those of a cell that its record has."""

LONGEST_PHASE = 25 * 60
"""Most seconds of warm-up and measured time in a phase with faults: summaries hold no more steps of a second."""

_OMIT = stored(omit=True)
_TIME = duration("1s", "25m")


def _part(value: Any) -> float:
    number = finite(0, 1).parse(value)
    if not number:
        raise ValueError
    return float(number)


_PART = Checked(_part, "a number above 0, at most 1", {"type": "number", "exclusiveMinimum": 0, "maximum": 1})


_METHOD = Checked(
    text(LONGEST).parse,
    f"one of {', '.join(METHODS)}; with a unit, a fault of Troop's chaos, such as drain or latency delay=200",
    {"anyOf": [{"type": "string", "enum": [*METHODS]}, {"type": "string", "minLength": 1, "maxLength": LONGEST}]},
)


def _unit(value: Any) -> str:
    name: str = text(256).parse(value)
    if not name.strip():
        raise ValueError
    return name


_UNIT = Checked(_unit, "the name of a unit", {"type": "string", "minLength": 1, "maxLength": 256})


@dataclass(frozen=True)
class Expectation:
    """What the load must bear; at least one of the keys besides ``share``."""

    rate: float | None = field(
        default=None,
        metadata=key(
            "Least mean rate until it is back, and the fault has ended, as a part of the rate before", _PART, omit=True
        ),
    )
    share: float = field(
        default=0.95, metadata=key("Part of the rate before from which the rate counts as back", _PART)
    )
    rate_back_within: int | None = field(
        default=None, metadata=key("Time from the fault until the rate is back, and stays", _TIME, omit=True)
    )
    p99_back_within: int | None = field(
        default=None,
        metadata=key("Time from the fault until p99 is back, and stays", _TIME, omit=True),
    )
    failed_at_most: int | None = field(
        default=None,
        metadata=key("Most operations that fail, from the fault until the next or the end", whole(0, 2**53), omit=True),
    )

    @property
    def longest(self) -> int:
        """Seconds from the fault after which it is known whether all times are held."""
        return max(self.rate_back_within or 0, self.p99_back_within or 0)


@dataclass(frozen=True)
class PlannedFault:
    """One fault. It has a role, a unit, or a zone alone.

    Attributes:
        at: seconds from the start of the measured time.
        method: one of :data:`METHODS`; for a unit a :class:`troop.shared.choice.Choice` as text, or None for one that
            its policy allows.
        role: of the victims.
        unit: of the account, one instance of which is hit.
        zone: from 1, of the victims; without a role, all nodes there whose role does not run the phase's script.
        count: of the victims; None for one, or with a zone for all.
        script: a file of the folder, for :data:`SCRIPT`.
        delay: milliseconds, for :data:`SLOW`.
        lasts: seconds until its end; None for a fault that does not end.
    """

    at: int = field(metadata=key("When it begins, from the start of the measured time", duration("0s", "25m")))
    method: str | None = field(
        default=None,
        metadata=key(
            "What it does",
            _METHOD,
            "stop kills what scripts of earlier phases have left running, and pause halts it. crash ends the machine. "
            "cut and slow concern its network. Required, except with a unit, whose policy has a default.",
            omit=True,
        ),
    )
    role: str | None = field(
        default=None,
        metadata=key("The role that it hits", ROLE, "One that does not run the phase's script.", omit=True),
    )
    unit: str | None = field(
        default=None,
        metadata=key(
            "The unit of the account of which it hits an instance",
            _UNIT,
            "The setting `troop:under_load` and the unit's policy must allow it.",
            omit=True,
        ),
    )
    zone: int | None = field(
        default=None,
        metadata=key(
            "The zone that it hits, by its place in the order of their names",
            whole(1, 6),
            "Without role, it hits the nodes there of all roles that do not run the phase's script.",
            omit=True,
        ),
    )
    count: int | None = field(
        default=None,
        metadata=key(
            "Number of nodes that it hits",
            whole(1, 10_000),
            "1 by default, and with a zone all of them there. It hits the highest ranks that earlier faults have not "
            "crashed, and only with a script those that they have stopped.",
            omit=True,
        ),
    )
    script: str | None = field(
        default=None,
        metadata=key(
            "For the method script, a file in this folder",
            FILE,
            "It runs with TROOP_FAULT=begin, and if the fault ends, again with TROOP_FAULT=end.",
            omit=True,
        ),
    )
    delay: int | None = field(
        default=None,
        metadata=key(
            "For the method slow, the delay in ms of each packet that a node sends", whole(1, 10_000), omit=True
        ),
    )
    lasts: int | None = field(
        default=None,
        metadata=key(
            "Time until it ends", _TIME, "Required for pause, cut and slow; not for stop and crash.", "for", omit=True
        ),
    )
    expect: Expectation | None = field(default=None, metadata=_OMIT)

    @property
    def judged(self) -> int:
        """Seconds from the start of the measured time until it has ended, and all expected times are over."""
        return self.at + max(self.lasts or 0, self.expect.longest if self.expect else 0)

    @property
    def text(self) -> str:
        """What it does, such as ``stop 1 of servers``, ``cut zone 2``, or ``crash an instance of web``."""
        if self.unit is not None:
            return f"{self.method or 'hit'} an instance of {self.unit}"
        act = f"run {self.script} on" if self.method == SCRIPT else str(self.method)
        where = f"zone {self.zone}"
        if self.role is None:
            return f"{act} {where}"
        if self.zone is None:
            return f"{act} {self.count or 1} of {self.role}"
        return f"{act} {self.count or 'all'} of {self.role} in {where}"
