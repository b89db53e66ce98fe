"""Defines what `troop plan` and `troop simulate` share: options, and the assumptions that they print."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.shared import show, times
from cli.shared.errors import CliError, Exit
from troop.chaos.forecast import ASSUMPTIONS
from troop.shared import values

FIXED_SALT = "troop what-if"
"""The default salt: any text works, as long as it stays the same."""

SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", help="A cdk.json, or its keys as YAML or JSON; missing keys come from this checkout."),
]
Salt = Annotated[str | None, typer.Option("--salt", help="The key of the rolls, in place of the deployment's salt.")]

FILE_ASSUMPTIONS = (
    "nothing was terminated before, and nothing is halted or leashed",
    "alarms are OK, and no instance refresh is under way",
    "SSM Change Calendars are open",
    "Systems Manager reaches all instances, and they have their group's tags",
)
"""Further assumptions for groups of a file."""

FIRST, LAST = date(1970, 1, 1), date(2199, 12, 31)


def now() -> datetime:
    return datetime.now(UTC)


def day(text: str, option: str) -> date:
    """Parses a day that a person typed: YYYY-MM-DD, or yesterday, today or tomorrow on this machine's clock.

    Raises:
        CliError: USAGE.
    """
    try:
        parsed_day = values.day(times.day_in_words(text, now()))
    except values.BadValue as error:
        raise CliError(Exit.USAGE, f"{option} is {text!r}: must be {error}") from None
    if not FIRST <= parsed_day <= LAST:
        raise CliError(Exit.USAGE, f"{option} is {text!r}: must be from {FIRST} to {LAST}")
    return parsed_day


def salt_of(salt: str | None) -> bytes:
    """Returns the salt for groups of a file.

    Raises:
        CliError: USAGE: it is empty, or not UTF-8.
    """
    if salt == "":
        raise CliError(Exit.USAGE, "--salt is '': must not be empty; omit it for a fixed salt")
    try:
        return (salt or FIXED_SALT).encode()
    except UnicodeEncodeError:
        raise CliError(Exit.USAGE, f"--salt is {salt!r}: must be text in UTF-8") from None


def salt_note(salt: str | None) -> str:
    """Returns a sentence about the salt for groups of a file."""
    if salt is not None:
        return "the salt is that of --salt"
    return (
        f"the salt is {FIXED_SALT!r}: the days are the same every time, but a deployment's salt gives other days; "
        "the statistics are the same"
    )


def tell(assumptions: list[str]) -> None:
    """Prints the assumptions on stderr."""
    show.note("Assumptions: " + "; ".join(assumptions) + ".", style="dim")


def assumptions(*more: str) -> list[str]:
    return [*ASSUMPTIONS, *more]
