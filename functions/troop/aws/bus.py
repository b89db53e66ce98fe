"""Says on the event bus what others may want to act on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from troop import moments
from troop.chaos.events import Event

SOURCE = "troop"


class NotAnnounced(Exception):
    """The bus did not take an event."""


@dataclass(frozen=True)
class Bus:
    """The deployment's event bus."""

    client: Any
    name: str

    def unrecovered(self, event: Event) -> None:
        """Announces that a unit did not recover; at least once, so receivers go by ``event_id``.

        Raises:
            NotAnnounced: the bus refused the entry.
        """
        detail = {
            "event_id": event.event_id,
            "unit": event.unit,
            "group": event.group,
            "instance_id": event.instance_id,
            "status": event.status.value,
            "terminated_at": moments.iso(event.terminated_at) if event.terminated_at else None,
            "detail": event.detail,
        }
        entry = {
            "Source": SOURCE,
            "DetailType": "Unit unrecovered",
            "Detail": json.dumps(detail),
            "EventBusName": self.name,
        }
        answer = self.client.put_events(Entries=[entry])
        if answer.get("FailedEntryCount"):
            failed = answer["Entries"][0]
            raise NotAnnounced(f"{failed.get('ErrorCode')}: {failed.get('ErrorMessage')}")
