"""Creates what finds reports for the API, and has them made."""

from __future__ import annotations

from functools import cache

from troop.bench.aws.function_calls import ReportCalls
from troop.bench.wiring import services, store
from troop.report.aws.report_claims import ReportClaims
from troop.report.flows.report_links import ReportLinks
from troop.shared.aws.clients import client, presigning_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


@cache
def report_links() -> ReportLinks:
    return ReportLinks(
        runs=services.run_service(),
        stored=store.stored_runs(presigning_client),
        calls=ReportCalls(client("lambda"), variable(Variable.REPORT_FUNCTION)),
        claims=ReportClaims(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep),
        clock=environment.now,
    )
