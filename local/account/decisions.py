"""Counts the authorisation decisions of the account, which tests compare with the permissions of roles."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Decision:
    """A decision.

    Attributes:
        caller: ARN of a role, a user or the account's root.
        resource: its ARN; of an unreachable service, what is missing.
        decision: Allow, Deny, ImplicitDeny, or Unreachable: the request of an instance finds no endpoint.
        source: "account" (MiniStack's API), "gate" (EC2, Auto Scaling, load balancing), "states" (a task of a state
            machine), "scheduler" (the target of a schedule) or "endpoint" (of the instance's network).
    """

    caller: str
    action: str
    resource: str
    decision: str
    source: str


class DecisionLog:
    """A log that counts equal decisions, so that it stays small."""

    def __init__(self) -> None:
        self._counts: Counter[Decision] = Counter()
        self._lock = threading.Lock()

    def record(self, caller: str, action: str, resource: str, decision: str, source: str) -> None:
        entry = Decision(role_arn(caller), action, resource, decision, source)
        with self._lock:
            self._counts[entry] += 1

    def entries(self) -> list[dict[str, Any]]:
        """Returns [{"caller", "action", "resource", "decision", "source", "count"}], in order of first occurrence."""
        with self._lock:
            return [{**asdict(entry), "count": count} for entry, count in self._counts.items()]

    def clear(self) -> None:
        with self._lock:
            self._counts.clear()


def role_arn(caller: str) -> str:
    """Returns the role of an assumed-role ARN, so that its sessions count as one; other ARNs unchanged."""
    prefix, separator, session = caller.partition(":assumed-role/")
    if not separator:
        return caller
    return f"{prefix.replace(':sts:', ':iam:')}:role/{session.split('/')[0]}"


log = DecisionLog()
