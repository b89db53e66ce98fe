"""Polls something in progress until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cli.shared.errors import CliError, Exit

POLL_SECONDS = 2.0
FAILURES = 30
"""Consecutive requests that may fail."""

INTERRUPTED = 130
"""The exit code of shells for Ctrl-C."""


def poll(fetch: Callable[[], dict[str, Any]], is_over: Callable[[Mapping[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """Yields each view, the last one when it is over; tolerates single failures.

    Raises:
        CliError: too many requests in a row failed, or one failed permanently.
    """
    failures = 0
    while True:
        try:
            view = fetch()
        except CliError as error:
            failures += 1
            if error.code not in (Exit.UNREACHABLE, Exit.API_FAILED) or failures > FAILURES:
                raise
        else:
            failures = 0
            yield view
            if is_over(view):
                return
        time.sleep(POLL_SECONDS)
