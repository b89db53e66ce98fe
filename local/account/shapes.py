"""Compares values with the shapes of an API's model. Pure: it needs no package."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

UNKNOWN = object()
"""A value, or the name of one, that is not known."""
RESERVED = "aws:"
"""The beginning of the names of tags that only AWS sets."""

_NUMBERS = ("integer", "long")
_RANGE = re.compile(
    r"(?:values?(?: range)?|valid range)(?::| is| are| can be)?(?: from| between)? "
    r"(\d[\d,]*) ?(?:and|to|through|-) ?(\d[\d,]*)",
    re.IGNORECASE,
)
_MOST = re.compile(r"(?:maximum (?:value (?:is|of)|is)|up to a limit of) (\d[\d,]*)")
_CUT = re.compile(r"only [\d,]+ (?:results|items)")
"""What is said of a maximum above which a request is served all the same."""
_STEPS = re.compile(r"((?:\d+, )+)(?:or|and) any multiple of (\d+)")
_TAGGING = re.compile(r"tags?|tagset|taglist|tagspecifications?", re.IGNORECASE)


def plain(text: str) -> str:
    """Removes the markup and line breaks of a model's documentation."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def problems(shape: Any, value: Any, place: str = "", *, is_complete: bool = False) -> Iterator[str]:
    """Yields what the shape does not allow in a value: unknown members, values, sizes.

    Args:
        place: the name of the value in the result.
        is_complete: whether a missing member is a problem, too.
    """
    if value is UNKNOWN or value is None:
        return
    if shape.type_name == "structure" and isinstance(value, dict):
        yield from _structure_problems(shape, value, place, is_complete)
    elif shape.type_name == "list" and isinstance(value, list):
        if len(value) > shape.metadata.get("max", len(value)):
            yield f"{place} has more than {shape.metadata['max']} members"
        for inner in value:
            yield from problems(shape.member, inner, place, is_complete=is_complete)
    elif shape.type_name == "map" and isinstance(value, dict):
        for key, inner in value.items():
            yield from problems(shape.key, key, place)
            yield from problems(shape.value, inner, f"{place}.{key}", is_complete=is_complete)
    elif shape.type_name == "string" and isinstance(value, str):
        if value not in (shape.metadata.get("enum") or [value]):
            yield f"{place} cannot be {value!r}"
    elif shape.type_name in _NUMBERS and isinstance(value, int) and not _limits(shape).allow(value):
        yield f"{place} cannot be {value}"


def _structure_problems(shape: Any, value: dict[Any, Any], place: str, is_complete: bool) -> Iterator[str]:
    named = {key: inner for key, inner in value.items() if key is not UNKNOWN}
    yield from (f"{place}.{key} is unknown" for key in named.keys() - shape.members.keys())
    if is_complete and len(named) == len(value):
        yield from (f"{place}.{key} is missing" for key in set(shape.required_members) - named.keys())
    for key in named.keys() & shape.members.keys():
        yield from problems(shape.members[key], named[key], f"{place}.{key}", is_complete=is_complete)


@dataclass(frozen=True)
class Limits:
    """The limits of a number. `steps`: values that it may have, with the last's multiples; empty for any."""

    least: int | None = None
    most: int | None = None
    steps: tuple[int, ...] = ()

    def allow(self, value: int) -> bool:
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            return False
        return not self.steps or value in self.steps or value % self.steps[-1] == 0


def _limits(shape: Any) -> Limits:
    """Returns the limits of a shape: of many, only the documentation has them."""
    written = _documented(str(shape.documentation))
    return Limits(
        shape.metadata.get("min", written.least), shape.metadata.get("max", written.most), steps=written.steps
    )


@lru_cache(maxsize=4096)
def _documented(documentation: str) -> Limits:
    text = plain(documentation)
    ranges, most, steps = _RANGE.findall(text), _MOST.search(text), _STEPS.search(text)
    least, greatest = ranges[0] if len(ranges) == 1 else ("", most[1] if most else "")
    return Limits(
        _number(least),
        None if _CUT.search(text) else _number(greatest),
        (*map(int, steps[1].split(", ")[:-1]), int(steps[2])) if steps else (),
    )


def _number(digits: str) -> int | None:
    return int(digits.replace(",", "")) if digits else None


def reserved_tags(value: Any, in_tags: bool = False) -> Iterator[str]:
    """Yields the names of reserved tags in the parameters of a request."""
    if isinstance(value, list):
        for inner in value:
            yield from reserved_tags(inner, in_tags)
    elif isinstance(value, dict):
        key = value.get("Key", value.get("key"))
        if in_tags and isinstance(key, str):
            yield from [key] if key.lower().startswith(RESERVED) else []
            return
        for name, inner in value.items():
            if in_tags and isinstance(inner, str) and name.lower().startswith(RESERVED):
                yield name
            yield from reserved_tags(inner, bool(_TAGGING.fullmatch(name)))
