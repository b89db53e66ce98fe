"""Sends notifications to the event bus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from troop.chaos.notifications import SOURCE, Notification


class NotSent(Exception):
    """The bus refused an entry."""


@dataclass(frozen=True)
class Bus:
    """The deployment's event bus."""

    client: Any
    name: str

    def send(self, notifications: Sequence[Notification]) -> None:
        """Sends at most 10 notifications, each at least once: receivers detect repetitions by the ``id`` in the detail.

        Raises:
            NotSent: the bus refused a notification; it may have accepted others.
        """
        entries = [
            {
                "Source": SOURCE,
                "DetailType": notification.detail_type,
                "Detail": json.dumps(notification.detail, ensure_ascii=False),
                "EventBusName": self.name,
            }
            for notification in notifications
        ]
        if not entries:
            return
        answer = self.client.put_events(Entries=entries)
        if answer.get("FailedEntryCount"):
            failed = next(entry for entry in answer["Entries"] if entry.get("ErrorCode"))
            raise NotSent(f"{failed['ErrorCode']}: {failed.get('ErrorMessage')}")
