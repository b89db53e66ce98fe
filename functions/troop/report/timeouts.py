"""Recognizes timeouts among kinds of errors, whose names come from scripts and tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

CONNECT: Final = "connect"
READ: Final = "read"
OTHER: Final = "other"
"""Timeouts of tools and earlier versions that do not say of what."""

_TIMEOUT = re.compile(r"time[-_. ]?d?[-_. ]?out", re.IGNORECASE)
_CONNECT = re.compile(r"connect", re.IGNORECASE)
_READ = re.compile(r"read|socket", re.IGNORECASE)


def timeouts(errors: Mapping[str, int]) -> dict[str, int]:
    """Adds up the timeouts of errors by kind: ``connect``, ``read`` or ``other``.

    Java's SocketTimeoutException is a read timeout, because connecting has an exception of its own.
    """
    counts: dict[str, int] = {}
    for kind, count in errors.items():
        if _TIMEOUT.search(kind):
            which = CONNECT if _CONNECT.search(kind) else READ if _READ.search(kind) else OTHER
            counts[which] = counts.get(which, 0) + count
    return counts
