"""A run of a benchmark, shown as it goes until it has ended; and all that is on record of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import typer
from rich.live import Live

from cli import bench_cells, bench_show, show, watching
from cli.bench_client import BenchClient
from cli.context import to_type
from cli.errors import CliError, Exit


def follow(ctx: typer.Context, client: BenchClient, run: str, phases: Sequence[str], *, quiet: bool) -> dict[str, Any]:
    """Shows how a run goes until it has ended; all that is on record of it then.

    Args:
        phases: of its benchmark, as far as they are known.
        quiet: what is said goes to standard error.
    """
    try:
        if show.is_terminal() and not quiet:
            return _live(client, run, phases)
        return _lines(client, run, show.note if quiet else show.say)
    except KeyboardInterrupt:
        show.note(f"the run goes on; to stop it: {to_type(ctx, 'bench', 'stop', run)}")
        raise typer.Exit(watching.INTERRUPTED) from None
    except CliError as error:
        if error.code is Exit.NO_SUCH_UNIT:
            raise
        raise CliError(error.code, f"{error}; the run goes on: {to_type(ctx, 'bench', 'status', run)}") from None


def complete(client: BenchClient, view: dict[str, Any]) -> dict[str, Any]:
    """With the results that the answer had no room for."""
    run = view["run"]["run"]
    for cell in view["cells"]:
        if cell.get("results_left_out"):
            cell |= client.run(run, cell["cell"], resources=False)["cells"][0]
    return view


def _live(client: BenchClient, run: str, phases: Sequence[str]) -> dict[str, Any]:
    with Live(console=show.console(), refresh_per_second=4, transient=False) as live:
        for view in _poll(client, run):
            now, alone = datetime.now(UTC), len(view["cells"]) == 1
            live.update(bench_show.progress(view, phases, now) if alone else bench_cells.progress(view, now))
    return view


def _lines(client: BenchClient, run: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """A line for each step of each cell as it begins."""
    history: set[tuple[str, str]] = set()
    for view in _poll(client, run):
        for change in bench_cells.changes(view, history):
            tell(f"{show.moment(change.at)}  {change.text}")
    return view


def _poll(client: BenchClient, run: str) -> Iterator[dict[str, Any]]:
    """What is on record of a run. What it has created is told in the end."""

    def fetch() -> dict[str, Any]:
        view = client.run(run, resources=False)
        return complete(client, client.run(run)) if view["run"]["ended_at"] else view

    return watching.poll(fetch, lambda view: bool(view["run"]["ended_at"]))
