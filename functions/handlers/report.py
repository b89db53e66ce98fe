"""Makes the report of a run that has ended: at the end of its teardown, and whenever the API is asked for it anew."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.aws.logs import step
from troop.errors import NothingKeptError
from troop.wiring import reports

logger = Logger()


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"run"}`` -> ``{"run", "made"}``; made is false where there is no report: of a standing fleet, and of a run of
    which nothing is kept any more.
    """
    run = event["run"]
    try:
        made = reports.reports().make(run)
    except NothingKeptError as error:  # and another try finds no more
        logger.warning("no report", run=run, why=str(error))
        made = None
    if made is not None:
        logger.info(
            "report",
            run=run,
            cells=made.cells,
            findings=made.findings,
            json_bytes=made.json_bytes,
            html_bytes=made.html_bytes,
        )
    return {"run": run, "made": made is not None}
