"""What the commands of benchmarks and of standing fleets have in common before anything is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from cli import bench_money, settings_files, show
from cli.bench_client import problem_of
from cli.bench_files import Source, WrongFileError
from cli.errors import CliError
from cli.yaml_files import NoYamlError
from troop.bench.admission import over_limits
from troop.bench.definition import Benchmark
from troop.bench.limits import Limits
from troop.bench.plan import Plan

Accept = Annotated[
    bool, typer.Option("--accept-unknown-prices", help="Also where the price of some nodes cannot be had.")
]


@contextmanager
def json_errors(document: bool) -> Iterator[None]:
    """Whatever goes wrong is one document on stdout as well, where that is wanted: a program reads nothing else.

    Raises:
        CliError: as it came.
    """
    try:
        yield
    except CliError as error:
        if document:
            more = {"more": error.more} if isinstance(error, WrongFileError) and error.more else {}
            show.document({"valid": False, "problems": _problems(error), **more})
        raise


def _problems(error: CliError) -> list[dict[str, Any]]:
    if isinstance(error, WrongFileError):
        return [problem.as_json() for problem in error.problems]
    line = error.line if isinstance(error, NoYamlError) else None
    return [{"line": line, "where": "", "message": str(error), "allowed": ""}]


def expect(
    estimate: Callable[[], Mapping[str, Any]], source: Source, key: str | None, tell: Callable[[str], None]
) -> None:
    """Tells what something would cost before anything of it is staged: what costs too much should not be uploaded
    first. With a key it may be on record already, and that is what counts, whatever would be said of it now.

    Raises:
        CliError: without a key; it would be refused, or it cannot be told what it would cost.
    """
    try:
        cost_estimate = estimate()
    except CliError as error:
        if key is None:
            raise
        show.note(f"what it would cost is not known: {error}")
        return
    for warning in cost_estimate["warnings"]:
        show.note(warning)
    if cost_estimate["problems"] and key is None:
        raise source.refused([problem_of(problem) for problem in cost_estimate["problems"]])
    tell(bench_money.line(cost_estimate))


def verdict(warnings: Sequence[str]) -> str:
    """On a file in which nothing is wrong."""
    return "in order, but not what it needs" if warnings else "in order"


def beyond_limits(benchmark: Benchmark, plan: Plan) -> list[str]:
    """Says what the settings of this checkout's cdk.json would refuse. A deployment can have others: its stage's, or
    those of its command line. Empty without a cdk.json that can be read.
    """
    try:
        limits = Limits.of(settings_files.load(None).chaos)
    except CliError:
        return []
    return [f"this checkout's cdk.json would refuse it: {one}" for one in over_limits(benchmark, plan, limits)]


def accepting(changes: Mapping[str, Any], accept: bool) -> dict[str, Any]:
    """The changes, and what --accept-unknown-prices says of the file."""
    return {**changes, **({"accept_unknown_prices": True} if accept else {})}
