"""A listing that goes on until everything was looked at, or until time, or the room in the answer, is used up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from troop.aws.chaos.event_walk import Stretch, Termination

LONGEST = 15.0
"""Seconds after which no further query starts: API Gateway waits for 29, a cold start and the last query included."""

LARGEST = 5_000_000
"""Bytes; Lambda takes an answer of 6 MB, its headers and all."""


@dataclass(frozen=True)
class Listing:
    """What was found.

    Attributes:
        text: a JSON array.
        stopped_at: of this moment, and from before it, terminations can be missing; None when none is.
    """

    text: str
    stopped_at: datetime | None


def listing(
    stretches: Iterable[Stretch], tell: Callable[[Termination], str | None], clock: Callable[[], float]
) -> Listing:
    """Goes through the stretches, newest first.

    Args:
        tell: a termination as JSON text; None when it is not wanted.
        clock: seconds that only grow.
    """
    began, size, parts = clock(), 2, list[str]()
    for stretch in stretches:
        for termination in stretch.terminations:
            text = tell(termination)
            if text is None:
                continue
            # The body is a string within Lambda's own JSON: every quotation mark in it takes two bytes.
            size += len(json.dumps(text))
            if size > LARGEST:
                return Listing(_array(parts), termination.at)
            parts.append(text)
        if stretch.back_to and clock() - began > LONGEST:
            return Listing(_array(parts), stretch.back_to)
    return Listing(_array(parts), None)


def _array(parts: list[str]) -> str:
    return f"[{','.join(parts)}]"
