"""Words a comparison's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from troop.bench.definition.money import shown
from troop.measure.operations import TOTAL
from troop.report.comparison import COST, Comparison, Figure, Need, Row, Spread
from troop.report.document import Against, Ratio
from troop.report.formatting import number
from troop.shared import formatting

TIMES = {
    "mean_ms": "mean",
    "p50_ms": "p50",
    "p90_ms": "p90",
    "p95_ms": "p95",
    "p99_ms": "p99",
    "p99_9_ms": "p99.9",
    "max_ms": "max",
    COST: "cost of a million",
}
SCALED = {
    "measured": "measured",
    "interpolated": "between two measured steps",
    "extrapolated": "beyond what was measured",
    "alike": "its own nodes: both do the same",
}

TERMS = {"1y": "1 year", "3y": "3 years"}


class Named(Protocol):
    """A row about one operation."""

    @property
    def label(self) -> str: ...
    @property
    def phase(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def operation(self) -> str: ...


_Named = TypeVar("_Named", bound=Named)


@dataclass(frozen=True)
class Verdict:
    """A sentence, and whether it is good for B."""

    text: str
    mood: Literal["better", "worse", "same"]


def source(comparison: Comparison) -> str:
    """States what the intervals come from; of two runs without a common baseline, why there are none, and what to add.

    Repetitions of a run share its hour, and both sides of a pair its nodes or its round. Between two runs the hour, the
    day and the machines differ, for all repetitions of a side together.
    """
    mine, other = (_counts([side.repetitions for side in sides]) for sides in _sides(comparison))
    texts = {
        "cell": f"Paired by cell: {mine} on the same nodes.",
        "round": f"Paired by round: {mine} on different nodes.",
        "baseline": f"Ratio of two ratios to {comparison.baseline}: {mine} in A, {other} in B.",
        "runs": f"Two runs without a common baseline are not comparable to a few percent: hour, day and often machines "
        f"differ, and no interval contains that. {comparison.reason}.",
    }
    return texts[comparison.source]


def _sides(comparison: Comparison) -> tuple[list[Spread], list[Spread]]:
    return [row.a for row in comparison.rows], [row.b for row in comparison.rows]


def _counts(pairs: Sequence[int]) -> str:
    """Returns a number of pairs in words: ``6 pairs``, ``4 to 6 pairs``."""
    fewest, most = min(pairs, default=0), max(pairs, default=0)
    return formatting.counted(most, "pair") if fewest == most else f"{fewest} to {formatting.counted(most, 'pair')}"


def verdict(row: Row | Ratio, is_of_runs: bool = False) -> Verdict:
    """Judges one row, or the ratio of a candidate's rate: ``12 % more, beyond the noise``.

    Args:
        is_of_runs: whether the sides are two runs without a common baseline.
    """
    change = abs(row.ratio - 1)
    text = f"{formatting.share(change)} {'more' if row.ratio >= 1 else 'less'}" if change >= 0.0005 else "the same"
    if row.exceeds_noise is not None:
        text += ", beyond the noise" if row.exceeds_noise else ", within the noise"
    elif row.ratio == 0:
        text += "; a repetition did nothing"
    else:
        text += "; two runs do not tell" if is_of_runs else "; too few pairs to exclude noise"
    if isinstance(row, Row) and row.regression:
        return Verdict(f"{text}: a regression", "worse")
    if not row.exceeds_noise:
        return Verdict(text, "same")
    return Verdict(text, "better" if row.ratio >= 1 else "worse")


def against(ratios: Sequence[Against], baseline: str) -> str:
    """Sums up a candidate against its baseline: ``Throughput against version=1.2: 2.6 % less, beyond the noise (0.965
    to 0.983, 6 pairs).`` "" without pairs.
    """
    rates = [one.rate for one in without_parts(ratios)]
    if not rates:
        return ""
    if len(rates) == 1:
        (one,) = rates
        known = [interval(one.low, one.high)] if one.low is not None else []
        details = ", ".join([*known, formatting.counted(len(one.pairs), "pair")])
        return f"Throughput against {baseline}: {verdict(one).text} ({details})."
    count = formatting.counted(len(rates), "operation")
    tally = _tally(rates, "more in {}", "less in {}", "{} with too few pairs")
    return f"Throughput against {baseline}, of {count}: {tally}."


def cheaper(comparison: Comparison) -> list[str]:
    """States for the throughput that decides which side is cheaper, by how much, and with which interval.

    That is the throughput at the answers of searches, of all operations together where there are several; without
    searches that of the only row. A comparison of several rows without a search has no such sentence. Neither has one
    on the same nodes: both sides cost the same, and whole nodes would make much of a small difference.
    """
    if comparison.source == "cell":
        return []
    rows = [row for row in comparison.rows if row.is_answer] or comparison.rows
    deciding = without_parts(rows)
    if not any(row.is_answer for row in rows) and len(deciding) > 1:
        return []
    return [text for row in deciding if (text := _cheaper(row, comparison))]


def _cheaper(row: Row, comparison: Comparison) -> str:
    equal = row.equal
    if equal is None or equal.hourly_ratio is None or equal.a.hourly is None or equal.b.hourly is None:
        return ""
    low, high = equal.hourly_low, equal.hourly_high
    is_known = low is not None and high is not None and not low <= 1 <= high
    amounts = [f"{shown(equal.b.hourly, comparison.currency)} an hour, A {shown(equal.a.hourly, comparison.currency)}"]
    if comparison.basis.term and equal.a.total is not None and equal.b.total is not None:
        totals = shown(equal.b.total, comparison.currency), shown(equal.a.total, comparison.currency)
        amounts.append(f"over {TERMS[comparison.basis.term]} {totals[0]}, A {totals[1]}")
    bounds = "" if low is None or high is None else f" ({interval(low, high)} times)"
    if low is None or high is None:
        lacking = "Two runs do not tell" if comparison.source == "runs" else "Too few pairs to say"
        verdict_text = f"{lacking} which side is cheaper"
    elif is_known:
        verdict_text = "B is cheaper" if equal.hourly_ratio < 1 else "A is cheaper"
    else:
        verdict_text = "Neither side is cheaper beyond the noise"
    much = formatting.times_as_much(equal.hourly_ratio, "A")
    where = f"{equal.per_second:,.0f} operations a second" + (f" ({row.label})" if row.label else "")
    return f"{verdict_text}: at {where}, B costs {much}{bounds}: B {'; '.join(amounts)}."


def outcome(comparison: Comparison) -> str:
    """Returns the answer to --fail-below as people read it: OPEN if nothing fails, but more pairs could show that
    something does; "" without that option.
    """
    return "OPEN" if comparison.verdict == "PASSED" and comparison.open else comparison.verdict or ""


def summed_up(comparison: Comparison) -> str:
    """Summarizes all rows in a sentence."""
    rows = comparison.rows
    if comparison.faults and not rows:
        return f"Only {formatting.counted(len(comparison.faults), 'planned fault')}, whose figures have no ratio."
    if not rows:
        return "Nothing to compare: the sides have no variant with the same operation."
    regressions = sum(bool(row.regression) for row in rows)
    open_ = "{} of which two runs do not tell" if comparison.source == "runs" else "{} with too few pairs"
    text = (
        f"Of {formatting.counted(len(rows), 'row')}: {_tally(rows, 'B does more in {}', 'B does less in {}', open_)}."
    )
    if comparison.fail_below is None:
        return text
    below = formatting.counted(regressions, "regression") if regressions else "No known regression"
    below = below if regressions or comparison.undecided else "No regression"
    reach = comparison.open
    may = f"; in {formatting.counted(len(reach), 'row')} the interval reaches below it" if reach else ""
    return f"{text} {below} below the limit of {comparison.fail_below:g}{may}."


def _tally(rows: Sequence[Row | Ratio], more: str, less: str, unknown: str) -> str:
    """Counts rows by what they say. Arguments are the words for a count."""
    counts = {more: 0, less: 0, "{} within the noise": 0, unknown: 0}
    for row in rows:
        beyond = more if row.ratio > 1 else less
        counts[{True: beyond, False: "{} within the noise", None: unknown}[row.exceeds_noise]] += 1
    return ", ".join(form.format(f"{count:,}") for form, count in counts.items() if count)


def names(rows: Sequence[Named]) -> Callable[[Named], str]:
    """Returns what names a row by the parts that differ between rows. A role is left out if the phase determines it."""
    phases, roles = {one.phase for one in rows}, {one.role for one in rows}
    is_determined = len({(one.phase, one.role) for one in rows}) == len(phases)

    def name(row: Named) -> str:
        parts = [
            row.label,
            row.phase if len(phases) > 1 else "",
            row.role if len(roles) > 1 and not is_determined else "",
            row.operation,
        ]
        return " · ".join(part for part in parts if part)

    return name


def full_name(row: Named) -> str:
    """Returns a row's name as warnings begin with it."""
    return f"{row.operation} of {row.role} in {row.phase}" + (f" ({row.label})" if row.label else "")


