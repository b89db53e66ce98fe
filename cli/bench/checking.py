"""Checks that the commands for benchmarks and standing fleets make before they start anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from cli.bench import money as bench_money
from cli.bench.files import Source, WrongFileError
from cli.client.bench_client import problem_of
from cli.shared import settings_files, show
from cli.shared.errors import CliError
from cli.shared.yaml_files import NoYamlError
from troop.bench.admission.admission import growth_warnings, over_limits
from troop.bench.definition.definition import Benchmark
from troop.bench.definition.limits import Limits
from troop.bench.definition.plan import Plan

Accept = Annotated[
    bool, typer.Option("--accept-unknown-prices", help="Continue if the price of some nodes is unknown.")
]


@contextmanager
def json_errors(document: bool) -> Iterator[None]:
    """Prints an error as a JSON document, too, because programs read only stdout.

    Raises:
        CliError: the error, unchanged.
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
    """Prints the estimated cost before anything is staged, so that nothing too expensive is uploaded.

    With a key the run or fleet may already be on record, so the estimate does not stop the command.

    Raises:
        CliError: without a key, if the estimate fails or says that the request would be refused.
    """
    try:
        cost_estimate = estimate()
    except CliError as error:
        if key is None:
            raise
        show.note(f"no cost estimate: {error}")
        return
    for warning in cost_estimate["warnings"]:
        show.note(warning)
    if cost_estimate["problems"] and key is None:
        raise source.refused([problem_of(problem) for problem in cost_estimate["problems"]])
    tell(bench_money.line(cost_estimate))


def verdict(warnings: Sequence[str]) -> str:
    """Returns the verdict on a file without problems."""
    return "valid, but artifacts are missing or differ" if warnings else "valid"


def beyond_limits(benchmark: Benchmark, plan: Plan) -> list[str]:
    """Lists what the settings of this checkout's cdk.json would refuse, and nodes that they would not give; nothing
    without a readable cdk.json.

    A deployment's settings can differ: they also come from its stage and its command line.
    """
    try:
        limits = Limits.from_settings(settings_files.load(None).chaos)
    except CliError:
        return []
    over = [f"this checkout's cdk.json would refuse it: {one}" for one in over_limits(benchmark, plan, limits)]
    return [*over, *growth_warnings(benchmark, limits)]


def accepting(changes: Mapping[str, Any], accept: bool) -> dict[str, Any]:
    """Returns the changes, with the key that --accept-unknown-prices sets."""
    return {**changes, **({"accept_unknown_prices": True} if accept else {})}
