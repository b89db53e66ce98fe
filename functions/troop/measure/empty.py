"""Creates operations that count what ends in a phase: all that record operations one by one begin with these."""

from __future__ import annotations

import os
from collections.abc import Mapping

from troop.measure.operations import Operation, PerSecond
from troop.measure.windows import Windows, step_for

STEP = "TROOP_STEP_SECONDS"
"""The variable with the seconds of a step of times over time, in phases that need another than
:func:`~troop.measure.windows.step_for`: those with faults.
"""


def empty_operation(first: int, seconds: int, length: float, environment: Mapping[str, str] = os.environ) -> Operation:
    """Returns an operation without counts. In a phase with faults it counts the kinds of errors by second, too.

    Args:
        first: the first second, since 1970.
        seconds: the number of seconds to count.
        length: seconds of warm-up and measured time.
    """
    step = int(environment.get(STEP) or 0)
    counts = PerSecond(first, [0] * seconds, [0] * seconds, {} if step else None)
    return Operation(per_second=counts, over_time=Windows(first, step or step_for(length)))
