"""Computes the key of a tick's work list in the work bucket, which the workflow reads."""

from __future__ import annotations

from datetime import datetime

TICKS_PREFIX = "ticks/"


def work_key(execution: str, started: datetime) -> str:
    """Returns the key for the tick that an execution (its ARN) runs."""
    return f"{TICKS_PREFIX}{started:%Y/%m/%d/%H-%M}-{execution.rpartition(':')[2]}.json"
