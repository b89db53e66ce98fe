"""Whether the alarms that stop a unit's terminations exist."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.aws.chaos.groups import alarm_states


def missing(cloudwatch: Any, names: Collection[str]) -> list[str] | None:
    """Names of which there is no alarm, each of which keeps its unit out of chaos; None when CloudWatch does not tell.

    One call for 100 names, none for none.
    """
    if not names:
        return []
    try:
        states = alarm_states(cloudwatch, names)
    except (BotoCoreError, ClientError):  # a unit can be looked at and changed all the same
        return None
    return [name for name in names if name not in states]
