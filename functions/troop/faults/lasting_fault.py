"""Defines what a lasting fault is: one inside an instance, which is injected, lasts, and ends. Pure.

Systems Manager runs a document of AWS on the instance. See "Use Systems Manager SSM documents with AWS FIS" in the user
guide of AWS FIS. Troop has no program on the instance; its own document only reads.

What the modules of faults say of parameters, tools and ends is in the documents' own texts, which anybody can read:
``aws ssm get-document --name AWSFIS-Run-CPU-Stress``. They are of August 2026; AWS changes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SECONDS = "seconds"
"""The parameter that every lasting fault has: how long it lasts; of a killed process, how long it may be gone."""

ROLLBACK = 20
"""How many seconds after the death of its shell AWS's network documents have atd undo the fault, at most: each job that
they queue sleeps so long, then undoes it if the shell has not touched its flag file for 10 s. It touches it every 5 s.
"""

INSTALLATION = 300
"""The most seconds that AWS's document gets to install packages, which it does before the fault."""

LONGEST = 900
"""The most seconds of a lasting fault: with its proof it must fit into a window, and it holds a place in flight."""


@dataclass(frozen=True)
class Values:
    """The texts that a parameter can have.

    Attributes:
        words: they follow "must be".
        accepts: checks a text.
    """

    words: str
    accepts: Callable[[str], bool]


@dataclass(frozen=True)
class Parameter:
    """A parameter that owners can set.

    Attributes:
        name: as in ``latency delay=200``.
        summary: its meaning and unit, for documents: without a full stop.
        values: which texts it can have.
        default: None if owners must set it.
    """

    name: str
    summary: str
    values: Values
    default: str | None = None


@dataclass(frozen=True)
class Trace:
    """Something that a fault leaves on the instance while it is there.

    Attributes:
        field: the probe's field, see :class:`troop.chaos.probe.Reading`.
        slack: how much more than before the fault is still as before, for values that change by themselves.
    """

    field: str
    slack: float = 0


@dataclass(frozen=True)
class LastingFault:
    """A fault inside an instance.

    Attributes:
        name: its name in policies, settings, requests and events.
        summary: what happens, for documents: the rest of a sentence, without a full stop.
        document: the name of AWS's document.
        parameters: what owners can set, :data:`SECONDS` included.
        request: returns the document's parameters for the owner's, but not whether it installs packages.
        traces: what shows that it is there; each one must be readable, and as before it, when it is over.
        tools: the programs and kernel modules that the document needs -> their packages on Amazon Linux 2023.
        modules: which of them are kernel modules: the document loads them, and installs none on Amazon Linux.
        overrun: how many seconds the document can run beyond its duration: it prepares the fault before its clock
            starts, and looks at its clock in pauses.
        needs_timer: whether only atd undoes it after its shell has died; otherwise it ends with the shell.
        returns: whether it is over when something runs again, in place of when its traces are gone.
        conflict: returns what the parameters must be together, to follow "with"; "" if they fit.
        refusal: returns why what the probe before has read forbids it; "" if nothing does.
    """

    name: str
    summary: str
    document: str
    parameters: tuple[Parameter, ...]
    request: Callable[[Mapping[str, str]], dict[str, str]]
    traces: tuple[Trace, ...]
    tools: Mapping[str, str]
    modules: frozenset[str] = frozenset()
    overrun: int = 10
    needs_timer: bool = False
    returns: bool = False
    conflict: Callable[[Mapping[str, str]], str] = lambda _parameters: ""
    refusal: Callable[[Mapping[str, str], Mapping[str, Any]], str] = lambda _parameters, _reading: ""

    @property
    def usage(self) -> str:
        """The name and the parameters as people write them: ``kill process=... signal=SIGKILL seconds=60``."""
        return " ".join([self.name, *(f"{one.name}={one.default or '...'}" for one in self.parameters)])

    def defaults(self) -> dict[str, str]:
        """Returns the defaults of the parameters that have one."""
        return {one.name: one.default for one in self.parameters if one.default is not None}

    def longest(self, seconds: int, installs: bool = False) -> int:
        """Returns the most seconds from the start of the document to its end, for a fault of so many seconds."""
        return seconds + self.overrun + (INSTALLATION if installs else 0)

    def complete(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """Returns all parameters: these and the defaults of the others, in the fault's order."""
        known = {**self.defaults(), **parameters}
        return {one.name: known[one.name] for one in self.parameters}


def whole(least: int, most: int) -> Values:
    """Returns the whole numbers of a range."""
    return Values(
        f"a whole number from {least:,} to {most:,}",
        lambda text: re.fullmatch("0|[1-9][0-9]{0,6}", text) is not None and least <= int(text) <= most,
    )


def one_of(*texts: str) -> Values:
    """Returns a few texts."""
    return Values(" or ".join(texts), lambda text: text in texts)


def seconds(default: int, summary: str = "how long it lasts, in seconds") -> Parameter:
    """Returns the parameter that every lasting fault has."""
    return Parameter(SECONDS, summary, whole(10, LONGEST), str(default))
