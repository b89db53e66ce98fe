"""Computes what a phase with planned faults did in each second, for the picture in its report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from troop.bench.results.fault_windows import UncountedError, counted, percentile_ms
from troop.measure import operations as ops
from troop.measure.operations import UNFINISHED


def curve(phase: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the values of each whole second of the measured time, as of :class:`troop.report.document.Curve`: of the
    roles that generate load, or of all in results that do not name them.

    Returns:
        None without planned faults, or if operations were not counted by second.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    begin = phase.get("measured_from")
    if not phase.get("faults") or begin is None:
        return None
    roles = phase.get("generating") or phase["roles"]
    try:
        every = counted([one for role in roles for one in ops.parse(phase["roles"][role]["operations"]).values()])
    except UncountedError:
        return None
    seconds = range(math.ceil(begin), math.floor(begin + phase["measured_seconds"]))
    failed = [every.failed(second, second + 1) for second in seconds]
    return {
        "start": round(seconds.start - begin, 3),
        "per_second": [every.done(second, second + 1) for second in seconds],
        "failed": [sum(its.values()) - its.get(UNFINISHED, 0) if every.has_failures else None for its in failed],
        "p99_ms": [percentile_ms(every.took(second, second + 1), 99) for second in seconds],
    }
