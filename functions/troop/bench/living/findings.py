"""Decides of which failing checks of a standing fleet people are notified, and in which words: once of each.

The record has each of them. A notification that was taken on, but whose message no topic has accepted, is void after
:data:`LEASE`; then another check takes it on. So none is lost; one comes twice only if a function ends just after it
was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from troop.bench.definition.living import AGED, Announcement, Grade, MergedCheck, RoleDigest, WorkSample
from troop.bench.living.report import MOST_CHECKS, SEVERITY

AGAIN = timedelta(minutes=10)
"""Time for which a check must have passed before people are notified of it again."""

LEASE = timedelta(minutes=3)
"""Time after which a message that was not accepted is sent by another check: longer than a call of a function."""


@dataclass(frozen=True)
class Message:
    """What people are notified of now.

    Attributes:
        role: whose check it is; "" for the queue.
        size: number of the role's nodes that count.
    """

    role: str
    check: MergedCheck
    size: int

    @property
    def key(self) -> str:
        return f"{self.role}/{self.check.name}"

    @property
    def _where(self) -> str:
        return self.role or "the queue"

    def subject(self, deployment: str, name: str) -> str:
        """Returns the subject of its message.

        Args:
            name: of the fleet.
        """
        verb = "fails" if self.check.status is Grade.FAIL else "warns"
        return f"{deployment}: {self.check.name} {verb} on {self._where} of the fleet {name}"

    def text(self, name: str, run: str) -> str:
        """Returns the message: what is wrong, where, and what to do.

        Args:
            name, run: name and id of the fleet.
        """
        check = self.check
        verb = "fails" if check.status is Grade.FAIL else "warns"
        more = check.nodes - len(check.node_ids)
        nodes = ", ".join(check.node_ids) + (f" and {more} more" if more else "")
        value = "" if check.value is None else f"Value: {check.value:g}"
        if value and check.threshold is not None:
            value += f", threshold: {check.threshold:g}"
        place = f"{check.nodes} of {self.size} nodes of {self.role}" if self.role else self._where
        lines = [
            f"The check {check.name} {verb} on {place}.",
            f"Fleet: {name} ({run})",
            *([f"Nodes: {nodes}"] if self.role else []),
            *([value] if value else []),
            *([f"Detail: {check.detail}"] if check.detail else []),
            f"What to do: {check.todo or 'find the cause on one of the nodes'}",
            f"Look: troop fleet status {run}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Findings:
    """The result of one check.

    Attributes:
        on_record: what the record must have.
        messages: what people are notified of now.
    """

    on_record: Mapping[str, Announcement]
    messages: tuple[Message, ...]


def queue_warning(work: WorkSample | None) -> dict[str, RoleDigest]:
    """Returns a warning of tasks that SQS deletes soon, as the digest of a role without a name; empty without such."""
    if work is None or not work.is_aged:
        return {}
    check = MergedCheck(
        "age",
        Grade.WARN,
        nodes=0,
        detail=f"a task has waited for more than {AGED.days} days; SQS deletes it after 14, and it then counts as done",
        todo="add nodes, or find out why workers do not finish the task; then compare the results with your tasks",
        actionable=False,
    )
    return {"": RoleDigest(checks=(check,))}


def find(recorded: Mapping[str, Announcement], digests: Mapping[str, RoleDigest], now: datetime) -> Findings:
    """Decides what people are notified of now.

    Args:
        recorded: what the record has.
        digests: by role, of nodes whose checks people may be notified of.
    """
    bad = {
        one.key: one
        for role, digest in digests.items()
        for one in (Message(role, check, _size(digest)) for check in digest.checks)
        if one.check.status is not Grade.OK
    }
    after = {key: one for key, before in recorded.items() if (one := _remaining(before, key in bad, now))}
    messages = []
    for key, message in bad.items():
        entry = after.get(key)
        others = sum(one.startswith(f"{message.role}/") for one in after)
        if entry is None and others >= MOST_CHECKS:
            continue  # enough of one role: names of checks that change all the time would notify without end
        if entry is None or _is_void(entry, now) or SEVERITY[message.check.status] > SEVERITY[entry.status]:
            after[key] = Announcement(message.check.status, now)
            messages.append(message)
    return Findings(after, tuple(messages))


def _remaining(finding: Announcement, is_bad: bool, now: datetime) -> Announcement | None:
    if is_bad:
        return replace(finding, ok_since=None)
    if not finding.sent or (finding.ok_since is not None and now - finding.ok_since >= AGAIN):
        return None
    return replace(finding, ok_since=finding.ok_since or now)


def _is_void(finding: Announcement, now: datetime) -> bool:
    return not finding.sent and now - finding.at >= LEASE


def _size(digest: RoleDigest) -> int:
    return digest.ok + digest.warn + digest.fail + digest.silent
