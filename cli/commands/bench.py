"""Implements `troop bench`: checks, estimates, runs and stops benchmarks, and shows their results."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar
from uuid import uuid4

import typer

from cli.bench import cells as bench_cells
from cli.bench import checking, fault_tools, starting
from cli.bench import faults as bench_faults
from cli.bench import files as bench_files
from cli.bench import follow as bench_follow
from cli.bench import limits as bench_limits
from cli.bench import money as bench_money
from cli.bench import outcome as bench_outcome
from cli.bench import show as bench_show
from cli.bench.artifacts import Staging, in_question
from cli.bench.checking import Accept
from cli.bench.files import Source
from cli.bench.options import File, Json, RunId, Set, Sizes
from cli.client.connection import connection
from cli.shared import aws, idempotency, listings, show, watching
from cli.shared.context import to_type
from cli.shared.errors import CliError, Exit
from cli.shared.lazy import Command, LazyGroup
from cli.shared.listings import Column
from cli.shared.watching import Watch
from troop.bench.admission import merging
from troop.bench.admission.design import design, design_warnings
from troop.bench.definition.definition import to_document
from troop.bench.records.record import RunStatus


class Commands(LazyGroup):
    """The commands about runs; those that are lazy import much that the others do not need, or are rarely used."""

    lazy: ClassVar = {
        "history": (
            "cli.commands.bench_history:history",
            "Show a figure of a benchmark over its recorded runs, and where it changed.",
        ),
        "noise": ("cli.commands.bench_noise:noise", "Show which changes a comparison detects, and at which cost."),
        "watch": (
            "cli.commands.bench_watch:watch",
            "Watch what a run does right now: rates, times, errors, processors, and the time left.",
        ),
        "new": (
            "cli.commands.bench_new:new",
            "Write a small benchmark of your own, which runs as it is, and whose operation you replace.",
        ),
        "copy": (
            "cli.commands.bench_new:copy",
            "Copy a benchmark of the catalogue into a folder of your own, to change it or to add artifacts.",
        ),
        "schedule": ("cli.commands.bench_schedule:schedule", "Run a benchmark on a schedule."),
        "unschedule": ("cli.commands.bench_schedule:unschedule", "Remove a schedule; its runs stay."),
        "schedules": (
            "cli.commands.bench_schedule:schedules",
            "List the schedules with their next starts and last outcomes.",
        ),
        "report": ("cli.commands.bench_report:report", "Write the report of a run as one page."),
        "compare": (
            "cli.commands.bench_compare:compare",
            "Compare a run with its baseline, two variants of a run, or two runs.",
        ),
    }


app = typer.Typer(
    cls=Commands, no_args_is_help=True, help="Run benchmarks on temporary fleets, and show their results."
)


@app.command("list", cls=Command)
def list_all(
    ctx: typer.Context,
    benchmark: Annotated[str | None, typer.Option(help="Only runs of the benchmark of this name.")] = None,
    status: Annotated[RunStatus | None, typer.Option(case_sensitive=False, help="Only runs with this status.")] = None,
    sort: listings.Sort = None,
    reverse: listings.Reverse = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most this many runs.")] = 20,
    catalogue: Annotated[bool, typer.Option("--catalogue", help="Show only the benchmarks; calls no AWS.")] = False,
    watch: Watch = None,
    output: listings.Output = None,
    as_json: listings.AsJson = False,
) -> None:
    """List the available benchmarks, and the deployment's runs, newest first."""
    form = listings.form_of(output, as_json)
    if sort is not None:
        listings.by(bench_show.RUN_COLUMNS, sort)
    known = [_entry(path, source) for path, source in bench_files.catalogue()]
    chosen = listings.same({"name": benchmark, "status": status})
    client = None if catalogue else connection(ctx).client.benchmarks

    def fetch() -> list[dict[str, Any]]:
        runs = [] if client is None else listings.first(client.runs, chosen, limit)
        return listings.ordered(runs, bench_show.RUN_COLUMNS, sort, reverse)

    def tell(runs: list[dict[str, Any]]) -> None:
        if listings.is_for_programs(form):
            document = {"benchmarks": known, "runs": runs}
            listings.write(form, known if catalogue else runs, document, repeated=watch is not None)
            return
        listings.tell(form, _BENCHMARKS, known, {}, drop=("nodes",))
        if runs:
            listings.tell(form, bench_show.RUN_COLUMNS, runs, {}, drop=bench_show.RUN_DROPPED, title=" ")
        elif not catalogue:
            show.note("no runs match" if benchmark or status else "there are no runs")

    watching.repeat(watch, fetch, tell)


