"""Implements `troop bench compare`: compares a run with its baseline, variants or runs, and checks for regressions."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from cli.bench import comment, comparing, report_source
from cli.bench.pairing import Chosen, sides_of, succeeded
from cli.bench.pricing import AWS, Pricing, Source, Term, prices_of, roles_of
from cli.client.bench_client import NoReportError
from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.bench.definition.money import shown
from troop.measure.operations import RESPONSE
from troop.report.assets import chart_script
from troop.report.bills import DAY
from troop.report.comparison import COST, Affordable, Comparison, Equal, FaultPair, Figure, Need, Row, Spread
from troop.report.document import Report
from troop.report.failures import fault_name, seconds
from troop.report.html import comparison_page
from troop.report.verdicts import TERMS, TIMES, basis, cheaper, full_name, interval, source
from troop.shared.errors import TroopError
from troop.shared.formatting import count_of_role, counted, money, plain
from troop.shared.version import VERSION

ROWS = ("", "phase", "role", "operation", "A per second", "B per second", "B / A", "interval", "pairs", "differs")
_DROPPED = ("pairs", "repetitions", "interval", "phase", "role", "A per second", "B per second")
FIGURES = ("", "operation", "", "A", "B", "B / A", "interval")
NEEDS = ("", "operation", "per second", "A needs", "B needs", "A an hour", "B an hour", "B / A")
FAULTS = ("fault", "", "expected", "rate is back", "p99 is back", "failed", "repetitions")
_NAMED = 3
STAYING = ("", "operation", "a day", "A a month", "B a month")
AFFORDABLE = ("", "operation", "an hour", "A has", "B has", "A per second", "B per second", "B / A")


def compare(
    ctx: typer.Context,
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="The side to compare with: a run's id, a folder, or a report's .json file. "
            "Add a variant after a colon, such as RUN:'n6, threads=50'.",
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            show_default=False,
            help="The side to compare, in the same form. Without it, A's own file is compared with its baseline.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write it as a page.")] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Also write a short text for a pull request on GitHub."),
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            "--fail-below",
            metavar="RATIO",
            min=0.0,
            help="Exit with 1 if B / A is below this ratio, such as 0.95, and the difference exceeds the noise. Exit "
            "with 15 if the noise is unknown, as with two runs without a common baseline, and with 2 if no comparison "
            "is possible.",
        ),
    ] = None,
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
    """Compare a run with its baseline, two variants of a run, or two runs.

    Shows the ratios of rates, times and cost, with intervals of 95 % from pairs that share nodes or a round. Also shows
    what each side needs for the same throughput, and does for the same cost. Two runs without a common baseline have no
    interval.
    """
    with _no_verdict():
        pricing = _pricing(cost_of, prices, term, price or [])
        sides = [_chosen(ctx, text) for text in (a, b) if text is not None]
        now = datetime.now(UTC)
        comparison = comparing.compare(*sides, now=now, version=VERSION, fail_below=fail_below, pricing=pricing)
        if html is not None:
            _write(html, _page(comparison, *sides))
        if markdown is not None:
            _write(markdown, comment.markdown(comparison))
        if as_json:
            show.document(comparison.model_dump(mode="json"))
        else:
            tell(comparison)
        for remark in [*comparison.unmatched, *comparison.warnings]:
            show.note(remark)
    if failed := [row for row in comparison.rows if row.regression]:
        raise CliError(Exit.FAILED, _failed(failed, comparison))
    if comparison.verdict == "FAILED":
        raise CliError(Exit.FAILED, f"B lacks measurements that A has: {', '.join(comparison.lost)}")
    if comparison.verdict == "UNKNOWN":
        raise CliError(Exit.UNKNOWN, _undecided(comparison))
    if comparison.verdict == "PASSED":
        show.note(_passed(comparison))


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


def _page(comparison: Comparison, a: Chosen, b: Chosen | None = None) -> str:
    sides = sides_of(a, b)
    return comparison_page(comparison, chart_script(), succeeded(sides.a), succeeded(sides.b))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(Exit.FAILED, f"{path} cannot be written: {error.strerror or error}") from None
    show.note(f"written: {path}")


def tell(comparison: Comparison) -> None:
    """Prints the comparison as tables."""
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        show.say(
            f"{name}: {side.name}, {side.benchmark}, {counted(side.cells, 'cell')} of {side.fleets or 'unknown fleets'}"
        )
    show.say(source(comparison))
    heads = [name if comparison.source != "runs" or name != "pairs" else "repetitions" for name in ROWS]
    if comparison.rows:
        show.table(heads, [_row(row, comparison) for row in comparison.rows], title=" ", drop=_DROPPED)
    if comparison.faults:
        show.table(
            FAULTS, [line for one in comparison.faults for line in _fault(one)], title=" ", drop=("repetitions",)
        )
    figures = [line for row in comparison.rows for line in _figures(row, comparison.currency)]
    if figures:
        show.table(FIGURES, figures, title=" ", drop=("interval",))
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
    differs = {True: "yes", False: "within the noise", None: "unknown"}[row.exceeds_noise]
    if row.regression:
        differs += ", fails"
    counts = [row.a.repetitions, row.b.repetitions]
    counted_pairs = ", ".join(map(str, counts if comparison.source in ("baseline", "runs") else counts[:1]))
    identity = row.label, row.phase, row.role, row.operation
    rates = _spread(row.a), _spread(row.b), _ratio(row.ratio)
    return (*identity, *rates, _interval(row), counted_pairs, differs)


def _fault(one: FaultPair) -> list[tuple[str, ...]]:
    """Formats a planned fault: a line for each side."""
    return [
        (
            fault_name(one) if letter == "A" else "",
            letter,
            side.verdict or show.NOTHING,
            seconds(side.rate_back_s),
            seconds(side.p99_back_s),
            plain(side.failed),
            str(side.known) if side.known == side.repetitions else f"{side.known} of {side.repetitions}",
        )
        for letter, side in (("A", one.a), ("B", one.b))
    ]


def _interval(one: Row | Figure) -> str:
    return "" if one.low is None or one.high is None else interval(one.low, one.high)


def _spread(spread: Spread | None) -> str:
    """Formats the middle and the range: ``1,234 (1,200 to 1,300)``."""
    if spread is None:
        return ""
    middle, low, high = (plain(value) for value in (spread.middle, spread.low, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def _figures(row: Row, currency: str) -> list[tuple[str, ...]]:
    """Formats the times of a row, and its cost."""
    return [
        (row.label, row.operation, _name(one, row), *_both(one, currency), _ratio(one.ratio), _interval(one))
        for one in (*row.times, *([row.cost] if row.cost else []))
    ]


def _both(one: Figure, currency: str) -> list[str]:
    if one.name != COST:
        return [_spread(one.a), _spread(one.b)]
    return ["" if side is None else money(side.middle, currency) for side in (one.a, one.b)]


def _name(figure: Figure, row: Row) -> str:
    """Returns a figure's short name: ``p99.9 ms``, or ``p99.9 ms, response``."""
    name = TIMES[figure.name]
    if figure.name == COST:
        return name
    return f"{name} ms" if row.timing != RESPONSE else f"{name} ms, {RESPONSE}"


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
    below = f"{len(rows)} of {len(comparison.rows)} below {comparison.fail_below:g}"
    why = "which exceeds the noise" if worst.exceeds_noise else "because a repetition did nothing"
    return f"{below}: {full_name(worst)} is {worst.ratio:.3f} of A's, {why}"


def _passed(comparison: Comparison) -> str:
    """States that nothing fails; and of which rows more pairs could show that they do."""
    if not comparison.open:
        return f"passed: nothing is below {comparison.fail_below:g}"
    several = len(comparison.open) > 1
    return (
        f"open: {_some(map(full_name, comparison.open))} may be below {comparison.fail_below:g}: "
        f"{'their intervals reach' if several else 'its interval reaches'} below it. Run more `repetitions`: "
        "`troop bench noise` says how many find it"
    )


def _some(every: Iterable[str]) -> str:
    names = [*every]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _undecided(comparison: Comparison) -> str:
    if comparison.source == "runs":
        return source(comparison).rstrip(".")
    return f"{_some(comparison.undecided)}: fewer than two pairs do not tell noise from a difference. Set `repetitions`"
