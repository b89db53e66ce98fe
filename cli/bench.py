"""`troop bench`: benchmarks from their file to the table of results."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.live import Live

from cli import aws, bench_cells, bench_files, bench_money, bench_report, bench_show, show
from cli.bench_artifacts import Staging
from cli.bench_files import Source, WrongFileError
from cli.client import RefusedFileError, TroopClient, problem_of
from cli.context import Connection, connection
from cli.errors import CliError, Exit
from troop.bench.definition import to_document
from troop.bench.record import RunStatus

app = typer.Typer(no_args_is_help=True, help="Benchmarks: fleets that come up, measure, and are gone again.")

_POLL_SECONDS = 2.0
_FAILURES = 30
"""Looks in a row that may fail while a run is watched: it goes on without us."""

_INTERRUPTED = 130
"""What shells make of Ctrl-C."""

File = Annotated[Path, typer.Argument(help="A benchmark's file, or its folder.")]
Size = Annotated[str | None, typer.Option("--size", help="One of the file's sizes.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value, such as parameters.threads=8; may be repeated."),
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, as `troop bench list` gives it.")]
Accept = Annotated[
    bool, typer.Option("--accept-unknown-prices", help="Also where the price of some nodes cannot be had.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document.")]


@app.command("list")
def list_all(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many runs.")] = 20,
    catalogue: Annotated[bool, typer.Option("--catalogue", help="Only the benchmarks there are; asks no AWS.")] = False,
    as_json: Json = False,
) -> None:
    """The benchmarks there are, and the deployment's runs, newest first."""
    known = [_entry(path, found) for path, found in bench_files.catalogue()]
    runs = [] if catalogue else connection(ctx).client.runs(limit)
    if as_json:
        show.document({"benchmarks": known, "runs": runs})
        return
    rows = [(b["file"], b["nodes"], ", ".join(b["sizes"]), b["description"] or b["problem"]) for b in known]
    show.table(("benchmark", "nodes", "sizes", ""), rows)
    if runs:
        show.table(bench_show.RUN_COLUMNS, bench_show.run_rows(runs), title=" ")
    elif not catalogue:
        show.note("there are no runs")


def _entry(path: Path, found: Source | CliError) -> dict[str, Any]:
    shown = path.relative_to(bench_files.CATALOGUE.parent).as_posix()
    if isinstance(found, CliError):
        return {"file": shown, "name": "", "description": "", "nodes": None, "sizes": [], "problem": str(found)}
    benchmark = found.benchmark
    told = {"name": benchmark.name, "description": benchmark.description, "nodes": benchmark.nodes}
    return {"file": shown, **told, "sizes": list(found.document.get("sizes", {})), "problem": ""}


@app.command("validate")
def validate(file: File, size: Size = None, changes: Set = None, as_json: Json = False) -> None:
    """Check a benchmark's file, and all of its sizes. Needs no AWS; what only a region knows is checked by `run`."""
    try:
        source = bench_files.load(file, size, bench_files.assignments(changes or []))
    except WrongFileError as wrong:
        if as_json:
            show.document({"valid": False, "problems": [told.as_json() for told in wrong.told]})
            raise typer.Exit(int(wrong.code)) from None
        raise
    if as_json:
        cells = {"parallel": source.plan.parallel, "cells": bench_cells.planned(source.plan)}
        show.document({"valid": True, "problems": [], "benchmark": to_document(source.benchmark), **cells})
        return
    show.say(f"{source.path}: in order; {_what(source)}")
    if len(source.plan.cells) > 1:
        show.table(bench_cells.PLANNED_COLUMNS, bench_cells.planned_rows(source.plan))


@app.command("estimate")
def estimate(
    ctx: typer.Context,
    file: File,
    size: Size = None,
    changes: Set = None,
    accept: Accept = False,
    as_json: Json = False,
) -> None:
    """What a run would cost, line by line. Launches and stores nothing; fails if the run would be refused."""
    values = _accepting(bench_files.assignments(changes or []), accept)
    source = bench_files.load(file, size, values)
    found = _estimate(connection(ctx).client, source, size, values)
    if as_json:
        show.document(found)
    else:
        bench_money.estimate_table(found)
    for said in bench_money.warnings(found):
        show.note(said)
    if found["problems"]:
        raise typer.Exit(int(Exit.REFUSED))