_BENCHMARKS = (
    Column("benchmark", lambda entry: entry["file"]),
    Column("nodes", lambda entry: entry["nodes"]),
    Column("sizes", lambda entry: ", ".join(entry["sizes"])),
    Column("", lambda entry: entry["description"] or entry["problem"]),
)


def _entry(path: Path, source: Source | CliError) -> dict[str, Any]:
    shown = path.parent.name  # as the other commands accept it
    if isinstance(source, CliError):
        return {"file": shown, "name": "", "description": "", "nodes": None, "sizes": [], "problem": str(source)}
    benchmark = source.benchmark
    about = {"name": benchmark.name, "description": benchmark.description, "nodes": benchmark.nodes}
    return {"file": shown, **about, "sizes": list(source.document.get("sizes", {})), "problem": ""}


@app.command("validate")
def validate(file: File, sizes: Sizes = None, changes: Set = None, as_json: Json = False) -> None:
    """Check a benchmark file, all its sizes, and its local artifacts.

    Needs no AWS. Applies the limits of this checkout's cdk.json. `run` applies those of the deployment and the region.
    """
    with checking.json_errors(as_json):
        source = bench_files.load(file, _size(sizes), bench_files.assignments(changes or []))
    warnings = list(in_question(source.artifacts(), source.path.parent))
    beyond = [*design_warnings(source.plan), *checking.beyond_limits(source.benchmark, source.plan)]
    about_faults = fault_tools.remarks(source.plan, source.files)
    if as_json:
        cells = {"parallel": source.plan.parallel, "cells": bench_cells.planned(source.plan)}
        contents = {"benchmark": to_document(source.benchmark), **cells}
        show.document(
            {
                "valid": True,
                "problems": [],
                "warnings": [*warnings, *beyond],
                "copied": source.sizes(),
                "design": design(source.plan),
                "merge": merging.budget(source.plan),
                **({"faults": about_faults} if about_faults else {}),
                **contents,
            }
        )
        return
    show.say(f"{source.path}: {checking.verdict(warnings)}; {starting.describe(source)}")
    if len(source.plan.cells) > 1:
        show.table(bench_cells.PLANNED_COLUMNS, bench_cells.planned_rows(source.plan))
    _tell_order(source)
    show.say(source.copied())
    show.say(starting.merge(source))
    for warning in (*about_faults, *warnings, *beyond):
        show.note(warning)


@app.command("estimate")
def estimate(
    ctx: typer.Context,
    file: File,
    sizes: Sizes = None,
    changes: Set = None,
    accept: Accept = False,
    as_json: Json = False,
) -> None:
    """Show what a run would cost, line by line. Launches and stores nothing. Fails if the run would be refused."""
    with checking.json_errors(as_json):
        values = checking.accepting(bench_files.assignments(changes or []), accept)
        size = _size(sizes)
        source = bench_files.load(file, size, values)
        client = connection(ctx).client.benchmarks
        cost_estimate = starting.estimate(client, source, size, values)
    if not as_json:
        show.say(starting.merge(source))
    bench_money.tell(cost_estimate, as_json)
    if not as_json:
        _tell_order(source)
        if detected := starting.detects(client, source, cost_estimate):
            show.say(detected)


def _tell_order(source: Source) -> None:
    """Prints in which order cells run, and how the run compares them with its baseline."""
    for sentence in filter(None, (bench_cells.order_of(source.plan), design(source.plan))):
        show.note(sentence)


