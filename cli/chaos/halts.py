"""Halts and resumes one of many deployments, by the id of a halt of all of them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from cli.chaos.switch import who_and_why
from cli.client.client import TroopClient
from cli.shared.errors import CliError, Exit
from troop.shared.state_keys import HALT_ID

HALTED, WITHOUT_ID, OTHERWISE = "halted", "halted without the id", "halted by another"
"""How a halt ends: the last leaves a present halt as it is."""


def new_id(now: datetime) -> str:
    """Returns an id that no other halt has."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def halt(client: TroopClient, halt_id: str, reason: Mapping[str, str]) -> dict[str, Any]:
    """Halts a deployment. One that is halted stays so as it is.

    Args:
        reason: what the request says about the reason.

    Returns:
        ``outcome`` (one of the three above) and the ``switch``.

    Raises:
        CliError: it is not known to be halted.
    """
    try:
        return _halted(client.change_switch({"halted": True, HALT_ID: halt_id, **reason}), halt_id)
    except CliError as error:
        if error.code is not Exit.REFUSED:
            raise
        with suppress(CliError):  # stopping comes first
            switch = client.switch()
            if HALT_ID in switch:
                raise error from None
            if switch["halted"]:
                return _halted(switch, halt_id)
        return _halted(client.change_switch({"halted": True, **reason}), halt_id, WITHOUT_ID)


def verify(client: TroopClient, halt_id: str) -> dict[str, Any]:
    """Finds out whether a halt without an answer has halted the deployment; returns what :func:`halt` does.

    Raises:
        CliError: it is not halted, or that cannot be read.
    """
    return _halted(client.switch(), halt_id)


def _halted(switch: dict[str, Any], halt_id: str, otherwise: str = OTHERWISE) -> dict[str, Any]:
    if not switch["halted"]:
        raise CliError(Exit.CONFLICT, "it is not halted, because somebody has resumed it: halt again")
    return {"outcome": HALTED if switch.get(HALT_ID) == halt_id else otherwise, "switch": switch}


def resume(client: TroopClient, halt_id: str, reason: Mapping[str, str]) -> dict[str, Any]:
    """Ends the halt with an id; any other halt stays.

    Returns:
        ``outcome`` (resumed, or still halted) and the ``switch``.

    Raises:
        CliError: it is not known to be resumed.
    """
    try:
        return {"outcome": "resumed", "switch": client.change_switch({"halted": False, HALT_ID: halt_id, **reason})}
    except CliError as error:
        if error.code not in (Exit.CONFLICT, Exit.API_FAILED, Exit.UNREACHABLE):
            raise
        switch = client.switch()
        if switch["halted"] and switch.get(HALT_ID) == halt_id and not switch.get("itself"):
            raise error from None
        return {"outcome": "still halted" if switch["halted"] else "resumed", "switch": switch}


def standing(switch: dict[str, Any]) -> dict[str, Any]:
    """Returns what :func:`resume` does of a deployment that it leaves alone."""
    return {"outcome": "still halted" if switch["halted"] else "not halted", "switch": switch}


def in_words(answer: Mapping[str, Any]) -> str:
    """Returns what :func:`halt` or :func:`resume` returned as a sentence: who has halted it and why, if others have."""
    outcome, switch = str(answer["outcome"]), answer["switch"]
    if outcome == WITHOUT_ID:
        return f"{outcome}, for which its version is too old: only `troop resume` for it alone ends this"
    by = who_and_why(switch) if outcome in (OTHERWISE, "still halted") else ""
    words = f"{outcome} ({by})" if by else outcome
    if outcome != OTHERWISE:
        return words
    return f"{words}: your halt does not hold here, it ends with {switch.get(HALT_ID) or 'that one'}"
