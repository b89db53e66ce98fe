"""Decides when a missing node is lost: EC2 says so, or two checks agree. One answer of AWS can be out of date, and a
status check of a node under full load can fail once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from troop.shared.moments import iso, parse

WAIT = 15
"""Seconds until the next check while a node is missing."""

APART = timedelta(seconds=10)
"""The least time between two checks that count as two: a retry of the workflow may repeat a check at once."""

Doubts = Mapping[str, datetime]
"""Moments from which nodes are missing, by id."""


def following(missing: Iterable[str], earlier: Doubts, now: datetime) -> dict[str, datetime]:
    """Returns the doubts after a check. A node that is back has none."""
    return {i: earlier.get(i, now) for i in missing}


def confirmed(doubts: Doubts, now: datetime) -> frozenset[str]:
    """Returns the nodes that an earlier check missed, too."""
    return frozenset(i for i, since in doubts.items() if now - since >= APART)


def to_document(doubts: Doubts) -> dict[str, str]:
    """Converts to the stored document; the reverse of :func:`from_document`."""
    return {i: iso(since) for i, since in doubts.items()}


def from_document(document: Mapping[str, str] | None) -> dict[str, datetime]:
    """Reads the stored document; None: there are no doubts."""
    return {i: parse(since) for i, since in (document or {}).items()}
