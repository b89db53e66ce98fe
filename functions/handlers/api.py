"""The API's one function: every route, behind one resolver."""

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

from troop.api import (
    benchmarks,
    decisions,
    events,
    fleets,
    groups,
    health,
    policies,
    reports,
    simian,
    switch,
    terminations,
)
from troop.api.requests import READS_ITS_OWN, SIGNED, body_problem, caller_of
from troop.api.validation_messages import problem_of
from troop.values import spelling

ROUTES = (events, decisions, groups, policies, switch, health, terminations, simian, benchmarks, reports, fleets)

logger = Logger()
app = APIGatewayRestResolver(enable_validation=True)
for module in ROUTES:
    app.include_router(module.router)


NO_ROUTE = "there is no such path; units and events are spelled in it as the id that GET /groups and GET /events give"


def known_parameters(app: APIGatewayRestResolver, proceed: NextMiddleware) -> Response[Any]:
    """Refuses parameters of the query that the route does not have: an answer without the filter that was meant reads
    like one with it. The original Chaos Monkey's API takes any as a filter.
    """
    parameters = app.current_event.query_string_parameters or {}
    known = [str(parameter.alias) for parameter in app.context["_route"].dependant.query_params]
    for name in parameters:
        if name not in known and not name.startswith(SIGNED) and app.current_event.path not in READS_ITS_OWN:
            allowed = spelling(name, known) if known else "left out: this path takes none"
            return _refusal([{"where": f"query.{name}", "problem": f"is unknown, must be {allowed}"}])
    return proceed(app)


app.use(middlewares=[known_parameters])


class BadAnswerError(Exception):
    """A route's answer is not what its model says: a defect, not the caller's doing."""


@app.exception_handler(RequestValidationError)  # type: ignore[untyped-decorator]
def bad_request(error: RequestValidationError) -> Response[Any]:
    """What the models refuse, as a 400 that names the parameter and what is allowed."""
    problems = [
        {"where": ".".join(str(part) for part in problem["loc"]), "problem": problem_of(problem)}
        for problem in error.errors()
    ]
    if any(problem["loc"][0] == "response" for problem in error.errors()):
        raise BadAnswerError(problems)
    return _refusal(problems)


def _refusal(problems: list[dict[str, str]]) -> Response[Any]:
    message = "; ".join(f"{p['where']}: {p['problem']}" for p in problems)
    return Response(
        status_code=400,
        content_type=content_types.APPLICATION_JSON,
        body={"statusCode": 400, "message": message, "problems": problems},
    )


@app.not_found
def missing_route(error: NotFoundError) -> Response[Any]:
    """A route that does not exist, or what a route says it has not found."""
    message = NO_ROUTE if error.msg == NotFoundError().msg else error.msg
    return Response(
        status_code=404, content_type=content_types.APPLICATION_JSON, body={"statusCode": 404, "message": message}
    )


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_REST)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """API Gateway's proxy event -> its proxy answer. Each request leaves a line in the log that says whose it was."""
    began = perf_counter()
    try:
        problem = body_problem(event)
        answer = _answer(400, f"{problem}") if problem else app.resolve(event, context)
    except Exception:
        logger.exception("the request failed")
        answer = _answer(500, f"the request failed: try again, or look for request {context.aws_request_id} in the log")
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
