"""Implements `troop bench noise`: says which changes a benchmark's comparison detects, and at which cost."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cli.bench import detecting, starting
from cli.bench import files as bench_files
from cli.bench.detecting import SHOWN, SPREADS, Design, Figure, Noise, percent
from cli.bench.options import Json, Set, Sizes
from cli.client.bench_client import BenchClient
from cli.client.connection import connection
from cli.shared import show
from cli.shared.context import to_type
from cli.shared.errors import CliError, Exit
from troop.bench.definition.baseline import ITSELF
from troop.bench.definition.money import shown
from troop.shared import formatting
from troop.shared.formatting import USD

COLUMNS = ("measurement", "from", *SPREADS.values(), *map(percent, SHOWN))
_DROPPED = ("mean", "p50", "from")

TWIN_PAIRS = 6
"""The pairs of a run that compares a benchmark with itself: enough for a spread, and for ranks."""


def noise(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A benchmark file, its folder or a name in the catalogue; or the name of a benchmark that has run, "
            "which stands for the design of its newest run.",
        ),
    ],
    sizes: Sizes = None,
    changes: Set = None,
    figure: Annotated[
        Figure | None,
        typer.Option("--figure", help="Of which to detect changes. Default: the rate; if the file sets it, the p99."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show which changes a comparison detects, and at which cost.

    Also shows by how much the pairs of each measurement differ by chance. Reads up to 100 recorded runs, the newest.
    Until there are pairs as in the design, cells of other runs give a bound. Exits with 15 if too few are on record,
    and says what to run.
    """
    client = connection(ctx).client.benchmarks
    size = ",".join(sizes) if sizes else None
    if is_file(name):
        values = bench_files.assignments(changes or [])
        source = bench_files.load(Path(name), size, values)
        lines = client.history(source.benchmark.name, starting.RECORDED)
        design, currency = detecting.design_of(source.plan), USD
        every = starting.noises(lines, source, figure and figure.field)
        if source.plan.baseline:
            estimate = starting.estimate(client, source, size, values)
            design, currency = replace(design, cost=float(estimate["expected"])), estimate["currency"]
        else:
            show.note("the file has no `baseline:`: this is for a baseline of parameters, and has no cost")
    elif changes:
        raise CliError(Exit.USAGE, f"--set changes a file, and there is none named {name}")
    else:
        lines = [one for one in client.history(name, starting.RECORDED) if not sizes or one.size == size]
        if (last := detecting.last_design(lines)) is None:
            raise CliError(Exit.UNKNOWN, f"no run of {name!r} with results is on record: `troop bench list` lists runs")
        design, currency = last, _currency(client, last)
        every = detecting.noises(lines, design.on_same_nodes, (figure or Figure.RATE).field)
    known = detecting.deciding([one for one in every if one.size == design.size])
    if as_json:
        show.document({"benchmark": name, **detecting.document(every, design, currency)})
    else:
        _tell(every, known, design, currency)
    command = twin(ctx, name if is_file(name) else "FILE", sizes or [], changes or [], design)
    if known is None:
        few = detecting.lacking(lines, design, every)
        raise CliError(Exit.UNKNOWN, f"{few}; compare the benchmark with itself: {command}")
    if known.is_bound:
        show.note(f"pairs of this design differ less; to learn how much, compare the benchmark with itself: {command}")


def is_file(name: str) -> bool:
    """Checks whether the argument is a file, rather than the name of a benchmark on record."""
    return Path(name).exists() or bench_files.in_catalogue(name) is not None or "/" in name


def twin(ctx: typer.Context, file: str, sizes: Sequence[str], changes: Sequence[str], design: Design) -> str:
    """Returns the command of a run whose baseline measures the same as the file (A/A)."""
    other = f"{ITSELF}: 1" if design.on_same_nodes else "description: A/A"
    own = [change for change in changes if not change.startswith(("baseline", "repetitions"))]
    every = [*own, f"baseline={{{other}}}", f"repetitions={TWIN_PAIRS}"]
    options = [("--size", size) for size in sizes] + [("--set", change) for change in every]
    return to_type(ctx, "bench", "run", shlex.join([file, *(word for option in options for word in option)]))


def _currency(client: BenchClient, design: Design) -> str:
    if design.cost is None:
        return USD
    return str(client.run(design.run, resources=False)["run"]["cost"]["currency"])


def _tell(every: Sequence[Noise], known: Noise | None, design: Design, currency: str) -> None:
    if every:
        show.table(COLUMNS, map(_row, every), drop=_DROPPED)
    if known:
        changes = formatting.sentence([percent(change) for change in SHOWN])
        pairs = f"pairs that find such a change of the {SPREADS[known.figure]}"
        show.say(f"\n{', '.join(SPREADS.values())}: how much the ratio of a pair scatters (standard deviation)")
        show.say(f"{changes}: {pairs} in {100 * detecting.OFTEN:.0f} of 100 runs\n")
        show.say(detecting.sentence(known, design, lambda amount: shown(amount, currency, up=True)))


def _row(one: Noise) -> tuple[str, ...]:
    spreads = [formatting.share(spread) if spread is not None else show.NOTHING for spread in one.spreads.values()]
    counts = [one.needed(change) for change in SHOWN]
    needed = [show.NOTHING if one.spread is None else "over 50" if count is None else str(count) for count in counts]
    return one.name, one.origin, *spreads, *needed
