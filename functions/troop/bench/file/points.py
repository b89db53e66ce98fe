"""Reads the points of a phase: a list of settings, or lists of values whose combinations are the settings."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from troop.bench.definition.definition import MOST_POINTS, WARM_UP, Parameter, Point, point_parameters
from troop.bench.definition.keys import Checked, duration, matching, written
from troop.bench.definition.problems import Place, Problem
from troop.bench.file.fields import LONGEST_VALUE, PARAMETER, VALUE, values
from troop.shared.values import spelling

MOST_POINTS_OF_RUN = 1000
"""The most points of all cells of a run: a report has a row, and values over time, for each."""

KEY = matching(r"[a-z][a-z0-9_]{0,63}", "a lower-case letter, then letters, digits and underscores, at most 64 in all")
_VALUES, _WARM_UP = values(MOST_POINTS), duration("0s", "24h")


def _parse(raw: Any) -> tuple[Point, ...]:
    points = tuple(_combined(raw) if isinstance(raw, dict) else _listed(raw))
    if not 0 < len(points) <= MOST_POINTS:
        raise ValueError
    return points


def _combined(raw: Mapping[Any, Any]) -> Iterator[Point]:
    if not raw or WARM_UP in raw:
        raise ValueError
    lists = {KEY.parse(name): _VALUES.parse(values) for name, values in raw.items()}
    if prod(map(len, lists.values())) > MOST_POINTS:
        raise ValueError
    for combination in product(*lists.values()):
        yield Point(dict(zip(lists, combination, strict=True)))


def _listed(raw: Any) -> Iterator[Point]:
    if not isinstance(raw, list) or len(raw) > MOST_POINTS:
        raise ValueError
    for one in raw:
        if not isinstance(one, dict) or not one:
            raise ValueError
        parameters = {KEY.parse(name): VALUE.parse(value) for name, value in one.items() if name != WARM_UP}
        yield Point(parameters, _WARM_UP.parse(one[WARM_UP]) if WARM_UP in one else None)


_NAMES = {"propertyNames": dict(KEY.schema), "minProperties": 1}
POINTS = Checked(
    _parse,
    f"a mapping of parameters to lists of values, or a list of mappings of parameters (and {WARM_UP}) to values; "
    f"together 1 to {MOST_POINTS} points, with values of at most {LONGEST_VALUE} characters",
    {
        "anyOf": [
            {
                "type": "object",
                **_NAMES,
                "properties": {WARM_UP: False},
                "additionalProperties": dict(_VALUES.schema),
            },
            {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_POINTS,
                "items": {
                    "type": "object",
                    **_NAMES,
                    "properties": {WARM_UP: dict(_WARM_UP.schema)},
                    "additionalProperties": dict(PARAMETER.schema),
                },
            },
        ]
    },
)
"""Points in either form."""


def unknown(place: Place, points: Iterable[Point], parameters: Collection[str]) -> Iterator[Problem]:
    """Lists parameters of points that the benchmark does not have: probably misspelled."""
    for name in dict.fromkeys(name for point in points for name in point.parameters):
        if name not in parameters:
            allowed = spelling(name, parameters) if parameters else "left out: the file has no parameters"
            yield Problem((*place, "points"), f"set {name!r}, which is not a parameter", allowed)


def equal(place: Place, phase: Any, parameters: Mapping[str, Parameter]) -> Iterator[Problem]:
    """Lists points with the same parameters as another one."""
    seen: dict[str, int] = {}
    for number, setting in enumerate(point_parameters(phase, parameters), 1):
        text = json.dumps(setting, sort_keys=True)
        if text in seen:
            message = f"number {number} has the same parameters as number {seen[text]}"
            yield Problem((*place, "points"), message, "all different: use `repeat` to repeat points")
            return
        seen[text] = number


def node_counts(
    place: Place, phase: Any, counts: Mapping[str, int], parameters: Mapping[str, Parameter]
) -> Iterator[Problem]:
    """Lists parameters that are to be numbers of nodes, and cannot be.

    Args:
        phase: the phase in the file.
        counts: nodes of each role.
        parameters: of the benchmark.
    """
    for role, name in phase.nodes.items():
        at = (*place, "nodes", role)
        if role not in phase.roles:
            yield Problem(at, "is not a role of the phase", f"one of {', '.join(phase.roles)}")
        elif name not in parameters:
            yield Problem(at, f"is {name!r}", f"one of the file's parameters: {', '.join(parameters) or 'none'}")
        else:
            settings = point_parameters(phase, parameters)
            wrong = [v for one in settings if not _is_count(v := one.get(name, parameters[name]), counts.get(role, 1))]
            if wrong:
                allowed = f"a whole number from 1 to {counts.get(role, 1)}, the nodes of {role}"
                yield Problem(at, f"is {name!r}, with the value {json.dumps(wrong[0])}", allowed)


def rates(place: Place, phase: Any, parameters: Mapping[str, Parameter]) -> Iterator[Problem]:
    """Lists parameters that are to be rates, and cannot be; arguments as of :func:`node_counts`."""
    for role, name in phase.rate.items():
        at = (*place, "rate", role)
        if not phase.measured:
            yield Problem(at, f"is {name!r}", "left out in a phase that measures nothing")
        elif role not in phase.roles:
            yield Problem(at, "is not a role of the phase", f"one of {', '.join(phase.roles)}")
        elif name not in parameters:
            yield Problem(at, f"is {name!r}", f"one of the file's parameters: {', '.join(parameters) or 'none'}")
        else:
            settings = point_parameters(phase, parameters)
            wrong = [v for one in settings if not _is_rate(v := one.get(name, parameters[name]))]
            if wrong:
                allowed = "a number from 0: operations a second of each node, 0 for no rate"
                yield Problem(at, f"is {name!r}, with the value {json.dumps(wrong[0])}", allowed)


def _is_rate(value: Parameter) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]


def _is_count(value: Parameter, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def short_warm_ups(place: Place, phase: Any, parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields warm-ups that end before the tool of a point has started.

    Args:
        phase: of a benchmark's file, with ``least_warm_up``.
        parameters: of the file, which points replace.
    """
    for name in phase.least_warm_up:
        if not any(name in one for one in (parameters, *(point.parameters for point in phase.points))):
            yield Problem((*place, "least_warm_up", name), "is no parameter", "a parameter of the file")
    if not phase.measured:
        return
    for n, point in enumerate(phase.points or [Point({})]):
        has = phase.warm_up if point.warm_up is None else point.warm_up
        at_point = {**parameters, **point.parameters}
        for name, by_value in phase.least_warm_up.items():
            least = by_value.get(written_value := _key(at_point.get(name)), 0)
            if has < least:
                at = (*place, "points", n) if point.warm_up is not None else (*place, "warm_up")
                allowed = f"at least {written(least)}: with {name} {written_value} the load begins so late"
                yield Problem(at, f"is {written(has)}", allowed)


def _key(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
