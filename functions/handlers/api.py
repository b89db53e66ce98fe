"""Serves the API: one function with every route."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.api import benchmarks, fleets, history, live, schedules
from troop.bench.api.run_answers import MOST_LISTED, refused
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.flows.fleet_service import FleetOverError, NoQueueError, ScaledAtOnceError
from troop.bench.flows.run_service import BucketError, OtherRunError
from troop.chaos.api import changes, decisions, events, groups, health, policies, simian, switch, terminations
from troop.chaos.api.terminations import without_kind
from troop.report.api import reports
from troop.risks.api import risks
from troop.shared.api.errors import CodedError, message_response
from troop.shared.api.requests import READS_ITS_OWN, SIGNED, body_problem, caller_of, command_problem
from troop.shared.api.validation_messages import problem_of
from troop.shared.errors import ErrorCode
from troop.shared.malformed import MalformedItemError
from troop.shared.values import spelling
from troop.shared.version import VERSION, VERSION_HEADER

ROUTES = (
    events,
    decisions,
    groups,
    policies,
    changes,
    risks,
    switch,
    health,
    terminations,
    simian,
    benchmarks,
    schedules,
    history,
    reports,
    live,
    fleets,
)

logger = Logger()
app = APIGatewayRestResolver(enable_validation=True)
for module in ROUTES:
    app.include_router(module.router)


NO_ROUTE = "there is no such path; for units and events, use the id that GET /groups and GET /events return"


def known_parameters(app: APIGatewayRestResolver, proceed: NextMiddleware) -> Response[Any]:
    """Refuses unknown parameters of the query: a response without the intended filter looks like one with it. The
    original Chaos Monkey's API accepts any parameter as a filter.
    """
    parameters = app.current_event.query_string_parameters or {}
    known = [str(parameter.alias) for parameter in app.context["_route"].dependant.query_params]
    for name in parameters:
        if name not in known and not name.startswith(SIGNED) and app.current_event.path not in READS_ITS_OWN:
            allowed = spelling(name, known) if known else "left out: this path takes no parameters"
            return _refusal([{"where": f"query.{name}", "problem": f"is unknown, must be {allowed}"}])
    return proceed(app)


app.use(middlewares=[known_parameters])


class BadAnswerError(Exception):
    """A route's response does not match its model: a defect, not the caller's error."""


@app.exception_handler(RequestValidationError)  # type: ignore[untyped-decorator]
def bad_request(error: RequestValidationError) -> Response[Any]:
    """Returns a 400 for a request that the models refuse; it names the parameter and the allowed values."""
    errors = error.errors()
    problems = [
        {"where": ".".join(str(part) for part in without_kind(problem["loc"])), "problem": problem_of(problem)}
        for problem in errors[:MOST_LISTED]
    ]
    if any(problem["loc"][0] == "response" for problem in errors):
        raise BadAnswerError(problems)
    return _refusal(problems, len(errors) - len(problems))


@app.exception_handler(CodedError)  # type: ignore[untyped-decorator]
def coded(error: CodedError) -> Response[Any]:
    """Returns an error with its code."""
    return message_response(error.status_code, str(error.msg), code=error.code)


@app.exception_handler(MalformedItemError)  # type: ignore[untyped-decorator]
def malformed_item(error: MalformedItemError) -> Response[Any]:
    """Returns a 409 for a single item that somebody edited so that it cannot be read."""
    return message_response(409, str(error), code=ErrorCode.MALFORMED_ITEM)


@app.exception_handler(BadBenchmarkError)  # type: ignore[untyped-decorator]
def bad_file(error: BadBenchmarkError) -> Response[Any]:
    """Returns a 400 for the file of a benchmark or a fleet, with all its problems."""
    return refused(error.problems)


@app.exception_handler(BucketError)  # type: ignore[untyped-decorator]
def forbidden_bucket(error: BucketError) -> Response[Any]:
    """Returns a 403 for a file that reads a bucket which the deployment does not allow."""
    return message_response(403, str(error))


@app.exception_handler([OtherRunError, FleetOverError, NoQueueError, ScaledAtOnceError])  # type: ignore[untyped-decorator]
def conflict(error: Exception) -> Response[Any]:
    """Returns a 409 for what contradicts the state of a run or a fleet."""
    return message_response(409, str(error))


def _refusal(problems: list[dict[str, str]], more: int = 0) -> Response[Any]:
    message = "; ".join(f"{p['where']}: {p['problem']}" for p in problems)
    return message_response(400, message + (f"; and {more:,} more" if more else ""), problems=problems)


@app.not_found
def missing_route(error: NotFoundError) -> Response[Any]:
    """Returns a 404 for a route that does not exist, or for what a route has not found."""
    return message_response(404, NO_ROUTE if error.msg == NotFoundError().msg else str(error.msg))


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_REST)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Converts API Gateway's proxy event to its proxy response. Logs a line for each request, with the caller."""
    began = perf_counter()
    try:
        problem = command_problem(event) or body_problem(event)
        answer = _answer(400, f"{problem}") if problem else app.resolve(event, context)
    except Exception:
        logger.exception("the request failed")
        answer = _answer(500, f"the request failed: try again, or look for request {context.aws_request_id} in the log")
    answer["multiValueHeaders"][VERSION_HEADER] = [VERSION]
    request = {"method": event.get("httpMethod"), "path": event.get("path"), "caller": caller_of(event)}
    took = round((perf_counter() - began) * 1000)
    logger.info("request", extra=request | {"status": answer["statusCode"], "duration_ms": took})
    return answer


def _answer(status: int, message: str) -> dict[str, Any]:
    return {
        "statusCode": status,
        "multiValueHeaders": {"Content-Type": [content_types.APPLICATION_JSON]},
        "body": json.dumps({"statusCode": status, "message": message}),
        "isBase64Encoded": False,
    }
