"""Routes of reports: ``GET`` and ``POST /benchmarks/{run}/report``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, Field

from troop.api.benchmarks import RunId, no_run
from troop.api.errors import answers
from troop.api.models import Moment
from troop.api.run_answers import FORBIDDEN, check_switched_on, json_response, message_response
from troop.bench import names
from troop.errors import MissingRunError, NoStoredResultsError, NotEndedError
from troop.flows.bench.report_links import NoReportError, ReportLinks
from troop.wiring import bench_api

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

RETRY_SECONDS = 5


class ReportFormat(StrEnum):
    html = "html"
    json = "json"


_FILES = {ReportFormat.html: names.REPORT_HTML, ReportFormat.json: names.REPORT_JSON}


class ReportOut(BaseModel):
    """A report that is there."""

    run: str
    format: ReportFormat
    created_at: Moment
    etag: str = Field(description="Another one when it was made again")
    size: int = Field(description="Bytes")


class ReportRequestOut(BaseModel):
    """A report that is being made."""

    run: str
    requested_at: Moment = Field(description="When it was first asked for: a report that was made later is the new one")


_NOT_ENDED = {**answers("", 409)[409], "description": "The run has not ended: its report is made when it has"}
_READY: dict[int, Any] = {
    302: {
        "description": "It is where the header Location says, for at most an hour: fetch it there, without a signature",
        "content": {"application/json": {"model": ReportOut}},
    },
    **{code: refusal for code, refusal in answers("", 400, 404).items() if code != 200},
    404: {
        **answers("", 404)[404],
        "description": "There is no such run; or it has no report. Right after a run's end that may take some minutes: "
        "then the header Retry-After is there",
    },
    409: _NOT_ENDED,
    **FORBIDDEN,
}
_REQUESTED: dict[int, Any] = {
    202: {
        "description": "It is being made",
        "content": {"application/json": {"model": ReportRequestOut}},
    },
    **{code: refusal for code, refusal in answers("", 400, 404).items() if code != 200},
    404: {**answers("", 404)[404], "description": "There is no such run, or nothing is kept of it any more"},
    409: _NOT_ENDED,
    403: _READY[403],
}


@router.get("/benchmarks/<run>/report", operation_id="get_report", summary="The report of a run", responses=_READY)
def get_report(
    run: RunId,
    format: Annotated[ReportFormat, Query(description="html for people, json for programs")] = ReportFormat.html,
) -> Response[Any]:
    """Leads to one self-contained page, or one document, in the results bucket. Whoever may ask needs no rights to S3:
    the address is signed, and as good as a key to this one file for at most an hour. Costs 1 item and 1 call to S3.
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
    """Of what is kept of the run, by the version that is deployed now. That takes some seconds, of very many cells some
    minutes; then the new report stands in place of the one before, and its etag differs. Nothing else changes. Asked
    for again within a minute, it is not made again: the answer is that of the first time. Costs 1 item, 1 update, 1
    call to S3 and a call of a function, which reads what is kept of the run, and writes three objects.
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
    check_switched_on()
    return bench_api.report_links()


def _with(answer: Response[Any], headers: dict[str, str]) -> Response[Any]:
    answer.headers.update(headers)
    return answer
