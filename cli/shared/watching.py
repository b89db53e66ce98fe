"""Polls something in progress until it is over, and repeats what shows a state."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import typer

from cli.shared import show, times
from cli.shared.errors import CliError, Exit

_State = TypeVar("_State")

WATCH = "--watch"
_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?")
_USUAL_SECONDS = "5"

POLL_SECONDS = 2.0
FAILURES = 30
"""Consecutive requests that may fail."""


def poll(
    fetch: Callable[[], dict[str, Any]],
    is_over: Callable[[Mapping[str, Any]], bool],
    seconds: Callable[[], float] = lambda: POLL_SECONDS,
) -> Iterator[dict[str, Any]]:
    """Yields each view, the last one when it is over; tolerates single failures.

    Args:
        seconds: returns the pause before the next look.

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
        time.sleep(seconds())


Watch = Annotated[
    float | None,
    typer.Option(
        WATCH, metavar="[SECONDS]", min=1, max=86_400, help="Repeat every 5 seconds, or as many, until Ctrl-C."
    ),
]


def with_seconds(args: Sequence[str]) -> list[str]:
    """Adds the usual seconds to ``--watch`` where no number follows."""
    result: list[str] = []
    for index, word in enumerate(args):
        if word == "--":
            return [*result, *args[index:]]
        result.append(word)
        if word == WATCH and not _SECONDS.fullmatch("".join(args[index + 1 : index + 2])):
            result.append(_USUAL_SECONDS)
    return result


def repeat(seconds: float | None, fetch: Callable[[], _State], tell: Callable[[_State], None]) -> None:
    """Shows a state once, or every so many seconds until Ctrl-C; reports single failures and tries again.

    Args:
        seconds: the pause before the next look; None for one look.
        tell: prints the state. On a terminal it replaces the last one.

    Raises:
        CliError: too many looks in a row failed, or one failed permanently.
        KeyboardInterrupt: at Ctrl-C.
    """
    if seconds is None:
        tell(fetch())
        return
    failures = 0
    while True:
        try:
            state = fetch()
        except CliError as error:
            failures += 1
            if error.code not in (Exit.UNREACHABLE, Exit.API_FAILED) or failures > FAILURES:
                raise
            show.note(f"troop: {error}; this is tried again", style="red")
        else:
            failures = 0
            show.fresh_screen(f"{times.now().astimezone():%H:%M:%S %Z}, every {seconds:g} s until Ctrl-C")
            tell(state)
        time.sleep(seconds)
