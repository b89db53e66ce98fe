"""Every authorisation decision taken in the account, counted: what a test compares with what the roles allow."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Decision:
    """`caller`: ARN of a role, user or the account's root. `decision`: Allow, Deny or ImplicitDeny.
    `source`: who asked: "account" (MiniStack's API), "gate" (EC2, Auto Scaling, load balancing), "states" (a task of
    a state machine) or "scheduler" (a schedule's target).
    """

    caller: str
    action: str
    resource: str
    decision: str
    source: str


class DecisionLog:
    """Counts equal decisions, so it stays small however long the account lives."""

    def __init__(self) -> None:
        self._counts: Counter[Decision] = Counter()
        self._lock = threading.Lock()

    def record(self, caller: str, action: str, resource: str, decision: str, source: str) -> None:
        entry = Decision(role_arn(caller), action, resource, decision, source)
        with self._lock:
            self._counts[entry] += 1

    def entries(self) -> list[dict[str, Any]]:
        """[{"caller", "action", "resource", "decision", "source", "count"}], in the order of first occurrence."""
        with self._lock:
            return [{**asdict(entry), "count": count} for entry, count in self._counts.items()]

    def clear(self) -> None:
        with self._lock:
            self._counts.clear()


def role_arn(caller: str) -> str:
    """The role behind an assumed-role ARN, so that a role's sessions count as one; any other ARN as it is."""
    prefix, separator, session = caller.partition(":assumed-role/")
    if not separator:
        return caller
    return f"{prefix.replace(':sts:', ':iam:')}:role/{session.split('/')[0]}"


log = DecisionLog()
