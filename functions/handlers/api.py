"""The API's one function: every route, behind one resolver."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.api import events

logger = Logger()
app = APIGatewayRestResolver(enable_validation=True)
app.include_router(events.router)


@app.exception_handler(RequestValidationError)  # type: ignore[untyped-decorator]
def bad_request(error: RequestValidationError) -> Response[Any]:
    """What the models refuse, as a 400 that names the parameter and what is allowed."""
    problems = [
        {"where": ".".join(str(part) for part in problem["loc"]), "problem": problem["msg"]}
        for problem in error.errors()
    ]
    message = "; ".join(f"{p['where']}: {p['problem']}" for p in problems)
    return Response(
        status_code=400,
        content_type=content_types.APPLICATION_JSON,
        body={"statusCode": 400, "message": message, "problems": problems},
    )


@logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_REST)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """API Gateway's proxy event -> its proxy answer."""
    return app.resolve(event, context)
