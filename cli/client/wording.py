"""Names commands in place of routes: the API's messages are for programs that call it, too. Pure."""

from __future__ import annotations

import re

_COMMANDS = (
    (r"GET /groups lists groups and their units", "`troop groups` lists groups and their units"),
    (r"GET /events lists the events", "`troop events` lists the events"),
    (r"GET /benchmarks/schedules lists them", "`troop bench schedules` lists them"),
    (r"GET /benchmarks lists the runs", "`troop bench list` lists the runs"),
    (r"GET /fleets lists the fleets", "`troop fleet list` lists the fleets"),
    (r"GET /risks lists those on record", "`troop risks` lists those on record"),
    (r"POST /benchmarks/([\w.-]+)/report makes it", r"`troop bench report \1 --again` makes it"),
    (r": change /groups/\S+", ": change that unit"),
    (r"; POST /benchmarks/artifacts returns the address", ""),
)
"""What the API says, and what a person types."""


def for_people(message: str) -> str:
    """Returns a message of the API with commands in place of its routes."""
    for advice, command in _COMMANDS:
        message = re.sub(advice, command, message)
    return message
