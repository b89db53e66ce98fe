"""Recognizes timeouts among kinds of errors, whose names come from scripts and tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

CONNECT: Final = "connect"
READ: Final = "read"
OTHER: Final = "other"
"""Time-outs whose cause is unknown: of other tools, and of earlier versions."""

_TIMEOUT = re.compile(r"time[-_. ]?d?[-_. ]?out", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CONNECT = frozenset({"connect", "connection", "connecting"})
_READ = frozenset({"read", "reading", "socket"})


def timeouts(errors: Mapping[str, int]) -> dict[str, int]:
    """Adds up the timeouts of errors by kind: ``connect``, ``read`` or ``other``.

    Java's SocketTimeoutException is a read timeout, because connecting has an exception of its own.
    """
    counts: dict[str, int] = {}
    for kind, count in errors.items():
        if _TIMEOUT.search(kind):
            words = {word.lower() for word in _WORDS.findall(kind)}
            which = CONNECT if words & _CONNECT else READ if words & _READ else OTHER
            counts[which] = counts.get(which, 0) + count
    return counts
