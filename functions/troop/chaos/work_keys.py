"""Where a tick leaves the list of what is to be terminated, for the workflow: keys in the work bucket."""

from __future__ import annotations

from datetime import datetime

TICKS_PREFIX = "ticks/"


def work_key(execution: str, started: datetime) -> str:
    """Of the tick that an execution (its ARN) runs."""
    return f"{TICKS_PREFIX}{started:%Y/%m/%d/%H-%M}-{execution.rpartition(':')[2]}.json"
