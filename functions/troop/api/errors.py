"""What the API answers when it refuses, and how routes say so in their description."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class ProblemOut(BaseModel):
    """One thing that is wrong with a request."""

    where: str = Field(description="The parameter, or the key of the body, such as body.probability")
    problem: str = Field(description="What was found there, and what is allowed")
    allowed: str | None = Field(default=None, description="What is, where that can be said by itself")
    loc: list[str | int] | None = Field(default=None, description="In a benchmark's file: the way to where it is")


class ErrorOut(BaseModel):
    """A refusal."""

    statusCode: int
    message: str = Field(description="What is wrong, and what to do about it")
    problems: list[ProblemOut] | None = Field(default=None, description="With 400: each thing that is wrong")


_REFUSALS = {
    400: "Something in the request is not allowed: the message says what is",
    404: "There is no such thing, or its name is not spelled as the listing gives it",
    410: "The group has no instance that could be terminated",
    409: "Somebody else has changed it: get it, and decide again",
}


def answers(what: str, *refusals: int) -> dict[int, Any]:
    """For a route's ``responses``: what 200 brings, and the refusals it can give."""
    # API Gateway itself turns away whoever has no valid signature, or no permission, in words of its own.
    forbidden = {"description": "The signature is missing or wrong, or IAM does not allow it", "content": {}}
    refused = {code: {"description": _REFUSALS[code], "content": _ERROR} for code in refusals}
    return {200: {"description": what}, **refused, 403: forbidden}


_ERROR = {"application/json": {"model": ErrorOut}}
