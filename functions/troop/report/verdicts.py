"""Words a comparison's results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from troop.bench.definition.money import shown
from troop.measure.operations import TOTAL
from troop.report.comparison import Comparison, Figure, Need, Row, Spread
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
}
SCALED = {
    "measured": "measured",
    "interpolated": "between two measured steps",
    "extrapolated": "beyond what was measured",
    "alike": "its own nodes: both do the same",
}

TERMS = {"1y": "1 year", "3y": "3 years"}


@dataclass(frozen=True)
class Verdict:
    """A sentence, and whether it is good for B."""

    text: str
    mood: Literal["better", "worse", "same"]


APART = {
    "runs": "A and B are different runs",
    "days": "A and B are runs of different days",
}


def apart(comparison: Comparison) -> str:
    """States that different runs differ by chance, which intervals of their repetitions do not contain; "" for one run.

    Repetitions of a run share its hour, and cells of both variants run in rounds. Between two runs the hour, the day
    and the machines differ, for all repetitions of a side together.
    """
    if comparison.apart is None:
        return ""
    return (
        f"{APART[comparison.apart]}: such runs differ by chance, and no interval contains this. To prove a difference, "
        "measure both as variants of one run."
    )


def verdict(row: Row, is_apart: bool = False) -> Verdict:
    """Judges one row: ``12 % more, beyond the noise``.

    Args:
        is_apart: whether the sides are different runs, which can differ by chance beyond the noise of each.
    """
    change = abs(row.ratio - 1)
    text = f"{formatting.share(change)} {'more' if row.ratio >= 1 else 'less'}" if change >= 0.0005 else "the same"
    if row.exceeds_noise is None:
        text += "; too few repetitions to exclude noise"
    else:
        beyond = ", beyond the noise of each run, which may be chance" if is_apart else ", beyond the noise"
        text += beyond if row.exceeds_noise else ", within the noise"
    if row.regression:
        return Verdict(f"{text}: a regression", "worse")
    if is_apart or not row.exceeds_noise:
        return Verdict(text, "same")
    return Verdict(text, "better" if row.ratio >= 1 else "worse")


def cheaper(comparison: Comparison) -> list[str]:
    """States for the throughput that decides which side is cheaper, by how much, and with which interval.

    That is the throughput at the answers of searches, of all operations together where there are several; without
    searches that of the only row. A comparison of several rows without a search has no such sentence.
    """
    rows = [row for row in comparison.rows if row.is_answer] or comparison.rows
    totals = {(row.label, row.phase, row.role) for row in rows if row.operation == TOTAL}
    deciding = [row for row in rows if row.operation == TOTAL or (row.label, row.phase, row.role) not in totals]
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
    interval = "" if low is None or high is None else f" ({low:.3f} to {high:.3f} times)"
    if low is None or high is None:
        verdict_text = "Too few repetitions to say which side is cheaper"
    elif is_known:
        verdict_text = "B is cheaper" if equal.hourly_ratio < 1 else "A is cheaper"
        verdict_text += ", which may be chance" if comparison.apart else ""
    else:
        verdict_text = "Neither side is cheaper beyond the noise"
    much = formatting.times_as_much(equal.hourly_ratio, "A")
    where = f"{equal.per_second:,.0f} operations a second" + (f" ({row.label})" if row.label else "")
    return f"{verdict_text}: at {where}, B costs {much}{interval}: B {'; '.join(amounts)}."


def summed_up(comparison: Comparison) -> str:
    """Summarizes all rows in a sentence."""
    rows = comparison.rows
    if not rows:
        return "Nothing to compare: the sides have no variant with the same operation."
    regressions = sum(bool(row.regression) for row in rows)
    more = sum(bool(row.exceeds_noise) and row.ratio > 1 for row in rows)
    less = sum(bool(row.exceeds_noise) and row.ratio < 1 for row in rows)
    open_ = sum(row.exceeds_noise is None for row in rows)
    chance = ", which may be chance" if comparison.apart else ""
    counts = (
        (more, f"B does more in {{}}{chance}"),
        (less, f"B does less in {{}}{chance}"),
        (len(rows) - more - less - open_, "{} within the noise"),
        (open_, "{} with too few repetitions"),
    )
    parts = [form.format(f"{count:,}") for count, form in counts if count]
    text = f"Of {formatting.counted(len(rows), 'row')}: {', '.join(parts)}."
    if comparison.fail_below is None:
        return text
    below = formatting.counted(regressions, "regression") if regressions else "None"
    return f"{text} {below} below the limit of {comparison.fail_below:g}."


def row_name(row: Row, rows: Sequence[Row]) -> str:
    """Returns the parts of a row's name that differ between rows. A role is left out if the phase determines it."""
    phases, roles = {one.phase for one in rows}, {one.role for one in rows}
    is_determined = len({(one.phase, one.role) for one in rows}) == len(phases)
    parts = [
        row.label,
        row.phase if len(phases) > 1 else "",
        row.role if len(roles) > 1 and not is_determined else "",
        row.operation,
    ]
    return " · ".join(part for part in parts if part)


def full_name(row: Row) -> str:
    """Returns a row's name as warnings begin with it."""
    return f"{row.operation} of {row.role} in {row.phase}" + (f" ({row.label})" if row.label else "")


def without_parts(rows: Sequence[Row]) -> list[Row]:
    """Returns rows without the operations that a total contains: the nodes serve all of them together."""
    totals = {(row.label, row.phase, row.role) for row in rows if row.operation == TOTAL}
    return [row for row in rows if row.operation == TOTAL or (row.label, row.phase, row.role) not in totals]


def ratio(value: float | None) -> str:
    """Formats a ratio: ``1.043``."""
    return formatting.NOTHING if value is None else f"{value:.3f}"


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
    return {
        "fail_below": comparison.fail_below,
        "rows": [
            {
                "name": row_name(row, rows),
                "ratio": number(row.ratio),
                "low": number(row.low),
                "high": number(row.high),
                "mood": verdict(row, comparison.apart is not None).mood,
            }
            for row in rows
        ],
        "times": [
            {
                "title": row_name(row, rows),
                "names": [TIMES[figure.name] for figure in row.times],
                "a": [_three(figure, "a") for figure in row.times],
                "b": [_three(figure, "b") for figure in row.times],
            }
            for row in sorted(rows, key=lambda row: -len(row.times))
            if row.times
        ],
    }


def _three(figure: Figure, side: Literal["a", "b"]) -> list[float | None] | None:
    values = figure.a if side == "a" else figure.b
    return None if values is None else [number(values.median), number(values.low), number(values.high)]
