"""Models and checks the search of a measured phase."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any

from troop.bench.definition.definition import Parameter
from troop.bench.definition.keys import Checked, finite, whole
from troop.bench.definition.problems import Place, Problem
from troop.bench.definition.search import Search
from troop.bench.file.fields import Part, described
from troop.bench.file.points import KEY
from troop.shared.values import spelling

MOST_VALUES = 1000
_LARGEST = 2**53
_WHOLE, _STEP = whole(-_LARGEST, _LARGEST), whole(1, _LARGEST)
_VALUE = finite(-_LARGEST, _LARGEST)


def _ascending(raw: Any) -> tuple[float, ...]:
    if not isinstance(raw, list) or not 2 <= len(raw) <= MOST_VALUES:
        raise ValueError
    values = tuple(_VALUE.parse(one) for one in raw)
    if any(one >= other for one, other in pairwise(values)):
        raise ValueError
    return values


_VALUES = Checked(
    _ascending,
    f"an ascending list of 2 to {MOST_VALUES} different numbers",
    {"type": "array", "minItems": 2, "maxItems": MOST_VALUES, "uniqueItems": True, "items": dict(_VALUE.schema)},
)


class SearchIn(Part):
    """The search for the largest value of a parameter with which the phase holds its limits."""

    parameter: Annotated[str, KEY] = described(
        KEY,
        "Parameter of the scripts whose value is searched",
        "It can also be the number of nodes of a role (`nodes`).",
    )
    low: Annotated[int | None, _WHOLE] = described(_WHOLE, "Smallest value of the range", default=None, alias="from")
    high: Annotated[int | None, _WHOLE] = described(_WHOLE, "Largest value of the range", default=None, alias="to")
    step: Annotated[int, _STEP] = described(
        _STEP, "Distance of the values of the range", "It leads from `from` to `to` exactly.", default=1
    )
    values: Annotated[tuple[float, ...] | None, _VALUES] = described(
        _VALUES, "Values in place of from, to and step", default=None
    )

    def build(self) -> Search:
        if self.values is not None:
            return Search(self.parameter, self.values)
        return Search(self.parameter, (), self.low or 0, self.high or 0, self.step)


def problems(place: Place, phase: Any) -> Iterator[Problem]:
    """Lists what is wrong with the search of a phase.

    Args:
        phase: the phase in the file.
    """
    search: SearchIn | None = phase.search
    if search is None:
        return
    at = (*place, "search")
    if not phase.measured:
        yield Problem(at, "is set", "left out in a phase that measures nothing")
    elif not phase.limits and not phase.faults:
        allowed = "left out in a phase without limits and faults: it needs to know which values pass"
        yield Problem(at, "is set", allowed)
    if phase.points or phase.repeat > 1:
        key = "points" if phase.points else "repeat"
        yield Problem((*place, key), "is set", "left out in a phase with a search, which chooses its own points")
    yield from _range(at, search)


def is_right(search: SearchIn) -> bool:
    """Checks whether the values of a search make sense."""
    return not list(_range((), search))


def _range(at: Place, search: SearchIn) -> Iterator[Problem]:
    low, high, step = search.low, search.high, search.step
    if search.values is not None:
        for key in ("from", "to", "step"):
            if {"from": low is not None, "to": high is not None, "step": step != 1}[key]:
                yield Problem((*at, key), "is set", "left out beside values")
        return
    for key, value in (("from", low), ("to", high)):
        if value is None:
            yield Problem((*at, key), "is missing", f"set ({_WHOLE.allowed}), or use values")
    if low is None or high is None:
        return
    if high <= low:
        yield Problem((*at, "to"), f"is {high}", f"larger than {low}, the value of from")
    elif (high - low) % step:
        below = high - (high - low) % step
        yield Problem((*at, "step"), f"is {step}", f"a step that leads from {low} to {high}, or set to: {below}")


def unknown(place: Place, phase: Any, parameters: Collection[str]) -> Iterator[Problem]:
    """Lists the parameter of a search that the benchmark does not have: probably misspelled."""
    if phase.search is not None and (name := phase.search.parameter) not in parameters:
        allowed = spelling(name, parameters) if parameters else "left out: the file has no parameters"
        yield Problem((*place, "search", "parameter"), f"is {name!r}, which is not a parameter", allowed)


def values(place: Place, phase: Any, parameters: Mapping[str, Parameter]) -> Iterator[Problem]:
    """Lists a searched parameter that is no number, and searched rates without load."""
    search = phase.search
    if search is None:
        return
    value = parameters.get(search.parameter)
    if search.parameter in parameters and type(value) not in (int, float):
        allowed = "a parameter that is a number: the search sets numbers"
        yield Problem((*place, "search", "parameter"), f"is {search.parameter!r}, which is no number", allowed)
    elif is_right(search) and search.parameter in phase.rate.values() and (least := search.build().candidates[0]) <= 0:
        key = "values" if search.values is not None else "from"
        yield Problem((*place, "search", key), f"tries the rate {least:g}", "above 0: a rate of 0 is no rate")


def node_counts(place: Place, phase: Any, counts: Mapping[str, int]) -> Iterator[Problem]:
    """Lists values of a search that are to be numbers of nodes, and cannot be.

    Args:
        counts: nodes of each role.
    """
    search = phase.search
    for role, name in phase.nodes.items() if search is not None and is_right(search) else ():
        values, most = search.build().candidates, counts.get(role, 1)
        if name == search.parameter:
            wrong = [
                v
                for v in (values if search.values else (values[0], values[-1]))
                if type(v) is not int or not 1 <= v <= most
            ]
            if wrong:
                allowed = f"with whole numbers from 1 to {most}, the nodes of {role}"
                yield Problem((*place, "search"), f"tries {wrong[0]} nodes of {role}", allowed)
