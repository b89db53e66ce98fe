"""Creates the report of an ended run: at the end of its teardown, and on each request by the API."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.report.wiring import reports
from troop.shared.aws.logs import step
from troop.shared.errors import NoStoredResultsError

logger = Logger()


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Creates a report: ``{"run"}`` -> ``{"run", "made"}``; made is false without a report: for a standing fleet, and
    for a run whose results have expired.
    """
    run = event["run"]
    try:
        report = reports.reports().make(run)
    except NoStoredResultsError as error:  # a retry would not help
        logger.warning("no report", run=run, why=str(error))
        report = None
    if report is not None:
        logger.info(
            "report",
            run=run,
            cells=report.cells,
            findings=report.findings,
            json_bytes=report.json_bytes,
            html_bytes=report.html_bytes,
            changed_from=report.changed_from,
        )
    return {"run": run, "made": report is not None}
