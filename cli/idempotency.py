"""`--key`: what makes the same request again do nothing more."""

from __future__ import annotations

from typing import Any

import typer

from cli.errors import CliError, Exit


def option(more: str) -> Any:
    """The option; ``more``: what the same key again does not do, such as ``starts nothing more``."""
    return typer.Option(help=f"Idempotency key: the same one again {more}.", callback=_checked)


def _checked(key: str | None) -> str | None:
    # Most likely a variable that is not set: with a key made up in its place, each try again would do it again.
    if key is not None and not key.strip():
        raise CliError(Exit.USAGE, "--key is empty: give a text that stays the same on every try, or leave --key out")
    return key
