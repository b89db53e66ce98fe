"""Implements `troop fleet submit`, `results` and `jobs`: gives tasks to a fleet, and fetches what became of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any
from uuid import uuid4

import typer

from cli.bench import fleet_health, tasks
from cli.bench.results_folder import ResultsFolder, s3_fetch
from cli.bench.tasks import RefusedTask, Task
from cli.client.bench_client import BenchClient
from cli.client.connection import connection
from cli.shared import idempotency, safe_files, show
from cli.shared.context import to_type
from cli.shared.errors import CliError, Exit, why
from troop.bench.definition import names
from troop.shared.formatting import USD, counted

FleetId = Annotated[str, typer.Argument(metavar="FLEET", help="A fleet's id, from `troop fleet list`.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document.")]

STDIN = "-"
_NOTE_SECONDS = 5.0

_RESULT_COLUMNS = ("task", "bytes", "delivered")


def submit(
    ctx: typer.Context,
    fleet: FleetId,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file with a task in each line; - for standard input.")],
    key: Annotated[str | None, idempotency.option("gives the tasks of the same lines the same ids")] = None,
    as_json: Json = False,
) -> None:
    """Give tasks to a fleet: one a line, as text or as JSON with id and body. Exits with 10 if one is refused.

    Text is the body of a task, of at most 200,000 bytes; the key and the line make its id. The result of an id stands
    once: after a failure, repeat the command with the same key. Tasks that were sent twice may be worked on twice.
    """
    key = key or uuid4().hex[:12]
    if not tasks.KEY.fullmatch(key):
        raise CliError(Exit.USAGE, "--key: use at most 100 letters, digits, dots, underscores and hyphens")
    client = connection(ctx).client.benchmarks
    refused: list[RefusedTask] = []
    sent, submitted = 0, None
    noted = time.monotonic()
    with _opened(file) as lines:
        for group in tasks.requests(_readable(tasks.read(lines, key), refused)):
            try:
                answer = client.submit_tasks(fleet, {"key": key, "tasks": [task.to_document() for task in group]})
            except CliError as error:
                _tell_refused(refused)
                again = to_type(ctx, "fleet", "submit", fleet, file, "--key", key)
                hint = f"{counted(sent, 'task')} sent before; to repeat with the same ids: {again}"
                raise CliError(error.code, f"{error}; {hint}") from None
            sent, submitted = sent + int(answer["sent"]), answer["submitted"]
            refused += _refusals(group, answer["refused"])
            if show.has_reader() and time.monotonic() - noted > _NOTE_SECONDS:
                noted = time.monotonic()
                show.note(f"sent {counted(sent, 'task')}")
    if as_json:
        refusals = [{"line": one.line, "id": one.id, "problem": one.problem} for one in refused]
        show.document({"key": key, "sent": sent, "refused": refusals, "submitted": submitted})
    else:
        _tell_refused(refused)
        total = f"; {submitted:,} in all" if submitted is not None else ""
        show.say(f"sent {counted(sent, 'task')}{f', {len(refused):,} refused' if refused else ''}{total}; key {key}")
        if sent:
            show.say(f"to follow them: {to_type(ctx, 'fleet', 'jobs', fleet)}")
    if refused:
        raise typer.Exit(Exit.REFUSED)


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """Opens the file with the tasks.

    Raises:
        CliError: USAGE, if it cannot be read.
    """
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with safe_files.regular(Path(file)) as opened:
            yield opened
    except OSError as error:
        raise CliError(Exit.USAGE, f"{file} cannot be read: {why(error)}") from None


def _readable(lines: Iterator[Task | RefusedTask], refused: list[RefusedTask]) -> Iterator[Task]:
    """Yields the tasks; appends what is none of them."""
    for one in lines:
        if isinstance(one, Task):
            yield one
        else:
            refused.append(one)


def _refusals(group: list[Task], refused: list[dict[str, Any]]) -> list[RefusedTask]:
    lines = {task.id: task.line for task in group}
    return [RefusedTask(lines.get(one["id"], group[0].line), one["id"], str(one["problem"])) for one in refused]


def _tell_refused(refused: list[RefusedTask]) -> None:
    for one in refused:
        show.note(f"refused: {one}", style="red")


def results(
    ctx: typer.Context,
    fleet: FleetId,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Download them: a file for each, named by its task."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most results to list; a download has all.")] = 100,
    as_json: Json = False,
) -> None:
    """List the results of a fleet's tasks, or download all of them. They outlive the fleet.

    A repeated download goes on: files that are complete stay. Exits with 1 if a result could not be downloaded.
    """
    client = connection(ctx).client.benchmarks
    if output is None:
        _list(client, fleet, limit, as_json)
        return
    folder: ResultsFolder | None = None
    count, missed = 0, []
    for page in _pages(client, fleet):
        folder = folder or ResultsFolder(output, s3_fetch(page[0]["url"]))
        missed += folder.save(page)
        count += len(page)
        if show.has_reader():
            show.note(f"{counted(count - len(missed), 'result')} in {output}")
    if as_json:
        left_out = [{"id": one.id, "why": one.why} for one in missed]
        show.document({"folder": str(output), "downloaded": count - len(missed), "missed": left_out})
    else:
        for one in missed:
            show.note(f"not downloaded: {one.id}: {one.why}", style="red")
        show.say(f"{counted(count - len(missed), 'result')} in {output}" if count else "there are no results yet")
    if missed:
        raise typer.Exit(Exit.FAILED)


def _pages(client: BenchClient, fleet: str) -> Iterator[list[dict[str, Any]]]:
    """Yields the pages that have results, each when it is needed: their addresses are valid for an hour at most."""
    cursor: str | None = None
    while True:
        page = client.task_results(fleet, cursor)
        if page["results"]:
            yield page["results"]
        cursor = page.get("cursor")
        if not cursor:
            return


def _list(client: BenchClient, fleet: str, limit: int, as_json: bool) -> None:
    listed: list[dict[str, Any]] = []
    more = False
    for page in _pages(client, fleet):
        listed += page
        if more := len(listed) > limit:
            break
    rows = [
        {"id": one["id"], "size": one["size"], "at": one["at"]} for one in listed[:limit]
    ]  # addresses let anyone read
    if as_json:
        show.document({"results": rows, "more": more})
    elif rows:
        show.table(_RESULT_COLUMNS, [(one["id"], f"{one['size']:,}", show.moment(one["at"])) for one in rows])
        if more:
            show.note(f"more than {limit:,} results: use --limit, or -o FOLDER to download all")
    else:
        show.note("there are no results yet")


def jobs(ctx: typer.Context, fleet: FleetId, as_json: Json = False) -> None:
    """Show the tasks of a fleet: submitted, done, waiting, in work, dead, and what one costs.

    The numbers are those of the last check, at most some minutes old, and SQS counts approximately.
    """
    conn = connection(ctx)
    view = conn.client.benchmarks.fleet(fleet)
    work = view.get("work")
    if as_json:
        show.document({"fleet": fleet, "work": work})
        return
    if work is None:
        raise CliError(
            Exit.REFUSED,
            f"no count of tasks: {fleet} has no queue (`queue: true` in its file makes one), was not checked yet, or "
            "`troop:queues` is false",
        )
    for line in fleet_health.work_lines(work, (view.get("cost_so_far") or {}).get("currency", USD)):
        show.say(line)
    show.say(f"as of {show.moment(work['at'])}; SQS counts approximately")
    for line in fleet_health.withheld(view):
        show.say(line)
    if work["dead"]:
        _, partition, _, region, account, *_ = conn.deployment.api_arn.split(":")
        arn = f"arn:{partition}:sqs:{region}:{account}:{names.dead_queue_name(fleet, names.cell_id(1))}"
        show.say(
            f"\n{counted(work['dead'], 'task')} reached the `tries` of the file. Once the cause is "
            "mended, this sends them back to the queue:"
        )
        show.say(f"  aws sqs start-message-move-task --region {region} --source-arn {arn}")
