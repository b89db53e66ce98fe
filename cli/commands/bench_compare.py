"""Implements `troop bench compare`: compares two runs, or two variants of one, and checks for regressions."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from cli.bench import comparing, report_source
from cli.bench.pairing import Chosen, succeeded
from cli.bench.pricing import AWS, Pricing, Source, Term, prices_of, roles_of
from cli.client.bench_client import NoReportError
from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.bench.definition.money import shown
from troop.measure.operations import RESPONSE
from troop.report.assets import chart_script
from troop.report.bills import DAY
from troop.report.comparison import Affordable, Comparison, Equal, Figure, Need, Row, Spread
from troop.report.document import Report
from troop.report.html import comparison_page
from troop.report.verdicts import TERMS, apart, basis, cheaper
from troop.shared.errors import TroopError
from troop.shared.formatting import count_of_role, counted, plain
from troop.shared.version import VERSION

ROWS = ("", "phase", "role", "operation", "A per second", "B per second", "B / A", "interval", "repetitions", "differs")
_DROPPED = ("repetitions", "interval", "phase", "role", "A per second", "B per second")
TIMES = ("", "operation", "", "A ms", "B ms", "B / A")
NEEDS = ("", "operation", "per second", "A needs", "B needs", "A an hour", "B an hour", "B / A")
STAYING = ("", "operation", "a day", "A a month", "B a month")
AFFORDABLE = ("", "operation", "an hour", "A has", "B has", "A per second", "B per second", "B / A")


def compare(
    ctx: typer.Context,
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Baseline: a run's id, a folder, or a report's .json file. "
            "Add a variant after a colon, such as RUN:'n6, threads=50'.",
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The side to compare with A, in the same form.")],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write it as a page.")] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            "--fail-below",
            metavar="RATIO",
            min=0.0,
            help="Exit with 1 if B / A is below this ratio, such as 0.95, and the difference exceeds the noise. An "
            "unknown noise, as with one repetition, counts as exceeded. Two runs, as of different days, also fail by "
            "chance: compare variants of one run. Exit with 2 if no comparison is possible.",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", min=0.5, max=0.9999, help="Level of the intervals.")
    ] = 0.95,
    cost_of: Annotated[
        str | None,
        typer.Option(
            "--cost-of",
            metavar="ROLES",
            help="Roles whose cost counts, such as servers,cache. By default all that do not only generate load.",
        ),
    ] = None,
    prices: Annotated[
        str, typer.Option("--prices", metavar="aws|file", help="AWS's prices on record, or those of the file.")
    ] = AWS,
    term: Annotated[
        str | None,
        typer.Option(
            "--term",
            metavar="1y|3y",
            help="Use the prices of a reservation or savings plan for this term, and show the total.",
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="TYPE=HOURLY",
            help="Your price of a node for an hour, or TYPE=UPFRONT+HOURLY for the term. Repeatable.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare two variants of a run, or two runs.

    Shows the ratio of their throughputs, whether it exceeds the noise, and the time that operations take. Also shows
    what each side needs for the same throughput, and does for the same cost. Two runs differ by chance, which only
    variants of one run exclude.
    """
    with _no_verdict():
        pricing = _pricing(cost_of, prices, term, price or [])
        sides = [_chosen(ctx, text) for text in (a, b)]
        comparison = comparing.compare(
            *sides,
            now=datetime.now(UTC),
            version=VERSION,
            confidence=confidence,
            fail_below=fail_below,
            pricing=pricing,
        )
        if html is not None:
            _write(html, _page(comparison, *sides))
        if as_json:
            show.document(comparison.model_dump(mode="json"))
        else:
            tell(comparison)
        for remark in [*comparison.unmatched, *comparison.warnings]:
            show.note(remark)
    if failed := [row for row in comparison.rows if row.regression]:
        raise CliError(Exit.FAILED, _failed(failed, comparison))
    if fail_below is not None and comparison.lost:
        raise CliError(Exit.FAILED, f"B lacks measurements that A has: {', '.join(comparison.lost)}")


