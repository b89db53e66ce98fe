"""Lists terminations until all are read, or until one answer has no more time or room."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from troop.chaos.aws.event_walk import Stretch, Termination

LONGEST = 15.0
"""The seconds after which no further query starts. API Gateway waits for 29, and the last query and a cold start must
fit too.
"""

LARGEST = 5_000_000
"""The most bytes of an answer. Lambda accepts a response of 6 MB, headers included."""


@dataclass(frozen=True)
class Listing:
    """The terminations of one answer.

    Attributes:
        text: a JSON array.
        stopped_at: terminations of this moment and earlier ones can be missing; None for a complete listing.
    """

    text: str
    stopped_at: datetime | None


def listing(
    stretches: Iterable[Stretch], tell: Callable[[Termination], str | None], clock: Callable[[], float]
) -> Listing:
    """Lists the terminations of some stretches, newest first.

    Args:
        tell: returns a termination as JSON text; None leaves it out.
        clock: returns seconds that never decrease.
    """
    began, size, parts = clock(), 2, list[str]()
    for stretch in stretches:
        for termination in stretch.terminations:
            text = tell(termination)
            if text is None:
                continue
            # The body becomes a string within Lambda's JSON, where every quotation mark takes two bytes.
            size += len(json.dumps(text))
            if size > LARGEST:
                return Listing(_array(parts), termination.at)
            parts.append(text)
        if stretch.back_to and clock() - began > LONGEST:
            return Listing(_array(parts), stretch.back_to)
    return Listing(_array(parts), None)


def _array(parts: list[str]) -> str:
    return f"[{','.join(parts)}]"
