"""Defines a choice: a fault by its name, with the parameters that somebody has set. Pure.

Text: the name, then parameters, as in ``latency delay=200 seconds=60``; choices are separated by commas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from troop import faults
from troop.faults.lasting_fault import SECONDS, LastingFault
from troop.shared import values

PROVEN_WITHIN = timedelta(seconds=120)
"""The time from the end of a lasting fault within which it is proven, or its instance terminated."""

LONGEST = 1000
"""The most characters of the text of a set of choices."""


@dataclass(frozen=True, slots=True, order=True)
class Choice:
    """A fault that may hit.

    Attributes:
        name: the fault's.
        parameters: (name, value) of each parameter that was set, in the fault's order.
    """

    name: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The choice as people write it."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.parameters)])

    @property
    def effect(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The name with all parameters, also those that have their default: equal for the same fault."""
        fault = self.lasting
        return self.name, tuple(fault.complete(dict(self.parameters)).items()) if fault else ()

    @property
    def in_words(self) -> str:
        """What happens to an instance, in words that follow "is to" or "would"."""
        return f"have the fault {self.text}" if self.lasting else "be terminated"

    @property
    def lasting(self) -> LastingFault | None:
        """The lasting fault; None for a termination."""
        return faults.find_lasting(self.name)

    def takes(self, installs: bool = False) -> timedelta:
        """Returns how long a lasting fault and the proof of its end take at most; no time for a termination.

        Args:
            installs: whether AWS's document may install packages first.
        """
        fault = self.lasting
        if fault is None:
            return timedelta()
        seconds = int(fault.complete(dict(self.parameters))[SECONDS])
        return timedelta(seconds=fault.longest(seconds, installs)) + PROVEN_WITHIN


def text_of(choices: Sequence[Choice]) -> str:
    """Returns a set of choices as people write it.

    >>> text_of([Choice("crash"), Choice("cpu", (("load", "80"),))])
    'crash, cpu load=80'
    """
    return ", ".join(choice.text for choice in choices)


def parse_choices(value: Any) -> tuple[Choice, ...]:
    """Parses a set of choices: in the order of the table of faults, each once.

    Raises:
        BadValue: it is empty, or names a fault, a parameter or a value that does not exist.
    """
    if isinstance(value, str) and len(value) > LONGEST:  # before anything is made of it
        raise values.BadValue(f"at most {LONGEST:,} characters")
    parts = [words for one in value.split(",") if (words := one.split())] if isinstance(value, str) else []
    if not parts:
        raise values.BadValue(f"one or more of {', '.join(faults.names())}, separated by commas")
    by_effect = {choice.effect: choice for choice in map(_choice, parts)}
    order = faults.names()
    return tuple(sorted(by_effect.values(), key=lambda choice: (order.index(choice.name), choice.parameters)))


def parse_choice(value: Any) -> Choice:
    """Parses one choice.

    Raises:
        BadValue: as :func:`parse_choices`; or there are several.
    """
    choices = parse_choices(value)
    if len(choices) > 1:
        raise values.BadValue("one fault")
    return choices[0]


def _choice(words: Sequence[str]) -> Choice:
    name, pairs = values.one_of(*faults.names())(words[0]), _pairs(words)
    fault = faults.find_lasting(name)
    if fault is None:
        if pairs:
            raise values.BadValue(f"{name} without parameters")
        return Choice(name)
    known = {parameter.name: parameter for parameter in fault.parameters}
    if unknown := pairs.keys() - known:
        raise values.BadValue(f"{name} with parameters of {', '.join(known)}, not {min(unknown)}")
    if missing := [one.name for one in fault.parameters if one.default is None and one.name not in pairs]:
        raise values.BadValue(f"{name} with {missing[0]}, such as {name} {missing[0]}=...")
    parsed = {}
    for key, parameter in known.items():
        if key in pairs:
            if not parameter.values.accepts(pairs[key]):
                raise values.BadValue(f"{name} with {key} as {parameter.values.words}")
            parsed[key] = pairs[key]
    if conflict := fault.conflict(fault.complete(parsed)):
        raise values.BadValue(f"{name} with {conflict}")
    return Choice(name, tuple(parsed.items()))


def _pairs(words: Sequence[str]) -> Mapping[str, str]:
    pairs: dict[str, str] = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals or key in pairs:
            raise values.BadValue(f"{words[0]} with words such as seconds=60, each once")
        pairs[key] = value
    return pairs