@contextmanager
def _no_verdict() -> Iterator[None]:
    """Turns failures without a verdict into exit code 2: in CI, 1 means that B is slower."""
    try:
        yield
    except (NoReportError, TroopError, OSError) as error:  # no report, or a page's assets are missing
        raise CliError(Exit.USAGE, str(error)) from None
    except CliError as error:
        raise CliError(Exit.USAGE if error.code is Exit.FAILED else error.code, str(error)) from None
    except Exception as error:  # noqa: BLE001 - a bug of this program, for which Python would exit with 1
        traceback.print_exc()
        raise CliError(Exit.USAGE, f"no verdict: {type(error).__name__}: {error}") from None


def _pricing(cost_of: str | None, prices: str, term: str | None, own: Sequence[str]) -> Pricing:
    source, known_term = _one_of("--prices", prices, get_args(Source)), _one_of("--term", term, get_args(Term))
    return Pricing(roles_of(cost_of), source, known_term, prices_of(own, term))


def _one_of(option: str, value: str | None, allowed: Sequence[str]) -> Any:
    if value is not None and value not in allowed:
        raise CliError(Exit.USAGE, f"{option} {value}: must be {' or '.join(allowed)}")
    return value


# The sides


def split(text: str) -> tuple[str, str | None]:
    """Splits an argument into a report's source and a variant. An existing file may have a colon in its name."""
    source, colon, label = text.partition(":")
    if not colon or Path(text).exists():
        return text, None
    return source, ", ".join(part.strip() for part in label.split(","))


def _chosen(ctx: typer.Context, text: str) -> Chosen:
    source, label = split(text)
    if label == "":
        raise CliError(Exit.USAGE, f"{text}: add a variant after the colon, or remove the colon")
    return Chosen(text, load(ctx, source), label)


def load(ctx: typer.Context, text: str) -> Report:
    """Loads the report of a run, a folder or a file.

    Raises:
        CliError: there is no report.
    """
    return report_source.load(ctx, text)


# Output


def _page(comparison: Comparison, a: Chosen, b: Chosen) -> str:
    return comparison_page(comparison, chart_script(), succeeded(a), succeeded(b))


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise CliError(Exit.FAILED, f"{path} cannot be written: {error.strerror or error}") from None
    show.note(f"written: {path}")


def tell(comparison: Comparison) -> None:
    """Prints the comparison as tables."""
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        show.say(
            f"{name}: {side.name}, {side.benchmark}, {counted(side.cells, 'cell')} of {side.fleets or 'unknown fleets'}"
        )
    if text := apart(comparison):
        show.say(text)
    show.table(ROWS, [_row(row, comparison) for row in comparison.rows], title=" ", drop=_DROPPED)
    times = [line for row in comparison.rows for line in _times(row)]
    if times:
        show.table(TIMES, times, title=" ")
    needs = [_need(row, row.equal, comparison.currency) for row in comparison.rows if row.equal]
    if needs:
        show.table(NEEDS, needs, title=" ", drop=("A an hour", "B an hour"))
    if any(row.equal and row.equal.a.monthly is not None for row in comparison.rows):
        show.say(basis(comparison))
        terms = TERMS[comparison.basis.term] if comparison.basis.term else None
        columns = (*STAYING, *((f"A for {terms}", f"B for {terms}") if terms else ()))
        staying = [_staying(row, row.equal, comparison) for row in comparison.rows if row.equal]
        show.table(columns, staying, title=" ")
    affordable = [_affordable(row, row.affordable, comparison.currency) for row in comparison.rows if row.affordable]
    if affordable:
        show.table(AFFORDABLE, affordable, title=" ", drop=("an hour", "A has", "B has"))
    for sentence in cheaper(comparison):
        show.say(f"\n{sentence}")


def _row(row: Row, comparison: Comparison) -> tuple[str, ...]:
    interval = "" if row.low is None or row.high is None else f"{row.low:.3f} to {row.high:.3f}"
    beyond = "may be chance" if comparison.apart else "yes"
    differs = {True: beyond, False: "within the noise", None: "noise unknown"}[row.exceeds_noise]
    if row.regression:
        differs += ", fails"
    repetitions = f"{row.a.repetitions}, {row.b.repetitions}"
    identity = row.label, row.phase, row.role, row.operation
    return (*identity, _spread(row.a), _spread(row.b), f"{row.ratio:.3f}", interval, repetitions, differs)


