"""Sends notifications: reads the tables' streams, and sends news to the event bus and the topic.

The tables already have the records, and nothing waits for a notification. A failed one is retried automatically, and
neither stops nor repeats what it reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.chaos.aws import stray_items
from troop.chaos.aws.bus import Bus
from troop.chaos.aws.change_table import ChangeFilter, ChangeTable
from troop.chaos.aws.change_table import from_item as change_from_item
from troop.chaos.aws.event_items import from_item as event_from_item
from troop.chaos.aws.event_queries import EventFilter, EventQueries
from troop.chaos.aws.state_table import self_halt_of
from troop.chaos.aws.streams import Record
from troop.chaos.aws.topic import Topic
from troop.chaos.changes import Change, request_of
from troop.chaos.events import Event, Status
from troop.chaos.notifications import (
    INJECTION_NEWS,
    WRITTEN_WITHIN,
    Notification,
    benchmark_notifications,
    change_notifications,
    edited_by_hand,
    event_notifications,
    self_halt_notifications,
    self_halt_removed_by_hand,
    stray_notifications,
)
from troop.chaos.slowness import LATEST, RECENT, usual
from troop.shared import codec
from troop.shared.aws.dynamo import jsonable, plain
from troop.shared.benchmark_change import BenchmarkChange
from troop.shared.state_keys import CHANGE_POINT, ITSELF, SELF_HALT, STRAYS, SWITCH, UNIT

_CHANGES_READ = 25
"""The changes that one query returns: people make few of the switch within a minute."""


class UnreadableRecord(Exception):
    """An item is not as Troop writes it, so there is no notification. A retry would not help."""


@dataclass(frozen=True)
class Notifier:
    """Makes notifications of records, and sends them.

    Attributes:
        leashed: the initial state of the switch.
        events, changes, group_tags, state: names of the tables.
        change_table: distinguishes edits by hand from those of the API.
    """

    deployment: str
    leashed: bool
    events: str
    changes: str
    group_tags: str
    state: str
    change_table: ChangeTable
    queries: EventQueries
    bus: Bus
    topic: Topic

    def notify(self, record: Record) -> list[Notification]:
        """Sends the notifications about a record, and returns them.

        The topic gets them even if the bus fails. After an error both get them again: receivers recognise them by their
        ``id``.

        Raises:
            UnreadableRecord: the item is malformed.
            NotSent, ClientError, BotoCoreError: of the bus, the topic, or the table with the unit's history.
        """
        news = self._news(record)
        try:
            self.bus.send(news)
        finally:
            self.topic.send(news)
        return news

    def _news(self, record: Record) -> list[Notification]:
        makers: dict[str, Callable[[Record], Iterable[Notification]]] = {
            self.events: self._event_news,
            self.changes: self._change_news,
            self.group_tags: self._policy_news,
            self.state: self._state_news,
        }
        maker = makers.get(record.table)
        return list(maker(record)) if maker else []

    def _event_news(self, record: Record) -> Iterable[Notification]:
        if not record.new:
            return []
        event, before = _read(lambda: (event_from_item(record.new), _status(record.old)))
        recovered = event.status is Status.RECOVERED and before is not Status.RECOVERED
        usually = self._usually(event) if recovered else None
        was_judged = "M" in record.old.get("verdict", {})
        had = _recorded_of_injection(record.old)
        return event_notifications(self.deployment, event, before, record.at, usually, was_judged=was_judged, had=had)

    def _usually(self, event: Event) -> float | None:
        """Returns the seconds that the unit usually took before this event: by the same method, and by a lasting fault
        only where the instance stayed, or was replaced, as in this event.
        """
        alike = EventFilter(
            unit=event.unit, status=Status.RECOVERED, method=event.method, since=event.at - RECENT, until=event.at
        )
        page = self.queries.page(alike, LATEST)
        return usual(
            [
                e.recovery_seconds
                for e in page.events
                if e.recovery_seconds is not None and e.victim_stays == event.victim_stays
            ]
        )

    def _change_news(self, record: Record) -> Iterable[Notification]:
        if record.old or not record.new:  # a change is written only once
            return []

        def read() -> tuple[Change, str]:
            item = plain(record.new)
            return change_from_item(jsonable(item)), f"{item['subject']}#{item['at']}"

        change, change_id = _read(read)
        return change_notifications(self.deployment, change, change_id, self.leashed)

    def _policy_news(self, record: Record) -> Iterable[Notification]:
        return self._edited(record, "unit", UNIT)

    def _state_news(self, record: Record) -> Iterable[Notification]:
        key = (record.new or record.old).get("key", {})
        if key == {"S": SWITCH}:
            return self._edited(record, "key", "")
        if key == {"S": STRAYS} and record.new and record.new.get("version") != record.old.get("version"):
            return stray_notifications(self.deployment, _read(lambda: stray_items.from_item(plain(record.new))))
        if key == {"S": SELF_HALT} and record.new and not record.old:
            return self_halt_notifications(self.deployment, self_halt_of(plain(record.new)))
        if key == {"S": SELF_HALT} and not record.new and not self._resumed(record.at):
            change = self_halt_removed_by_hand(record.at)
            change_id = f"{SELF_HALT}#{record.sequence}"
            return change_notifications(self.deployment, change, change_id, self.leashed, by_hand=True)
        if (
            str(key.get("S")).startswith(CHANGE_POINT)
            and record.new
            and record.new.get("version") != record.old.get("version")
        ):
            change = _read(lambda: codec.from_document(BenchmarkChange, plain(record.new)["change"]))
            return benchmark_notifications(self.deployment, record.at, change)
        return []

    def _resumed(self, at: datetime) -> bool:
        """Checks whether the API recorded, about then, that somebody ended that halt: the record has its own news."""
        about = ChangeFilter(SWITCH, at - WRITTEN_WITHIN, at + WRITTEN_WITHIN)
        return any(ITSELF in one.values for one in self._changes(about))

    def _changes(self, change_filter: ChangeFilter) -> Iterator[Change]:
        position = None
        while True:
            page = self.change_table.page(change_filter, _CHANGES_READ, position)
            yield from page.changes
            if (position := page.position) is None:
                return

    def _edited(self, record: Record, key: str, prefix: str) -> Iterable[Notification]:
        old, new = (_plain(item) for item in (record.old, record.new))
        subject = prefix + str((new or old)[key])
        edited = edited_by_hand(old, new, self._recorded(subject, new), record.at)
        change = Change(subject, record.at, "", edited, owner=_text(old.get("owner")))
        return change_notifications(self.deployment, change, f"{subject}#{record.sequence}", self.leashed, by_hand=True)

    def _recorded(self, subject: str, item: Mapping[str, Any]) -> Change | None:
        """Returns the record of the change that an item names as its last."""
        at, request = item.get("changed_at"), request_of(item)
        return self.change_table.find(subject, at, request) if isinstance(at, str) and request else None


def _text(value: Any) -> str:
    """Returns text of an item that people edit; "" if it is none."""
    return value if isinstance(value, str) else ""


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = _read(lambda: jsonable(plain(item)))
    return read


def _status(item: Mapping[str, Any]) -> Status | None:
    return Status(item["status"]["S"]) if item else None


def _recorded_of_injection(item: Mapping[str, Any]) -> frozenset[str]:
    """Returns which attributes of :data:`INJECTION_NEWS` a stored event has; none, if somebody has damaged it."""
    injection = item.get("injection", {}).get("M", {})
    return frozenset(name for name in INJECTION_NEWS if injection.get(name, {"NULL": True}) != {"NULL": True})


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise UnreadableRecord(f"{type(error).__name__}: {error}") from error
