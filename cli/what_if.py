"""What `troop plan` and `troop simulate` have in common: options, and what is said about the assumptions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli import show
from cli.errors import CliError, Exit
from troop import values
from troop.chaos.forecast import ASSUMPTIONS

FIXED_SALT = "troop what-if"
"""Keys the rolls where no salt is given: anything will do, as long as it is always the same."""

SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", help="A cdk.json, or YAML or JSON of its keys; what it lacks is this checkout's."),
]
Salt = Annotated[str | None, typer.Option("--salt", help="Keys the rolls, as the deployment's secret does.")]

OF_A_FILE = (
    "nothing was terminated before, and nothing is halted or leashed",
    "stop alarms are OK, and no instance refresh is under way",
)
"""What is taken for granted of groups of a file, besides."""

FIRST, LAST = date(1970, 1, 1), date(2199, 12, 31)


def now() -> datetime:
    return datetime.now(UTC)


def day(text: str, option: str) -> date:
    """A day that a person typed.

    Raises:
        CliError: USAGE.
    """
    try:
        parsed_day = values.day(text)
    except values.BadValue as error:
        raise CliError(Exit.USAGE, f"{option} is {text!r}: must be {error}") from None
    if not FIRST <= parsed_day <= LAST:
        raise CliError(Exit.USAGE, f"{option} is {text!r}: must be from {FIRST} to {LAST}")
    return parsed_day


def salt_of(salt: str | None) -> bytes:
    """The salt for groups of a file.

    Raises:
        CliError: USAGE: it is empty, or no UTF-8.
    """
    if salt == "":
        raise CliError(Exit.USAGE, "--salt is '': must not be empty; leave it out for a fixed one")
    try:
        return (salt or FIXED_SALT).encode()
    except UnicodeEncodeError:
        raise CliError(Exit.USAGE, f"--salt is {salt!r}: must be text in UTF-8") from None


def salt_note(salt: str | None) -> str:
    """What is to be said of the salt of a file's groups."""
    if salt is not None:
        return "the salt is the one given"
    return (
        f"the salt is {FIXED_SALT!r}: the same days every time, but not a deployment's, whose salt gives others; "
        "the statistics are the same"
    )


def tell(assumptions: list[str]) -> None:
    """The assumptions, on stderr."""
    show.note("Taken for granted: " + "; ".join(assumptions) + ".", style="dim")


def assumptions(*more: str) -> list[str]:
    return [*ASSUMPTIONS, *more]
