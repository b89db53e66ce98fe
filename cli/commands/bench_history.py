"""Implements `troop bench history`: a benchmark's figures over its recorded runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.bench import follow as bench_follow
from cli.bench import history as bench_history
from cli.bench.history import Figure, Period, Series
from cli.client.bench_client import BenchClient
from cli.client.connection import connection
from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.report.assets import chart_script
from troop.report.html import history_page
from troop.shared import zones
from troop.shared.errors import TroopError

LISTED = 10_000
"""The most runs of all benchmarks in which those of this one are searched."""


def history(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a benchmark, as `troop bench list` shows it.")],
    figure: Annotated[Figure, typer.Option("--figure", help="The figure to show.")] = Figure.THROUGHPUT,
    by: Annotated[Period | None, typer.Option("--by", help="Group the runs by hour of the day or by weekday.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Read at most this many runs, the newest.")] = 100,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="Time zone, such as Europe/Berlin; default: local.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write it as a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, with both groupings.")] = False,
) -> None:
    """Show a figure of a benchmark over its recorded runs.

    The oldest run comes first. Only cells that succeeded count. Reads each run: one request, and one for each cell
    whose results do not fit.
    """
    where = _zone(zone)
    every = bench_history.series(_views(connection(ctx).client.benchmarks, name, limit), figure, where)
    if not every:
        raise CliError(
            Exit.FAILED,
            f"no run of {name!r} has a cell that succeeded and has this figure: `troop bench list` lists the runs",
        )
    if html is not None:
        local = datetime.now().astimezone().tzname() or "of this machine"
        _write(html, bench_history.page_values(name, figure, zone or local, every))
    if as_json:
        show.document(
            bench_history.document(name, figure, zone or datetime.now().astimezone().tzname() or "local", every)
        )
        return
    show.say(f"{name}: {figure.value}, {figure.unit}")
    for one in every:
        if by is None:
            _values(one, figure)
        else:
            _groups(one, figure, by)


def _zone(name: str | None) -> zones.Zone | None:
    try:
        return None if name is None else zones.zone(name)
    except zones.UnknownZoneError:
        raise CliError(
            Exit.USAGE, f"--zone {name}: must be a time zone of the IANA database, such as Europe/Berlin or UTC"
        ) from None


def _views(client: BenchClient, name: str, limit: int) -> list[dict[str, Any]]:
    """Returns the newest runs of a benchmark that have ended."""
    ended = [run["run"] for run in client.runs(LISTED) if run["name"] == name and run["ended_at"]]
    return [bench_follow.complete(client, client.run(run, resources=False)) for run in ended[:limit]]


def _write(path: Path, history: dict[str, Any]) -> None:
    try:
        path.write_text(history_page(history, chart_script()), encoding="utf-8")
    except OSError as error:
        raise CliError(Exit.FAILED, f"{path} cannot be written: {error.strerror or error}") from None
    except TroopError as error:  # the chart library is missing
        raise CliError(Exit.FAILED, str(error)) from None


def _values(one: Series, figure: Figure) -> None:
    bars = bench_history.bars([value.value for value in one.values])
    rows = [
        (bench_history.moment(value.at), value.run, bench_history.number(value.value, figure), bar)
        for value, bar in zip(one.values, bars, strict=True)
    ]
    show.table(("began", "run", figure.value, ""), rows, title=f"\n{show.clean(one.name)}")


def _groups(one: Series, figure: Figure, period: Period) -> None:
    every = bench_history.groups(one, period)
    bars = bench_history.bars([group.median for group in every])
    rows = [
        (
            group.period,
            group.runs,
            *(bench_history.number(value, figure) for value in (group.median, group.lowest, group.highest)),
            bar,
        )
        for group, bar in zip(every, bars, strict=True)
    ]
    show.table((period.value, "runs", "median", "lowest", "highest", ""), rows, title=f"\n{show.clean(one.name)}")
