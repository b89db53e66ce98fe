"""Creates the widgets of dashboards."""

from __future__ import annotations

from functools import cache

from troop.bench.aws.live_claims import LiveClaims
from troop.bench.aws.live_store import LiveStore
from troop.bench.aws.run_table import RunTable
from troop.bench.flows.live_runs import LiveRuns
from troop.chaos.wiring import services, tables
from troop.dashboard.flows.widgets import Widgets
from troop.shared.aws.clients import quick_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


@cache
def widgets() -> Widgets:
    """Creates the widgets, with clients that give up early: a viewer should soon see that AWS does not answer."""
    return Widgets(
        settings=settings(),
        events=tables.event_queries(quick_client),
        decisions=tables.decision_queries(quick_client),
        units=services.units(quick_client),
        state=tables.state(quick_client),
        runs=_runs() if settings().benchmarks else None,
        live=_live if settings().benchmarks else None,
    )


def _runs() -> RunTable:
    return RunTable(quick_client("dynamodb"), variable(Variable.RUNS_TABLE), environment.sleep)


@cache
def _live() -> LiveRuns:
    dynamodb, bucket = quick_client("dynamodb"), variable(Variable.RESULTS_BUCKET)
    claims = LiveClaims(dynamodb, variable(Variable.STATE_TABLE), environment.sleep)
    return LiveRuns(_runs(), LiveStore(quick_client("s3"), bucket), claims, environment.now)
