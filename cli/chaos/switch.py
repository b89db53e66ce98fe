"""Describes the switch in words."""

from __future__ import annotations

from typing import Any

from troop.state_keys import REAPER_OFF


def describe(switch: dict[str, Any]) -> str:
    """Returns a sentence about the switch. An older API does not return the state of the reaper."""
    return _chaos(switch) + ("; the reaper is off: what remains after runs stays" if switch.get(REAPER_OFF) else "")


def _chaos(switch: dict[str, Any]) -> str:
    if switch["halted"]:
        return "halted: it decides nothing and terminates nothing" + (" (and leashed)" if switch["leashed"] else "")
    if switch["leashed"]:
        return "leashed: it decides and records, and terminates nothing"
    return "unleashed: it terminates instances"
