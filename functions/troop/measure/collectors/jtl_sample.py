"""Defines a sample of JMeter's log, and the bounds of its values."""

from __future__ import annotations

import re
from typing import NamedTuple

from troop.measure.collectors.common import a_name
from troop.measure.operations import LONGEST_SECONDS

LONGEST_FIELD = 1 << 20
"""Characters: a message may contain a whole answer."""
TRANSACTION = "Number of samples in transaction : "
"""The beginning of the message in a transaction controller's sample."""
LONGEST = 1000 * LONGEST_SECONDS
"""The longest sample in milliseconds."""
LATEST = 1 << 53
"""The latest time in milliseconds since 1970."""
MOST_REMEMBERED = 100_000
"""The most threads, and transactions, to remember."""

_JAVA_TIMEOUT = "SocketTimeoutException"
_CONNECTING = re.compile(r"\bconnect timed out", re.IGNORECASE)


class Sample(NamedTuple):
    """A line of the log.

    Attributes:
        began: milliseconds since 1970.
        ended: milliseconds since 1970, after pauses, which are not part of the sample's time.
        took: milliseconds.
        error: kind of error; None if it succeeded.
        moved: bytes.
    """

    label: str
    began: int
    ended: int
    took: int
    error: str | None
    moved: int


def error_kind(code: str, message: str) -> str:
    """Returns a response code such as ``404``; without an answer, the exception's class, which JMeter writes
    instead. Java itself has one class for both timeouts, so the message decides which it was.
    """
    text = code.rpartition(":")[2].strip() or code
    name = text.rpartition(".")[2] or text
    if name == _JAVA_TIMEOUT and _CONNECTING.search(message):
        return "ConnectTimeoutException"
    return a_name(name) if name else "failed"
