"""Reads the options before a command's name, and asks for confirmations."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import typer

from cli.shared.errors import CliError, Exit


@dataclass(frozen=True)
class Options:
    """The options before a command's name; None where the environment decides."""

    deployment: str = "Troop"
    region: str | None = None
    profile: str | None = None


def to_type(ctx: typer.Context, *words: str) -> str:
    """Returns a command line for the same deployment: ``troop --region eu-west-1 bench stop ID``."""
    deployment = "" if ctx.obj.deployment == "Troop" else f" -d {ctx.obj.deployment}"
    region = f" --region {ctx.obj.region}" if ctx.obj.region else ""
    return f"troop{deployment}{region} {' '.join(words)}"


def interactive() -> bool:
    """Checks whether standard input is a terminal."""
    return sys.stdin.isatty()


def confirm(question: str, yes: bool) -> None:
    """Asks for a confirmation.

    Args:
        question: without the question mark.
        yes: whether ``--yes`` was given.

    Raises:
        CliError: NOT_CONFIRMED; also without a terminal.
    """
    if yes:
        return
    if not interactive():
        raise CliError(Exit.NOT_CONFIRMED, "confirmation required: rerun with --yes")
    if not typer.confirm(f"{question}?", err=True):
        raise CliError(Exit.NOT_CONFIRMED, "nothing was changed")
