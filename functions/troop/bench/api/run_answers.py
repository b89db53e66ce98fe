"""Builds the answers that routes of benchmarks and of standing fleets (which are runs as well) share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aws_lambda_powertools.event_handler import Response, content_types
from pydantic import BaseModel

from troop.bench.aws.run_rows import BadCursor
from troop.bench.aws.run_table import RunPage
from troop.bench.definition.problems import Place, Problem, and_more
from troop.bench.flows.run_service import RunService
from troop.bench.records.record import Run
from troop.shared.api import cursors
from troop.shared.api.errors import answers, message_response

LONGEST_PAGE = 100

MOST_LISTED = 50
"""The most problems of one file in one answer: all of them could exceed the size of an answer."""

_OFF_OR_BUCKET = (
    "IAM does not allow it, the setting troop:benchmarks is false, or the {file} reads a bucket that the setting "
    "troop:allowed_buckets does not name"
)


def forbidden_file(file: str) -> dict[int, Any]:
    """Returns the ``responses`` for 403 of a route that takes a file; ``file`` names what the file describes."""
    return {403: {"description": _OFF_OR_BUCKET.format(file=file), "content": {}}}


def started(thing: str, file: str, model: type[BaseModel], others: str) -> dict[int, Any]:
    """Returns the ``responses`` of a route that starts something.

    Args:
        thing: what it starts.
        file: what its file describes.
        others: what else may have used the key.
    """
    content = {"application/json": {"model": model}}
    return answers("", 400) | {
        200: {"description": f"The {thing} that this key has already started", "content": content},
        202: {"description": f"Admitted, and about to start; the {thing} shows its progress", "content": content},
        **forbidden_file(file),
        409: {**answers("", 409)[409], "description": f"The key was already used for {others}, or with other files"},
    }


def page_of(service: RunService, limit: int, cursor: str | None, listing: list[str]) -> RunPage:
    """Returns a page of the runs of ``service``; its ``cursor`` is as callers see it.

    Args:
        listing: identifies the listing; a cursor is valid in one listing only.

    Raises:
        BadRequestError: the cursor does not belong to that listing.
    """
    with cursors.refused(BadCursor):
        page = service.page(limit, cursors.decode(cursor, listing))
    return replace(page, cursor=cursors.encode(page.cursor, listing))


def name_of_run(run: Run) -> str:
    """Returns the table and the key of a run, for :mod:`troop.shared.malformed`."""
    return f"Runs: {run.run}"


def json_response(status: int, model: BaseModel, headers: dict[str, Any] | None = None) -> Response[Any]:
    """Returns a model as an answer with the given status."""
    return Response(
        status_code=status,
        content_type=content_types.APPLICATION_JSON,
        body=model.model_dump(mode="json"),
        headers=headers,
    )


def refused(problems: Sequence[Problem]) -> Response[Any]:
    """Returns the error answer for a file with problems."""
    first = problems[:MOST_LISTED]
    text = "; ".join(filter(None, [*map(str, first), and_more(len(problems), MOST_LISTED)]))
    return message_response(400, text, problems=[_problem(problem) for problem in first])


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "where": ".".join(["body", *map(str, _in_body(problem.place))]),
        "problem": f"{problem.message}: must be {problem.allowed}",
        "allowed": problem.allowed,
        "loc": list(problem.place),
    }


def _in_body(place: Place) -> Place:
    """Returns a place within the body. Places are within the file, except those of the request's other parts."""
    return place if place[:1] in (("size",), ("set",), ("files",)) else ("definition", *place)
