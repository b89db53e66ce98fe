"""Says on the event bus what others may want to act on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from troop.chaos.notifications import SOURCE, Notification


class NotSent(Exception):
    """The bus did not take an entry."""


@dataclass(frozen=True)
class Bus:
    """The deployment's event bus."""

    client: Any
    name: str

    def send(self, notifications: Sequence[Notification]) -> None:
        """Puts them on the bus, at most 10; at least once, so receivers go by the ``id`` in the detail.

        Raises:
            NotSent: the bus refused one of them; it may have taken others.
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