@app.command("run")
def run(
    ctx: typer.Context,
    file: File,
    sizes: Sizes = None,
    changes: Set = None,
    key: Annotated[str | None, idempotency.option("starts no second run")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the run has ended and everything is removed.")] = True,
    accept: Accept = False,
    as_json: Json = False,
) -> None:
    """Run a benchmark and show its results. Does not ask for confirmation.

    Fails if the run does not succeed, or if its results do not hold the limits or what the file expects of faults.
    """
    values = checking.accepting(bench_files.assignments(changes or []), accept)
    size = _size(sizes)
    source = bench_files.load(file, size, values)
    conn = connection(ctx)
    tell: Callable[[str], None] = show.note if as_json else show.say
    tell(source.copied())
    checking.expect(lambda: starting.estimate(conn.client.benchmarks, source, size, values), source, key, tell)
    staging = Staging(conn.client.benchmarks, source.path.parent, lambda: _session(ctx), tell)
    for artifact in source.artifacts():
        staging.stage(artifact)
    started, repeated = starting.start(conn.client.benchmarks, source, size, values, key or str(uuid4()))
    tell(f"{'already started' if repeated else 'started'}: {started['run']}, {starting.describe(source)}")
    if not wait:
        if as_json:
            show.document(started)
        else:
            show.say(f"show its progress with: {to_type(ctx, 'bench', 'status', started['run'])}")
        return
    phases = [phase.name for phase in source.benchmark.phases]
    followed = bench_follow.follow(ctx, conn.client.benchmarks, started["run"], phases, quiet=as_json)
    against = ""
    if source.benchmark.baseline:
        from cli.bench.against import against as summed_up  # models of reports take a quarter of a second

        against = summed_up(followed, source.benchmark.baseline)
    compared = f"compare its times and cost with: {to_type(ctx, 'bench', 'compare', started['run'])}" if against else ""
    report = f"get its report with: {to_type(ctx, 'bench', 'report', started['run'])}"
    bench_outcome.tell(followed, as_json, against, compared, report)


@app.command("status")
def status(
    ctx: typer.Context,
    run: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show progress until the run has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Show the progress, resources and cost of a run."""
    conn = connection(ctx)
    if follow:
        bench_outcome.tell(bench_follow.follow(ctx, conn.client.benchmarks, run, [], quiet=as_json), as_json)
        return
    view = conn.client.benchmarks.run(run)
    if as_json:
        show.document(view)
        return
    show.say(bench_show.summary(view))
    now = datetime.now(UTC)
    if len(view["cells"]) > 1:
        show.table(bench_cells.CELL_COLUMNS, bench_cells.cell_rows(view, now), title=" ")
    else:
        show.table(("step", "began", "took", ""), bench_show.step_rows(view, now), title=" ")
    show.table(
        ("resource", "name", "created", "gone"),
        [(r["kind"], r["name"], show.moment(r["created_at"]), show.moment(r["gone_at"])) for r in view["resources"]],
        title=" ",
    )
    if replaced := bench_show.replaced_rows(view):
        show.table(("cell", "replaced node", "role", "replaced at", "why"), replaced, title=" ")
    bench_limits.table(view)
    bench_faults.table(view)
    bench_money.cost_table(view)


@app.command("stop")
def stop(ctx: typer.Context, run: RunId, as_json: Json = False) -> None:
    """Stop a run and remove everything it has created. Does not ask for confirmation."""
    stopped = connection(ctx).client.benchmarks.stop_run(run)
    if as_json:
        show.document(stopped)
    elif stopped["ended_at"]:
        show.say(f"{run} has already ended: {stopped['status']}")
    else:
        command = to_type(ctx, "bench", "status", run, "--follow")
        show.say(f"{run} is stopping; follow its teardown with: {command}")


@app.command("results")
def results(ctx: typer.Context, run: RunId, as_json: Json = False) -> None:
    """Show the results of a run. Fails if they do not hold the limits of its file, or what it expects of faults."""
    client = connection(ctx).client.benchmarks
    view = bench_follow.complete(client, client.run(run))
    with_results = [cell for cell in view["cells"] if cell["results"] is not None]
    if as_json:
        keys = ("cell", "label", "variant", "status", "reason", "results", "verdict", "limits", "searches", "faults")
        cells = [
            {key: cell[key] for key in (*keys, "cost") if key in cell}
            for cell in bench_cells.latest(view)
            if cell in with_results
        ]
        show.document({"run": view["run"], "cells": cells})
    elif with_results:
        show.say(bench_show.summary(view))
        bench_outcome.results(view)
        bench_money.cost_table(view)
    if not with_results:
        raise CliError(Exit.FAILED, f"no results: {bench_show.summary(view)}")
    bench_outcome.judge(view)


def _size(sizes: list[str] | None) -> str | None:
    """Joins the options as the API expects them; None without one."""
    return ",".join(sizes) if sizes else None


def _session(ctx: typer.Context) -> Any:
    return aws.make_session(ctx.obj.profile, ctx.obj.region)
