"""Applies MaxDelaySeconds and JitterStrategy FULL (a random part of the interval) to retriers.

MiniStack supports only IntervalSeconds and BackoffRate. Not emulated: it never waits longer than 60 seconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ministack.services import stepfunctions

from ._wrap import wrap


def apply() -> None:
    @wrap(stepfunctions, "_find_matching_retrier")
    def find(original: Callable[..., Any], retriers: Any, error: str, counts: dict[Any, int]) -> Any:
        retrier, index = original(retriers, error, counts)
        if retrier is None:
            return retrier, index
        # The caller multiplies the interval by the rate to the power of the number of retries.
        delay = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** counts.get(index, 0)
        delay = min(delay, retrier.get("MaxDelaySeconds", delay))
        if retrier.get("JitterStrategy") == "FULL":
            delay *= random.random()
        return {**retrier, "IntervalSeconds": delay, "BackoffRate": 1}, index
