"""Creates what the API needs of chaos, to read and to change it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from troop.chaos.aws.change_writer import ChangeWriter
from troop.chaos.aws.on_demand_executions import OnDemandExecutions
from troop.chaos.aws.request_dedup import RequestDedup
from troop.chaos.flows.editor import Editor
from troop.chaos.flows.on_demand import OnDemand
from troop.chaos.flows.under_load import UnderLoad
from troop.chaos.flows.units import Units
from troop.chaos.wiring import tables
from troop.chaos.wiring.account import account_reader
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


@cache
def on_demand() -> OnDemand:
    return _on_demand(tables.initial_switch().settle)


def _on_demand(settle: Callable[[], None]) -> OnDemand:
    return OnDemand(
        reader=account_reader(),
        claims=tables.claims(),
        events=tables.events(),
        executions=OnDemandExecutions(client("stepfunctions"), variable(Variable.ON_DEMAND_MACHINE)),
        settle=settle,
        clock=environment.now,
    )


@cache
def under_load() -> UnderLoad:
    # Permits settle the switch, so this function need not search for earlier tables.
    return UnderLoad(_on_demand(lambda: None), tables.events())


@cache
def request_dedup() -> RequestDedup:
    return RequestDedup(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep)


@cache
def units(client_of: Callable[[str], Any] = client) -> Units:
    """Creates the reader of units. ``client_of``: returns a service's client."""
    return Units(
        settings=settings(),
        autoscaling=client_of("autoscaling"),
        policies=tables.policies(client_of),
        state=tables.state(client_of),
        decisions=tables.decision_queries(client_of),
        events=tables.event_queries(client_of),
        changes=tables.changes(client_of),
    )


@cache
def editor() -> Editor:
    writer = ChangeWriter(
        client("dynamodb"),
        variable(Variable.GROUP_TAGS_TABLE),
        variable(Variable.STATE_TABLE),
        tables.changes(),
        environment.sleep,
    )
    initial = tables.initial_switch()
    return Editor(tables.policies(), tables.state(), writer, initial, environment.now)
