"""Creates the step of a tick."""

from __future__ import annotations

from functools import cache

from troop.chaos.flows.tick import Tick
from troop.chaos.wiring import tables
from troop.chaos.wiring.account import account_reader, salt
from troop.shared.wiring import environment


@cache
def tick() -> Tick:
    return Tick(
        reader=account_reader(),
        decisions=tables.decisions(),
        events=tables.events(),
        strays=tables.strays(),
        settle=tables.initial_switch().settle,
        salt=salt,
        clock=environment.now,
    )