@app.command("run")
def run(
    ctx: typer.Context,
    file: File,
    size: Size = None,
    changes: Set = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same one again starts nothing more.")] = None,
    wait: Annotated[bool, typer.Option(help="Until it has ended, and nothing of it is left.")] = True,
    accept: Accept = False,
    as_json: Json = False,
) -> None:
    """Run a benchmark, and tell what it has measured. Succeeds only if the run does; asks nothing."""
    values = _accepting(bench_files.assignments(changes or []), accept)
    source = bench_files.load(file, size, values)
    found = connection(ctx)
    tell: Callable[[str], None] = show.note if as_json else show.say
    # Before anything is staged: what costs too much should not be uploaded first.
    told = _estimate(found.client, source, size, values)
    for said in told["warnings"]:
        show.note(said)
    if told["problems"] and key is None:  # with a key it may be on record already, and that is what counts
        raise source.refused([problem_of(problem) for problem in told["problems"]])
    tell(bench_money.line(told))
    staging = Staging(found.client, source.path.parent, lambda: _session(ctx), tell)
    for artifact in source.artifacts():
        staging.stage(artifact)
    started, repeated = _start(found.client, source, size, values, key or str(uuid4()))
    tell(f"{'on record already' if repeated else 'started'}: {started['run']}, {_what(source)}")
    if not wait:
        if as_json:
            show.document(started)
        else:
            show.say(f"to see how it goes: {_command(ctx, 'status', started['run'])}")
        return
    phases = [phase.name for phase in source.benchmark.phases]
    followed = _follow(ctx, found, started["run"], phases, quiet=as_json)
    _end(followed, as_json, f"its report: {_command(ctx, 'report', started['run'])}")


@app.command("status")
def status(
    ctx: typer.Context,
    run: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until it has ended.")] = False,
    as_json: Json = False,
) -> None:
    """How far a run is, and what of it there is."""
    found = connection(ctx)
    if follow:
        _end(_follow(ctx, found, run, [], quiet=as_json), as_json)
        return
    told = found.client.run(run)
    if as_json:
        show.document(told)
        return
    show.say(bench_show.summary(told))
    now = datetime.now(UTC)
    if len(told["cells"]) > 1:
        show.table(bench_cells.CELL_COLUMNS, bench_cells.cell_rows(told, now), title=" ")
    else:
        show.table(("step", "began", "took", ""), bench_show.step_rows(told, now), title=" ")
    show.table(
        ("resource", "name", "created", "gone"),
        [(r["kind"], r["name"], show.moment(r["created_at"]), show.moment(r["gone_at"])) for r in told["resources"]],
        title=" ",
    )
    bench_money.cost_table(told)


@app.command("stop")
def stop(ctx: typer.Context, run: RunId, as_json: Json = False) -> None:
    """Stop a run: nothing more is launched, and whatever it has created is removed. Asks nothing."""
    stopped = connection(ctx).client.stop_run(run)
    if as_json:
        show.document(stopped)
    elif stopped["ended_at"]:
        show.say(f"{run} has ended already: {stopped['status']}")
    else:
        show.say(f"{run} is being taken down; to see when nothing is left: {_command(ctx, 'status', run)} --follow")


@app.command("results")
def results(ctx: typer.Context, run: RunId, as_json: Json = False) -> None:
    """What a run has measured."""
    client = connection(ctx).client
    told = _complete(client, client.run(run))
    found = [cell for cell in told["cells"] if cell["results"] is not None]
    if as_json:
        kept = ("cell", "label", "variant", "status", "reason", "results", "cost")
        cells = [{key: cell[key] for key in kept if key in cell} for cell in bench_cells.latest(told) if cell in found]
        show.document({"run": told["run"], "cells": cells})
    elif found:
        show.say(bench_show.summary(told))
        _results(told)
        bench_money.cost_table(told)
    if not found:
        raise CliError(Exit.FAILED, f"{bench_show.summary(told)}: it has no results")


app.command("report")(bench_report.report)


def _what(source: Source) -> str:
    """A benchmark in a few words."""
    benchmark, plan = source.benchmark, source.plan
    size = f" in size {benchmark.size}" if benchmark.size else ""
    most = bench_show.duration(plan.longest)
    nodes, phases = _count(plan.nodes, "node"), _count(len(benchmark.phases), "phase")
    if len(plan.cells) == 1:
        return f"{benchmark.name}{size}: {nodes}, {phases}, over within {most} of being launched"
    at_once = f"{plan.parallel} at a time" if plan.parallel > 1 else "one after the other"
    cells = f"{len(plan.cells)} cells, {at_once}, at most {nodes} then"
    return f"{benchmark.name}{size}: {cells}; {phases} each, over within {most} and the time it takes to launch"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _session(ctx: typer.Context) -> Any:
    return aws.make_session(ctx.obj.profile, ctx.obj.region)


