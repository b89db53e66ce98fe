"""Prints and asks for `make deploy` and `make destroy`, and turns errors into exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable

from cli.shared.context import interactive
from cli.shared.errors import CliError, Exit
from lifecycle.caller_permissions import explained


def say(message: str = "") -> None:
    sys.stdout.write(message + "\n")
    sys.stdout.flush()


def ask(question: str, yes: bool, how: str) -> None:
    """Asks for confirmation.

    Args:
        yes: whether the caller has confirmed in advance.
        how: how to confirm in advance, such as ``YES=1``.

    Raises:
        CliError: NOT_CONFIRMED.
    """
    if yes:
        return
    if answer(f"{question}? [y/N] ", f"confirmation required: rerun with {how}").lower() not in ("y", "yes"):
        raise CliError(Exit.NOT_CONFIRMED, "not confirmed: nothing was changed")


def answer(prompt: str, unattended: str) -> str:
    """Reads a line from the terminal.

    Args:
        unattended: the error without a terminal.

    Raises:
        CliError: NOT_CONFIRMED.
    """
    if not interactive():
        raise CliError(Exit.NOT_CONFIRMED, unattended)
    sys.stdout.write(prompt)
    sys.stdout.flush()
    return sys.stdin.readline().strip()


def run(command: Callable[[], None]) -> int:
    """Runs a command and returns its exit code. Prints a :class:`CliError` as one line on stderr."""
    try:
        command()
    except CliError as error:
        sys.stderr.write(f"{explained(error)}\n")
        return int(error.code)
    except KeyboardInterrupt:
        return 130
    return 0
