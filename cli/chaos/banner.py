"""Warns, above what commands show of chaos, that it is leashed or halted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from cli.chaos.switch import who_and_why
from cli.client.client import TroopClient
from cli.shared import show
from cli.shared.errors import CliError

_SECONDS = 1.0
"""The time for which a command waits for the switch once it has its own answer."""


def ask(client: TroopClient) -> Callable[[], None]:
    """Starts to read the switch beside the command's own requests.

    Programs get no banner, and cause no request: it is for a person, where stderr is a terminal.

    Returns:
        Prints the banner on stderr, if the deployment is leashed or halted and the switch could be read in time.
    """
    if not show.has_reader():
        return lambda: None
    answers: list[dict[str, Any]] = []

    def read() -> None:
        with suppress(CliError):  # the command itself reports what is wrong, or may be allowed more than this
            answers.append(client.switch())

    thread = threading.Thread(target=read, daemon=True)
    thread.start()

    def tell() -> None:
        thread.join(_SECONDS)
        for switch in answers:
            show_banner(switch)

    return tell


def show_banner(switch: Mapping[str, Any]) -> None:
    """Prints a sentence on stderr if chaos is leashed or halted."""
    if switch["halted"]:
        how = "has halted itself" if switch.get("itself") else "is halted"
        text, end = f"Troop {how}: nothing is decided, and nothing hit", "troop resume"
    elif switch["leashed"]:
        text, end = "Troop is leashed: it decides and records, and hits nothing", "troop unleash"
    else:
        return
    by = who_and_why(switch)
    show.note(f"{text}{f' ({by})' if by else ''}. `{end}` ends this.", style="bold yellow")
