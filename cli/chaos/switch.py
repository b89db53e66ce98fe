"""Describes the switch in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.chaos.changes import who
from cli.shared import show
from troop.shared.state_keys import HALT, HALT_ID, REAPER_OFF, SCHEDULES_OFF


def describe(switch: Mapping[str, Any]) -> str:
    """Returns a sentence about the switch. An older API does not return the state of the reaper or of schedules."""
    reaper = "; the reaper is off: what remains after runs stays" if switch.get(REAPER_OFF) else ""
    return _chaos(switch) + reaper + ("; schedules start no benchmarks" if switch.get(SCHEDULES_OFF) else "")


def _chaos(switch: Mapping[str, Any]) -> str:
    if switch["halted"]:
        how = "halted itself" if switch.get("itself") else "halted"
        return f"{how}: it decides nothing and hits nothing" + (" (and leashed)" if switch["leashed"] else "")
    if switch["leashed"]:
        return "leashed: it decides and records, and hits nothing"
    return "unleashed: it hits instances"


def who_and_why(switch: Mapping[str, Any]) -> str:
    """Returns who has halted the deployment, when, by which halt of many deployments, and why. Of one that has halted
    itself: when and why. Of one that runs, and of an older API: who changed the switch last; "" while the settings
    apply.
    """
    if own := switch.get("itself"):
        return f"{show.moment(own['at'])}: {own['why']}"
    last = {"by": switch.get("changed_by"), "at": switch.get("changed_at"), "reason": switch.get("reason")}
    change = (switch.get(HALT) or last) | {HALT_ID: switch.get(HALT_ID)}
    by, at, reason, halt_id = (str(change.get(key) or "") for key in ("by", "at", "reason", HALT_ID))
    words = ", ".join(filter(None, (who(by), show.moment(at) if at else "", halt_id and f"halt {halt_id}")))
    return ": ".join(filter(None, (words, reason)))
