"""Defines the option `--key`, which makes a repeated request harmless."""

from __future__ import annotations

from typing import Any

import typer

from cli.shared.errors import CliError, Exit


def option(more: str) -> Any:
    """Returns the option.

    Args:
        more: what a repetition with the same key does not do, such as ``starts nothing more``.
    """
    return typer.Option(help=f"Idempotency key: a repetition with the same key {more}.", callback=_checked)


def _checked(key: str | None) -> str | None:
    # Most likely an unset variable: with a generated key instead, every retry would repeat the action.
    if key is not None and not key.strip():
        raise CliError(Exit.USAGE, "--key is empty: use a text that stays the same on every try, or omit --key")
    return key
