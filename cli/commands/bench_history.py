"""Implements `troop bench history`: a benchmark's figures over its recorded runs, and where they change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.bench import history as bench_history
from cli.bench.history import Period
from cli.client.connection import connection
from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.bench.definition.names import RUN
from troop.bench.records.history import LEAST_RUNS, Change, Figure, Series, histories
from troop.report.assets import chart_script
from troop.report.html import history_page
from troop.shared import zones
from troop.shared.errors import TroopError
from troop.shared.formatting import counted

SHOWN = 30
"""The newest runs of each series that are printed."""


def history(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a benchmark, as `troop bench list` shows it.")],
    figure: Annotated[Figure, typer.Option("--figure", help="The figure to show.")] = Figure.THROUGHPUT,
    by: Annotated[Period | None, typer.Option("--by", help="Group the runs by hour of the day or by weekday.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Read at most this many runs, the newest.")] = 400,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="Time zone, such as Europe/Berlin; default: local.")
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="RUN|DAY",
            help="Report only change points from this run, or day (UTC), on. All runs are still read.",
        ),
    ] = "",
    fail: Annotated[
        bool,
        typer.Option(
            "--fail-on-change", help="Exit with 16 if the figure became worse and still is; name the first such run."
        ),
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write it as a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, with both groupings.")] = False,
) -> None:
    """Show a figure of a benchmark over its recorded runs, and where it changed.

    The oldest run comes first. A run's value is the geometric mean of its cells that succeeded. With a baseline,
    change points are those of the ratio to it. Each names what else changed there.
    """
    where = _zone(zone)
    if since and not (bench_history.DAY.fullmatch(since) or RUN.fullmatch(since)):
        raise CliError(Exit.USAGE, f"--since {since}: must be a run, or a day such as 2026-11-20")
    lines = connection(ctx).client.benchmarks.history(name, limit)
    every = histories(lines, figure)
    if not every:
        raise CliError(
            Exit.FAILED,
            f"no recorded run of {name!r} has a cell that succeeded and has this figure. `troop bench list` lists the "
            "runs; `troop bench report RUN --again` records one of an earlier version of Troop",
        )
    local = zone or datetime.now().astimezone().tzname() or "of this machine"
    if html is not None:
        _write(html, bench_history.page_values(name, figure, local, where, every, since))
    if as_json:
        show.document(bench_history.document(name, figure, local, where, every, since))
    else:
        show.say(f"{name}: {figure.value}, {figure.unit}")
        for one in every:
            if by is None:
                _values(one, where)
            else:
                _groups(one, by, where)
        _changes(every, since, where)
    if fail:
        _fail(every, since)


def _zone(name: str | None) -> zones.Zone | None:
    try:
        return None if name is None else zones.zone(name)
    except zones.UnknownZoneError:
        raise CliError(
            Exit.USAGE, f"--zone {name}: must be a time zone of the IANA database, such as Europe/Berlin or UTC"
        ) from None


def _write(path: Path, history: dict[str, Any]) -> None:
    try:
        path.write_text(history_page(history, chart_script()), encoding="utf-8")
    except OSError as error:
        raise CliError(Exit.FAILED, f"{path} cannot be written: {error.strerror or error}") from None
    except TroopError as error:  # the chart library is missing
        raise CliError(Exit.FAILED, str(error)) from None


def _values(one: Series, where: tzinfo | None) -> None:
    bars = bench_history.bars([value.judged for value in one.values])
    marks = {change.index: bench_history.difference(one, change) for change in one.changes}
    rows = [
        (
            bench_history.moment(value.line.at.astimezone(where)),
            value.line.run,
            bench_history.number(value.own, one.figure),
            *([bench_history.level(one, value.judged)] if one.baseline else []),
            f"{bar} {marks[place]}" if place in marks else bar,
        )
        for place, (value, bar) in enumerate(zip(one.values, bars, strict=True))
    ]
    left_out = f" (the newest {SHOWN} of {counted(len(rows), 'run')})" if len(rows) > SHOWN else ""
    ratio = [f"to {one.against}"] if one.baseline else []
    show.table(
        ("admitted", "run", one.figure.value, *ratio, ""),
        rows[-SHOWN:],
        title=f"\n{show.clean(one.name)}{left_out}",
    )


def _groups(one: Series, period: Period, where: tzinfo | None) -> None:
    every = bench_history.groups(one, period, where)
    bars = bench_history.bars([group.median for group in every])
    rows = [
        (
            group.period,
            group.runs,
            *(bench_history.number(value, one.figure) for value in (group.median, group.lowest, group.highest)),
            bar,
        )
        for group, bar in zip(every, bars, strict=True)
    ]
    show.table((period.value, "runs", "median", "lowest", "highest", ""), rows, title=f"\n{show.clean(one.name)}")


def _changes(every: Sequence[Series], since: str, where: tzinfo | None) -> None:
    changes = [(one, change) for one in every for change in bench_history.since(one, since)]
    if changes:
        show.say("\nChange points")
    for one, change in sorted(changes, key=lambda pair: (pair[1].first.at, pair[0].name)):
        show.say(f"- {_sentence(one, change)}, from {bench_history.moment(change.first.at.astimezone(where))} on")
        show.say(
            f"  changed there: {show.clean('; '.join(map(bench_history.beside, change.beside)) or 'nothing on record')}"
        )
    if not changes:
        enough = max(len(one.values) for one in every) >= LEAST_RUNS
        show.say(f"\nNo change points{'' if enough else f': they need {LEAST_RUNS} runs'}.")


def _sentence(one: Series, change: Change) -> str:
    """Says what changed: ``n2 · measure · drivers · read: 0.998 before RUN, then 0.952: -4.6 %, worse``."""
    before, after = (bench_history.level(one, value) for value in (change.before, change.after))
    lasting = "" if change.lasts else ", since made up"
    return show.clean(
        f"{one.name}: {before} up to {change.last.run}, {after} from {change.first.run} on: "
        f"{bench_history.difference(one, change)}, {'worse' if change.is_worse else 'better'}{lasting}"
    )


def _fail(every: Sequence[Series], since: str) -> None:
    regression = bench_history.first_regression(every, since)
    if regression:
        one, change = regression
        raise CliError(
            Exit.WORSE,
            f"{change.first.run} is the first bad run: {_sentence(one, change)}. To accept it, pass --since with a "
            "later run or day",
        )
