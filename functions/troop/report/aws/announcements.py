"""Stores which changes of scheduled benchmarks were announced. A notification follows each write, from the stream."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from troop.bench.records.line import Line
from troop.bench.records.record import SCHEMA
from troop.report.change_news import Announcement, News
from troop.shared import codec
from troop.shared.aws.state_items import StateItems
from troop.shared.codec import DocumentError
from troop.shared.state_keys import CHANGE_POINT

_LIFETIME = timedelta(days=400)


@dataclass(frozen=True)
class Announced:
    """What was announced of the runs of a schedule.

    Attributes:
        version: how often it was written.
    """

    announcements: tuple[Announcement, ...] = ()
    version: int = 0


class Announcements(StateItems):
    """Items in the table ``State``, one for each schedule, benchmark and size. They expire."""

    def read(self, line: Line) -> Announced:
        """Returns what was announced of runs like one; nothing, if somebody has damaged it."""
        item = self.find(_key(line))
        try:
            return codec.from_document(Announced, item)
        except DocumentError:
            version = item.get("version")
            return Announced(version=int(version) if isinstance(version, Decimal) else 0)

    def announce(self, line: Line, news: News, known: Announced, now: datetime) -> bool:
        """Records a change, from which a notification follows. Returns False, and changes nothing, if another run has
        announced one since ``known`` was read.

        Raises:
            ClientError: DynamoDB refused.
        """
        record = Announced(news.announcements, known.version + 1)
        expires = int((now + _LIFETIME).timestamp())
        values = {"schema": SCHEMA, "expires_at": expires, "change": codec.to_document(news.change)}
        values |= codec.to_document(record)
        if known.version:
            return self.put_instead(_key(line), values, "version", known.version) is None
        return self.put_unless(_key(line), values, "version") is None


def _key(line: Line) -> str:
    series = json.dumps([line.name, line.size, line.schedule])
    return CHANGE_POINT + hashlib.sha256(series.encode()).hexdigest()
