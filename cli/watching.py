"""Looking at something that goes on without us, again and again until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cli.errors import CliError, Exit

POLL_SECONDS = 2.0
FAILURES = 30
"""Looks in a row that may fail."""

INTERRUPTED = 130
"""What shells make of Ctrl-C."""


def poll(fetch: Callable[[], dict[str, Any]], is_over: Callable[[Mapping[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """What each look has shown, the last one that after which it is over; one in a while may fail.

    Raises:
        CliError: too many in a row have failed, or one in a way that will not pass.
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
