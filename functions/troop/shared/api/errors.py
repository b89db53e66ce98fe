"""Defines the API's error answers, and describes them for routes."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.event_handler.exceptions import ServiceError
from pydantic import BaseModel, Field

from troop.shared.errors import ErrorCode, NoBenchmarksError
from troop.shared.wiring import environment


class CodedError(ServiceError):
    """An error answer with a code for programs."""

    def __init__(self, status: int, code: ErrorCode, message: str) -> None:
        self.code = code
        super().__init__(status, message)


class ProblemOut(BaseModel):
    """One problem in a request."""

    where: str = Field(description="The parameter, or the key of the body, such as body.probability")
    problem: str = Field(description="The value found, and what is allowed")
    allowed: str | None = Field(default=None, description="The allowed values, where they can be stated separately")
    loc: list[str | int] | None = Field(default=None, description="The path to the problem within a benchmark's file")


class ErrorOut(BaseModel):
    """An error answer."""

    statusCode: int
    message: str = Field(description="The problem, and what to do about it")
    code: ErrorCode | None = Field(default=None, description="For programs, where they distinguish errors of a status")
    problems: list[ProblemOut] | None = Field(default=None, description="With 400: each problem")


def message_response(status: int, message: str, **more: Any) -> Response[Any]:
    """Returns an error answer, as :class:`ErrorOut`."""
    body = {"statusCode": status, "message": message, **more}
    return Response(status_code=status, content_type=content_types.APPLICATION_JSON, body=body)


_REFUSALS = {
    400: "The request is invalid: the message states the problem and what is allowed",
    404: "Not found, or the name is not spelled as in the listing",
    410: "The group has no instance that can be terminated",
    409: "Another caller changed it: get it, and decide again",
    503: "An update still builds what the route needs: try again in some minutes",
}


def answers(description: str, *refusals: int) -> dict[int, Any]:
    """Returns a route's ``responses``: the description of 200, and the errors that the route can answer."""
    # API Gateway itself refuses requests without a valid signature or permission, with messages of its own.
    forbidden = {"description": "The signature is missing or wrong, or IAM does not allow it", "content": {}}
    refused = {code: {"description": _REFUSALS[code], "content": _ERROR} for code in refusals}
    return {200: {"description": description}, **refused, 403: forbidden}


_ERROR = {"application/json": {"model": ErrorOut}}

MALFORMED: dict[int, Any] = {
    409: {
        "description": "Somebody edited its item in the table, which cannot be read: the message says what to repair",
        "content": _ERROR,
    }
}
"""The entry of ``responses`` for a route that reads a single item."""

WITHOUT_BENCHMARKS: dict[int, Any] = {
    403: {"description": "IAM does not allow it, or the setting troop:benchmarks is false", "content": {}}
}
"""The entry of ``responses`` for a route that calls :func:`check_benchmarks`."""


def check_benchmarks() -> None:
    """Checks that the deployment runs benchmarks. Call it before reading the environment, whose variables exist only
    then.

    Raises:
        ServiceError: 403, the deployment does not run benchmarks.
    """
    if not environment.settings().benchmarks:
        raise ServiceError(403, str(NoBenchmarksError()))
