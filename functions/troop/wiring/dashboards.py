"""Creates the widgets of dashboards."""

from __future__ import annotations

from functools import cache

from troop.aws.bench.live_claims import LiveClaims
from troop.aws.bench.live_store import LiveStore
from troop.aws.bench.runs import RunTable
from troop.aws.clients import quick_client
from troop.environment import Variable
from troop.flows.bench.live import LiveRuns
from troop.flows.widgets import Widgets
from troop.wiring import chaos_api, chaos_tables, environment
from troop.wiring.environment import settings, variable


@cache
def widgets() -> Widgets:
    """Creates the widgets, with clients that give up early: a viewer should soon see that AWS does not answer."""
    return Widgets(
        settings=settings(),
        events=chaos_tables.event_queries(quick_client),
        decisions=chaos_tables.decision_queries(quick_client),
        units=chaos_api.units(quick_client),
        state=chaos_tables.state(quick_client),
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