def _spread(spread: Spread | None) -> str:
    """Formats the middle and the range: ``1,234 (1,200 to 1,300)``."""
    if spread is None:
        return ""
    middle, low, high = (plain(value) for value in (spread.middle, spread.low, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def _times(row: Row) -> list[tuple[str, ...]]:
    return [
        (row.label, row.operation, _name(one, row), _spread(one.a), _spread(one.b), _ratio(one.ratio))
        for one in row.times
    ]


def _name(figure: Figure, row: Row) -> str:
    """Returns a figure's short name: ``p99.9``, or ``p99.9 response``."""
    name = figure.name.removesuffix("_ms").replace("_", ".")
    return name if row.timing != RESPONSE else f"{name} {RESPONSE}"


def _need(row: Row, equal: Equal, currency: str) -> tuple[str, ...]:
    return (
        row.label,
        row.operation,
        _reached(equal),
        _nodes(equal.a),
        _nodes(equal.b),
        _hourly(equal.a, currency),
        _hourly(equal.b, currency),
        f"{_ratio(equal.hourly_ratio)}{f' ({doubt})' if (doubt := equal.doubt(row)) else ''}".strip(),
    )


def _staying(row: Row, equal: Equal, comparison: Comparison) -> tuple[str, ...]:
    """Formats what both sides cost at the equal throughput while they stay, and their operations a day."""
    amounts = [equal.a.monthly, equal.b.monthly]
    amounts += [equal.a.total, equal.b.total] if comparison.basis.term else []
    known = ["unknown" if amount is None else shown(amount, comparison.currency) for amount in amounts]
    return row.label, row.operation, f"{equal.per_second * DAY:,.0f}", *known


def _affordable(row: Row, both: Affordable, currency: str) -> tuple[str, ...]:
    rates = [plain(one.per_second or 0) for one in (both.a, both.b)]
    doubt = row.equal.doubt(row) if row.equal else ""
    nodes = _nodes(both.a), _nodes(both.b)
    return (
        row.label,
        row.operation,
        shown(both.hourly, currency),
        *nodes,
        *rates,
        f"{_ratio(both.ratio)} {f'({doubt})' if doubt else ''}".strip(),
    )


def _reached(equal: Equal) -> str:
    """Formats the throughput that both sides reach; both throughputs if they differ."""
    rates = [plain(equal.per_second if one.per_second is None else one.per_second) for one in (equal.a, equal.b)]
    return rates[0] if rates[0] == rates[1] else ", ".join(rates)


def _nodes(need: Need) -> str:
    """Formats the nodes of a side: ``6 servers, 2 drivers (extrapolated)``."""
    nodes = ", ".join(count_of_role(count, role) for role, count in need.nodes.items())
    return nodes if need.scaled in ("measured", "alike") else f"{nodes} ({need.scaled})"


def _hourly(need: Need, currency: str) -> str:
    return "unknown" if need.hourly is None else shown(need.hourly, currency)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"


def _failed(rows: Sequence[Row], comparison: Comparison) -> str:
    worst = min(rows, key=lambda row: row.ratio)
    label = f" ({worst.label})" if worst.label else ""
    noise = "which exceeds the noise" if worst.exceeds_noise else "and the noise is unknown"
    noise += " of each run" if comparison.apart and worst.exceeds_noise else ""
    operation = f"{worst.operation} of {worst.role} in {worst.phase}{label}"
    below = f"{len(rows)} of {len(comparison.rows)} below {comparison.fail_below:g}"
    doubt = apart(comparison) or ("" if worst.exceeds_noise else "Measure both sides with repetitions.")
    return f"{below}: {operation} is {worst.ratio:.3f} of A's, {noise}{f'. {doubt}' if doubt else ''}".rstrip(".")
