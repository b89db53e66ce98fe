"""Waiting for what other processes and threads do, on a machine that may be busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0
"""Seconds that a test waits for an event. A fast machine never waits so long; only what never happens fails a test."""

PAGE_PATIENCE_MS = 120_000
"""Milliseconds that a page in Chromium has for what a test expects of it."""


def eventually(probe: Callable[[], Any], pause: float = 0.05) -> Any:
    """Returns the first truthy answer of ``probe``, called every ``pause`` seconds.

    Raises:
        AssertionError: there was none within :data:`PATIENCE`.
    """
    until = time.monotonic() + PATIENCE
    while not (answer := probe()):
        assert time.monotonic() < until, f"not within {PATIENCE:g} s"
        time.sleep(pause)
    return answer
