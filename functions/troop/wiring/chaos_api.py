"""Creates what the API needs of chaos, to read and to change it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from troop.aws.chaos.edits import Edits
from troop.aws.chaos.on_demand_executions import Starts
from troop.aws.chaos.request_dedup import Repeats
from troop.aws.clients import client
from troop.environment import Variable
from troop.flows.chaos.edits import Editor
from troop.flows.chaos.on_demand import OnDemand
from troop.flows.chaos.units import Units
from troop.wiring import chaos_tables, environment
from troop.wiring.chaos_account import account_reader
from troop.wiring.environment import settings, variable


@cache
def on_demand() -> OnDemand:
    return OnDemand(
        reader=account_reader(),
        claims=chaos_tables.claims(),
        events=chaos_tables.events(),
        starts=Starts(client("stepfunctions"), variable(Variable.ON_DEMAND_MACHINE)),
        settle=chaos_tables.initial_switch().settle,
        clock=environment.now,
    )


@cache
def repeats() -> Repeats:
    return Repeats(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep)


@cache
def units(of: Callable[[str], Any] = client) -> Units:
    """Creates the reader of units. ``of``: returns a service's client."""
    return Units(
        settings=settings(),
        autoscaling=of("autoscaling"),
        policies=chaos_tables.policies(of),
        state=chaos_tables.state(of),
        decisions=chaos_tables.decision_queries(of),
        events=chaos_tables.event_queries(of),
        changes=chaos_tables.changes(of),
    )


@cache
def editor() -> Editor:
    edits = Edits(
        client("dynamodb"),
        variable(Variable.GROUP_TAGS_TABLE),
        variable(Variable.STATE_TABLE),
        chaos_tables.changes(),
        environment.sleep,
    )
    initial = chaos_tables.initial_switch()
    return Editor(chaos_tables.policies(), chaos_tables.state(), edits, initial, environment.now)
