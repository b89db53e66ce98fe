"""Implements `troop bench watch`: shows what a run does right now, until it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from cli.bench import follow as bench_follow
from cli.bench import live as bench_live
from cli.bench import outcome as bench_outcome
from cli.bench.options import RunId
from cli.client.bench_client import BenchClient
from cli.client.connection import connection
from cli.shared import listings, show, times, watching
from cli.shared.context import to_type
from cli.shared.errors import CliError, Exit
from troop.bench.records.live_view import LiveState
from troop.measure.live import INTERVAL_SECONDS


def watch(ctx: typer.Context, run: RunId, output: listings.Output = None, as_json: listings.AsJson = False) -> None:
    """Watch what a run does right now: rates, times, errors, processors, and the time left.

    Shows operations per second, p50 and p99 of all nodes together, errors, and CPU by role. Nodes report every 15
    seconds. The figures are previews; the results come at the end. Ends with the run, prints its results, and fails as
    `troop bench run` does. Ctrl-C ends only the watching.
    """
    form = listings.form_of(output, as_json)
    client = connection(ctx).client.benchmarks
    try:
        _watch(client, run, form)
    except KeyboardInterrupt:
        stop = to_type(ctx, "bench", "stop", run)
        show.note(f"only the watching has ended: the run continues; stop it with: {stop}")
        raise typer.Exit(Exit.INTERRUPTED) from None
    except CliError as error:
        if error.code not in (Exit.UNREACHABLE, Exit.API_FAILED):
            raise
        raise CliError(error.code, f"{error}; the run continues: {to_type(ctx, 'bench', 'status', run)}") from None
    view = bench_follow.complete(client, client.run(run))
    if listings.is_for_programs(form):
        bench_outcome.check(view, show.note)
    else:
        bench_outcome.tell(view, False)


def _watch(client: BenchClient, run: str, form: listings.Form) -> None:
    """Shows each merge until the run has ended: on a terminal in place of the last one."""
    before: Any = None
    for live in _poll(client, run):
        shown = {key: live[key] for key in ("at", "status", "message")}
        if listings.is_for_programs(form):
            listings.write(form, bench_live.records(live), live, repeated=True)
        elif show.is_terminal() or shown != before:
            every = f"{times.now().astimezone():%H:%M:%S %Z}, every {INTERVAL_SECONDS} s until the run ends or Ctrl-C"
            show.fresh_screen(every)
            bench_live.tell(live)
        before = shown


def _poll(client: BenchClient, run: str) -> Iterator[dict[str, Any]]:
    return watching.poll(
        lambda: client.live(run), lambda live: bool(live["state"] == LiveState.ENDED), lambda: INTERVAL_SECONDS
    )
