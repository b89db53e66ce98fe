"""Checks whether the alarms that stop a unit's terminations exist."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.aws.chaos.groups import alarm_states


def missing(cloudwatch: Any, names: Collection[str]) -> list[str] | None:
    """Returns the names without an alarm, each of which prevents its unit's terminations; None if CloudWatch does not
    answer.

    One call for 100 names, none without names.
    """
    if not names:
        return []
    try:
        states = alarm_states(cloudwatch, names)
    except (BotoCoreError, ClientError):  # reading and changing a unit must still work
        return None
    return [name for name in names if name not in states]