def without_parts(rows: Sequence[_Named]) -> list[_Named]:
    """Returns rows without the operations that a total contains: the nodes serve all of them together."""
    totals = {(row.label, row.phase, row.role) for row in rows if row.operation == TOTAL}
    return [row for row in rows if row.operation == TOTAL or (row.label, row.phase, row.role) not in totals]


def ratio(value: float | None) -> str:
    """Formats a ratio: ``1.043``."""
    return formatting.NOTHING if value is None else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """Formats an interval: ``0.965 to 1.043``."""
    return formatting.NOTHING if low is None or high is None else f"{low:.3f} to {high:.3f}"


def spread(values: Spread | None) -> str:
    """Formats a value and its range over repetitions, if there are several: ``1,204 (1,180 to 1,233)``."""
    if values is None:
        return formatting.NOTHING
    text = formatting.plain(values.middle)
    if values.repetitions < 2:
        return text
    return f"{text} ({formatting.plain(values.low)} to {formatting.plain(values.high)})"


def need(needed: Need) -> str:
    """Formats the nodes: ``6 servers and 2 drivers``."""
    return (
        formatting.sentence([formatting.count_of_role(count, role) for role, count in needed.nodes.items()])
        or formatting.NOTHING
    )


def basis(comparison: Comparison) -> str:
    """Describes the roles and prices behind the costs in a few sentences."""
    its = comparison.basis
    one, other = formatting.sentence(its.roles_a), formatting.sentence(its.roles_b)
    texts = [f"Cost of {one}." if one == other else f"Cost of {one} of A, and of {other} of B."]
    left_out = list(dict.fromkeys([*its.left_out_a, *its.left_out_b]))
    if left_out:
        texts.append(f"The nodes of {formatting.sentence(left_out)} are neither counted nor scaled.")
    kind = "a reservation or savings plan" if its.term else "nodes as they were bought"
    texts.append(
        f"Prices of {kind}{f' for {TERMS[its.term]}' if its.term else ''}, "
        f"{'from the benchmark files' if its.prices == 'file' else 'on record'}."
    )
    if its.types:
        own = [f"{name} {formatting.price(price, comparison.currency)}" for name, price in its.types.items()]
        texts.append(f"Your own prices for an hour: {', '.join(own)}.")
    return " ".join(texts)