def _command(ctx: typer.Context, name: str, run: str) -> str:
    """The command to be typed, for the same deployment."""
    deployment = "" if ctx.obj.deployment == "Troop" else f" -d {ctx.obj.deployment}"
    region = f" --region {ctx.obj.region}" if ctx.obj.region else ""
    return f"troop{deployment}{region} bench {name} {run}"


def _accepting(changes: Mapping[str, Any], accept: bool) -> dict[str, Any]:
    """The changes, and what --accept-unknown-prices says of the file."""
    return {**changes, **({"accept_unknown_prices": True} if accept else {})}


def _request(source: Source, size: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    files = {name: base64.b64encode(content).decode() for name, content in source.files.items()}
    return {"definition": source.document, "size": size, "set": dict(changes), "files": files}


def _estimate(client: TroopClient, source: Source, size: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return client.estimate(_request(source, size, changes))
    except RefusedFileError as refused:
        raise source.refused(refused.problems) from None


def _start(
    client: TroopClient, source: Source, size: str | None, changes: Mapping[str, Any], key: str
) -> tuple[dict[str, Any], bool]:
    try:
        return client.start_run({**_request(source, size, changes), "key": key})
    except RefusedFileError as refused:
        raise source.refused(refused.problems) from None


def _follow(ctx: typer.Context, found: Connection, run: str, phases: Sequence[str], *, quiet: bool) -> dict[str, Any]:
    """Shows how a run goes until it has ended; all that is on record of it then."""
    try:
        if show.is_terminal() and not quiet:
            return _live(found.client, run, phases)
        tell: Callable[[str], None] = show.note if quiet else show.say
        return _lines(found.client, run, tell, time.sleep)
    except KeyboardInterrupt:
        show.note(f"the run goes on; to stop it: {_command(ctx, 'stop', run)}")
        raise typer.Exit(_INTERRUPTED) from None
    except CliError as error:
        raise CliError(error.code, f"{error}; the run goes on: {_command(ctx, 'status', run)}") from None


def _live(client: TroopClient, run: str, phases: Sequence[str]) -> dict[str, Any]:
    with Live(console=show.console(), refresh_per_second=4, transient=False) as live:
        for told in looks(client, run, time.sleep):
            now, alone = datetime.now(UTC), len(told["cells"]) == 1
            live.update(bench_show.progress(told, phases, now) if alone else bench_cells.progress(told, now))
    return told


def _lines(
    client: TroopClient, run: str, tell: Callable[[str], None], sleep: Callable[[float], None]
) -> dict[str, Any]:
    """A line for each step of each cell as it begins."""
    said: set[tuple[str, str]] = set()
    for told in looks(client, run, sleep):
        for change in bench_cells.changes(told, said):
            tell(f"{show.moment(change.at)}  {change.text}")
    return told


def looks(client: TroopClient, run: str, sleep: Callable[[float], None]) -> Iterator[dict[str, Any]]:
    """What is on record of a run, again and again until it has ended; one look in a while may fail. What it has created
    is told in the end.
    """
    failures = 0
    while True:
        try:
            told = client.run(run, resources=False)
            if told["run"]["ended_at"]:
                told = _complete(client, client.run(run))
        except CliError as error:
            failures += 1
            if error.code not in (Exit.UNREACHABLE, Exit.API_FAILED) or failures > _FAILURES:
                raise
        else:
            failures = 0
            yield told
            if told["run"]["ended_at"]:
                return
        sleep(_POLL_SECONDS)


def _complete(client: TroopClient, told: dict[str, Any]) -> dict[str, Any]:
    """With the results that the answer had no room for."""
    run = told["run"]["run"]
    for cell in told["cells"]:
        if cell.get("results_left_out"):
            cell |= client.run(run, cell["cell"], resources=False)["cells"][0]
    return told


def _results(told: Mapping[str, Any]) -> None:
    """The table of what was measured."""
    (bench_show if len(told["cells"]) == 1 else bench_cells).results(told)


def _end(told: Mapping[str, Any], as_json: bool, more: str | None = None) -> None:
    """What came of a run, and what more there is to say; anything but SUCCEEDED is a failure."""
    if as_json:
        show.document(told)
    else:
        _results(told)
    said = bench_show.summary(told)
    if more:
        (show.note if as_json else show.say)(more)
    if told["run"]["status"] != RunStatus.SUCCEEDED:
        raise CliError(Exit.FAILED, said)
    (show.note if as_json else show.say)(said)
