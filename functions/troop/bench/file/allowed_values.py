"""Checks values of parameters: only scripts know what their parameters mean, so the file states what it allows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from troop.bench.definition.definition import Parameter
from troop.bench.definition.keys import Checked
from troop.bench.definition.problems import Place, Problem, shown
from troop.bench.file.fields import scalar
from troop.shared.values import spelling

FILE, TARGET = "file", "target"
"""The words for names of files and of targets."""
_MOST = 50


def _parse(value: Any) -> Any:
    if value in (FILE, TARGET):
        return value
    if not isinstance(value, list) or not 0 < len(value) <= _MOST:
        raise ValueError
    return tuple(map(scalar, value))


ALLOWED = Checked(
    _parse,
    f"{FILE} (a file of the folder or an artifact), {TARGET} (a name of targets), or a list of 1 to {_MOST} values",
    {
        "anyOf": [
            {"type": "string", "enum": [FILE, TARGET]},
            {
                "type": "array",
                "minItems": 1,
                "maxItems": _MOST,
                "items": {"type": ["string", "number", "boolean"]},
            },
        ]
    },
)


def problems(benchmark: Any, files: Collection[str] | None) -> Iterator[Problem]:
    """Lists values of parameters, and of points, that the file does not allow.

    Args:
        benchmark: the model of the file.
        files: names of the files in the benchmark's folder; None if unknown, which skips the check of files.
    """
    for name, rule in benchmark.allowed.items():
        if name not in benchmark.parameters:
            allowed = spelling(name, benchmark.parameters) if benchmark.parameters else "left out"
            yield Problem(("allowed", name), "is not a parameter", allowed)
            continue
        values = _allowed(rule, benchmark, files)
        if values is None:
            continue
        yield from _refused(("parameters", name), benchmark.parameters[name], rule, values)
        for number, phase in enumerate(benchmark.phases):
            for point in phase.points:
                if name in point.parameters:
                    yield from _refused(("phases", number, "points"), point.parameters[name], rule, values)


def _allowed(rule: Any, benchmark: Any, files: Collection[str] | None) -> list[Any] | None:
    """Returns the allowed values; None if they are unknown."""
    if rule == FILE:
        return None if files is None else sorted({*files, *(one.name for one in benchmark.artifacts)})
    return sorted(benchmark.targets) if rule == TARGET else list(rule)


def _refused(place: Place, value: Parameter, rule: Any, values: list[Any]) -> Iterator[Problem]:
    kinds = {FILE: "a file of the benchmark's folder or an artifact: ", TARGET: "a name of the file's targets: "}
    kind = kinds.get(rule, "one of ") if isinstance(rule, str) else "one of "
    for one in value if isinstance(value, tuple) else [value]:
        if isinstance(one, Mapping) or not any(type(one) is type(other) and one == other for other in values):
            yield Problem(place, f"is {shown(one)}", f"{kind}{', '.join(map(str, values)) or 'there is none'}")