def chart_data(comparison: Comparison) -> dict[str, Any]:
    """Returns {"fail_below", "rows": [{"name", "ratio", "low", "high", "mood"}], "times": [{"title", "names", "a":
    [[median, low, high] or null], "b"}]}.
    """
    rows = comparison.rows
    name = names(rows)
    return {
        "fail_below": comparison.fail_below,
        "rows": [_drawn(name(row), row) for row in rows],
        "times": [
            {
                "title": name(row),
                "names": [TIMES[figure.name] for figure in row.times],
                "a": [_three(figure, "a") for figure in row.times],
                "b": [_three(figure, "b") for figure in row.times],
            }
            for row in sorted(rows, key=lambda row: -len(row.times))
            if row.times
        ],
    }


def baseline_data(ratios: Sequence[Against]) -> list[dict[str, Any]]:
    """Returns the rows of :func:`chart_data` for a candidate's rates, each with the ratios of its ``pairs``."""
    name = names(ratios)
    return [_drawn(name(one), one.rate) | {"pairs": [number(ratio) for ratio in one.rate.pairs]} for one in ratios]


def _drawn(name: str, one: Row | Ratio) -> dict[str, Any]:
    return {
        "name": name,
        "ratio": number(one.ratio),
        "low": number(one.low),
        "high": number(one.high),
        "mood": verdict(one).mood,
    }


def _three(figure: Figure, side: Literal["a", "b"]) -> list[float | None] | None:
    values = figure.a if side == "a" else figure.b
    return None if values is None else [number(values.median), number(values.low), number(values.high)]
