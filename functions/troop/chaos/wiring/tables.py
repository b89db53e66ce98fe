"""Creates the tables of chaos. ``client_of``: returns a service's client."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

from troop.chaos.aws.change_table import ChangeTable
from troop.chaos.aws.claim_transaction import ClaimTransaction
from troop.chaos.aws.decision_queries import DecisionQueries
from troop.chaos.aws.decision_table import DecisionTable
from troop.chaos.aws.earlier_tables import EarlierTables
from troop.chaos.aws.event_queries import EventQueries
from troop.chaos.aws.event_table import EventTable
from troop.chaos.aws.event_walk import EventWalk
from troop.chaos.aws.state_table import PolicyTable, StateTable
from troop.chaos.aws.stray_table import StrayTable
from troop.chaos.flows.initial_switch import InitialSwitch
from troop.shared.aws.clients import client, quick_client
from troop.shared.tables import CHANGES, DECISIONS, EVENTS, GROUP_TAGS, RUNS, STATE
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


def events() -> EventTable:
    return EventTable(
        client=client("dynamodb"),
        table=variable(Variable.EVENTS_TABLE),
        state=variable(Variable.STATE_TABLE),
        sleep=environment.sleep,
        halt_after=settings().halt_after_broken,
    )


@cache
def event_queries(client_of: Callable[[str], Any] = client) -> EventQueries:
    return EventQueries(client_of("dynamodb"), variable(Variable.EVENTS_TABLE))


@cache
def event_walk() -> EventWalk:
    return EventWalk(client("dynamodb"), variable(Variable.EVENTS_TABLE))


def decisions() -> DecisionTable:
    retention = timedelta(days=settings().decision_retention_days)
    return DecisionTable(client("dynamodb"), variable(Variable.DECISIONS_TABLE), retention, environment.sleep)


@cache
def decision_queries(client_of: Callable[[str], Any] = client) -> DecisionQueries:
    return DecisionQueries(client_of("dynamodb"), variable(Variable.DECISIONS_TABLE))


def policies(client_of: Callable[[str], Any] = client) -> PolicyTable:
    return PolicyTable(client_of("dynamodb"), variable(Variable.GROUP_TAGS_TABLE))


def state(client_of: Callable[[str], Any] = client) -> StateTable:
    return StateTable(client_of("dynamodb"), variable(Variable.STATE_TABLE), settings().leashed)


def strays() -> StrayTable:
    return StrayTable(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep)


_NAMES = {
    GROUP_TAGS: Variable.GROUP_TAGS_TABLE,
    EVENTS: Variable.EVENTS_TABLE,
    STATE: Variable.STATE_TABLE,
    DECISIONS: Variable.DECISIONS_TABLE,
    CHANGES: Variable.CHANGES_TABLE,
    RUNS: Variable.RUNS_TABLE,
}


def names() -> dict[str, str]:
    """Returns the names of the deployment's tables by what they hold."""
    return {table.name: variable(name) for table, name in _NAMES.items() if table is not RUNS or settings().benchmarks}


def earlier_tables() -> EarlierTables:
    own, tagging = names(), quick_client("resourcegroupstaggingapi")
    return EarlierTables(tagging, quick_client("dynamodb"), settings().deployment, own.keys(), set(own.values()))


def initial_switch() -> InitialSwitch:
    # Few deployments ever need the clients of these tables.
    return InitialSwitch(state(), lambda: earlier_tables().undecided(), environment.now)


def changes(client_of: Callable[[str], Any] = client) -> ChangeTable:
    return ChangeTable(client_of("dynamodb"), variable(Variable.CHANGES_TABLE))


def claims() -> ClaimTransaction:
    return ClaimTransaction(
        client=client("dynamodb"),
        events=variable(Variable.EVENTS_TABLE),
        state=variable(Variable.STATE_TABLE),
        group_tags=variable(Variable.GROUP_TAGS_TABLE),
        leashed=settings().leashed,
        sleep=environment.sleep,
    )
