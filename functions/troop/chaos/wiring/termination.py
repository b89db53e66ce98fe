"""Creates the step of a termination."""

from __future__ import annotations

from functools import cache

from troop.chaos.aws.terminator import Terminator
from troop.chaos.flows.termination import Termination
from troop.chaos.wiring import tables
from troop.chaos.wiring.account import account_reader, salt
from troop.faults import services
from troop.shared.aws.clients import termination_client
from troop.shared.wiring import environment


@cache
def termination() -> Termination:
    return Termination(
        reader=account_reader(),
        claims=tables.claims(),
        decisions=tables.decisions(),
        events=tables.events(),
        terminator=Terminator({service: termination_client(service) for service in services()}),
        salt=salt,
        clock=environment.now,
    )
