"""Serves the routes of reports: ``GET`` and ``POST /benchmarks/{run}/report``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, Field

from troop.bench.api.benchmarks import RunId, no_run
from troop.bench.api.run_answers import json_response
from troop.bench.definition import names
from troop.report.flows.report_links import NoReportError, ReportLinks
from troop.report.wiring import links
from troop.shared.api.errors import WITHOUT_BENCHMARKS, answers, check_benchmarks, message_response
from troop.shared.api.models import Moment
from troop.shared.errors import MissingRunError, NoStoredResultsError, NotEndedError

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

RETRY_SECONDS = 5


class ReportFormat(StrEnum):
    html = "html"
    json = "json"


_FILES = {ReportFormat.html: names.REPORT_HTML, ReportFormat.json: names.REPORT_JSON}


class ReportOut(BaseModel):
    """A report that exists."""

    run: str
    format: ReportFormat
    created_at: Moment
    etag: str = Field(description="Changes whenever the report is made again")
    size: int = Field(description="The size in bytes")


class ReportRequestOut(BaseModel):
    """A report that is being made."""

    run: str
    requested_at: Moment = Field(
        description="When the report was first requested: a report created later is the new one"
    )


_NOT_ENDED = {**answers("", 409)[409], "description": "The run has not ended: its report is made at its end"}
_READY: dict[int, Any] = {
    302: {
        "description": "The header Location gives the report's address, valid for at most an hour: fetch it "
        "without a signature",
        "content": {"application/json": {"model": ReportOut}},
    },
    **{code: refusal for code, refusal in answers("", 400, 404).items() if code != 200},
    404: {
        **answers("", 404)[404],
        "description": "There is no such run, or it has no report. Within a few minutes of a run's end, retry "
        "after the seconds of the header Retry-After",
    },
    409: _NOT_ENDED,
    **WITHOUT_BENCHMARKS,
}
_REQUESTED: dict[int, Any] = {
    202: {
        "description": "The report is being made",
        "content": {"application/json": {"model": ReportRequestOut}},
    },
    **{code: refusal for code, refusal in answers("", 400, 404).items() if code != 200},
    404: {**answers("", 404)[404], "description": "There is no such run, or its results are no longer stored"},
    409: _NOT_ENDED,
    403: _READY[403],
}


@router.get("/benchmarks/<run>/report", operation_id="get_report", summary="The report of a run", responses=_READY)
def get_report(
    run: RunId,
    format: Annotated[ReportFormat, Query(description="html for people, json for programs")] = ReportFormat.html,
) -> Response[Any]:
    """Redirects to the report in the results bucket: one self-contained page, or one JSON document. The caller needs
    no rights to S3. The address is signed: anyone who has it can read this one file for at most an hour. Costs 1 item
    and 1 call to S3.
    """
    try:
        link = _links().find(run, _FILES[format])
    except NoReportError as missing:
        return _with(message_response(404, str(missing)), {"Retry-After": str(RETRY_SECONDS)} if missing.soon else {})
    except NotEndedError as error:
        return message_response(409, str(error))
    except MissingRunError:
        raise no_run(run) from None
    stored = link.stored
    its = ReportOut(run=run, format=format, created_at=stored.at, etag=stored.etag, size=stored.size)
    return json_response(302, its, {"Location": link.address, "Cache-Control": "no-store"})


@router.post(
    "/benchmarks/<run>/report", operation_id="make_report", summary="Make a run's report again", responses=_REQUESTED
)
def make_report(run: RunId) -> Response[Any]:
    """Makes the report again from the run's stored results, with the deployed version of Troop. Takes some seconds, or
    some minutes for very many cells. The new report then replaces the old one, and its etag differs; nothing else
    changes. A repeated request within a minute returns the first answer and makes no second report.

    Costs 1 item, 1 update, 1 call to S3 and a call of a function, which reads the stored results and writes three
    objects.
    """
    try:
        requested_at = _links().again(run)
    except NotEndedError as error:
        return message_response(409, str(error))
    except NoStoredResultsError as error:
        return message_response(404, str(error))
    except MissingRunError:
        raise no_run(run) from None
    return json_response(202, ReportRequestOut(run=run, requested_at=requested_at))


def _links() -> ReportLinks:
    check_benchmarks()
    return links.report_links()


def _with(answer: Response[Any], headers: dict[str, str]) -> Response[Any]:
    answer.headers.update(headers)
    return answer
