"""What both commands say, and how they end."""

from __future__ import annotations

import sys
from collections.abc import Callable

from cli.context import interactive
from cli.errors import CliError, Exit
from lifecycle.caller_permissions import explained


def say(message: str = "") -> None:
    sys.stdout.write(message + "\n")
    sys.stdout.flush()


def ask(question: str, yes: bool, how: str) -> None:
    """Asks for a yes.

    Args:
        yes: it was given beforehand.
        how: how to give it beforehand, such as ``YES=1``.

    Raises:
        CliError: NOT_CONFIRMED.
    """
    if yes:
        return
    if not interactive():
        raise CliError(Exit.NOT_CONFIRMED, f"this asks before it acts, and this is no terminal: add {how}")
    if answer(f"{question}? [y/N] ").lower() not in ("y", "yes"):
        raise CliError(Exit.NOT_CONFIRMED, "nothing was done")


def answer(prompt: str) -> str:
    """A line from the terminal."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    return sys.stdin.readline().strip()


def run(command: Callable[[], None]) -> int:
    """Runs a command; its exit code. A :class:`CliError` is one line on stderr."""
    try:
        command()
    except CliError as error:
        sys.stderr.write(f"{explained(error)}\n")
        return int(error.code)
    except KeyboardInterrupt:
        return 130
    return 0
