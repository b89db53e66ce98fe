"""Shows the progress of a benchmark run until it has ended, and fetches its full record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import typer
from rich.live import Live

from cli.bench import cells as bench_cells
from cli.bench import show as bench_show
from cli.client.bench_client import BenchClient
from cli.shared import show, watching
from cli.shared.context import to_type
from cli.shared.errors import CliError, Exit


def follow(ctx: typer.Context, client: BenchClient, run: str, phases: Sequence[str], *, quiet: bool) -> dict[str, Any]:
    """Shows the progress of a run until it has ended, and returns its full record.

    Args:
        phases: the benchmark's phases, as far as known.
        quiet: print progress to standard error.
    """
    try:
        if show.is_terminal() and not quiet:
            return _live(client, run, phases)
        return lines(client, run, show.note if quiet else show.say)
    except KeyboardInterrupt:
        show.note(f"the run continues; stop it with: {to_type(ctx, 'bench', 'stop', run)}")
        raise typer.Exit(Exit.INTERRUPTED) from None
    except CliError as error:
        if error.code is Exit.NO_SUCH_UNIT:
            raise
        raise CliError(error.code, f"{error}; the run continues: {to_type(ctx, 'bench', 'status', run)}") from None


def complete(client: BenchClient, view: dict[str, Any]) -> dict[str, Any]:
    """Adds the results that did not fit into the API's answer."""
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


def lines(client: BenchClient, run: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """Prints a line for each step of each cell as it begins; returns the full record of the run that has ended."""
    history: set[tuple[str, str]] = set()
    for view in _poll(client, run):
        for change in bench_cells.changes(view, history):
            tell(f"{show.moment(change.at)}  {change.text}")
    return view


def _poll(client: BenchClient, run: str) -> Iterator[dict[str, Any]]:
    """Yields a run's record until it has ended; only the last one has resources."""

    def fetch() -> dict[str, Any]:
        view = client.run(run, resources=False)
        return complete(client, client.run(run)) if view["run"]["ended_at"] else view

    return watching.poll(fetch, lambda view: bool(view["run"]["ended_at"]))
