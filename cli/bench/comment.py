"""Writes a comparison as a comment of a pull request, in GitHub's Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from troop.report.comparison import Comparison, FaultPair, FaultSide, Row
from troop.report.failures import fault_name, seconds
from troop.report.verdicts import full_name, interval, outcome, ratio, source, summed_up, verdict
from troop.shared.formatting import counted

MOST_ROWS = 20
MOST_NAMES = 5
MOST_CHARACTERS = 100
"""Bounds of a comment, which people read in a browser, and which GitHub limits to 65,536 characters."""

_REPLACED = {"`": "'", "|": "\N{BROKEN BAR}"}


def markdown(comparison: Comparison) -> str:
    """Returns the verdict, and the ratio of each rate with its interval, the worst first.

    Names come from files, scripts and tools that others write. They are code spans, in which GitHub interprets
    nothing: no HTML, no links and no mentions.
    """
    verdict_word = outcome(comparison).capitalize()
    lines = [f"**{f'{verdict_word}. ' if verdict_word else ''}{summed_up(comparison)}**", ""]
    if comparison.rows:
        lines += ["| | B / A | 95 % | |", "|---|---|---|---|"]
        rows = sorted(comparison.rows, key=_place)
        lines += [_row(row, comparison) for row in rows[:MOST_ROWS]]
        lines += [""]
        if len(rows) > MOST_ROWS:
            lines += [f"Not shown: {counted(len(rows) - MOST_ROWS, 'row')}.", ""]
    if comparison.faults:
        lines += ["| planned fault | A | B |", "|---|---|---|", *map(_fault, comparison.faults[:MOST_ROWS]), ""]
    if comparison.lost:
        lines += [f"B lacks {_codes(comparison.lost)}.", ""]
    if comparison.verdict == "UNKNOWN" and comparison.source != "runs":
        lines += [f"Fewer than two pairs: {_codes(comparison.undecided)}.", ""]
    lines += [f"A is {code(comparison.a.name)}, and B is {code(comparison.b.name)}. {_source(comparison)}"]
    if remarks := len(comparison.warnings) + len(comparison.unmatched):
        lines += ["", f"The page has {counted(remarks, 'remark')}."]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Returns text as a code span that is safe in a table; "" for no text."""
    shown = " ".join("".join(_REPLACED.get(c, c) if c.isprintable() else " " for c in text).split())
    if len(shown) > MOST_CHARACTERS:
        shown = shown[: MOST_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return f"`{shown}`" if shown else ""


def _codes(names: Iterable[str]) -> str:
    every = [code(name) for name in names]
    more = f" and {len(every) - MOST_NAMES} more" if len(every) > MOST_NAMES else ""
    return ", ".join(every[:MOST_NAMES]) + more


def _place(row: Row) -> tuple[bool, bool, float]:
    """Sorts regressions first, then what exceeds the noise, then the rest, each by ratio."""
    return not row.regression, not row.exceeds_noise, row.ratio


def _row(row: Row, comparison: Comparison) -> str:
    text = verdict(row, comparison.source == "runs").text
    return f"| {code(full_name(row))} | {ratio(row.ratio)} | {interval(row.low, row.high)} | {text} |"


def _fault(one: FaultPair) -> str:
    return f"| {code(fault_name(one))} | {_side(one.a)} | {_side(one.b)} |"


def _side(side: FaultSide) -> str:
    return ", ".join(filter(None, (side.verdict, f"rate back {seconds(side.rate_back_s)}")))


def _source(comparison: Comparison) -> str:
    if comparison.source == "runs":
        return (
            "Two runs without a common baseline are not comparable to a few percent: "
            f"give both the same `baseline` ({code(comparison.reason.partition('. ')[0])})."
        )
    named = comparison.baseline if comparison.source == "baseline" else ""
    return source(comparison.model_copy(update={"baseline": code(named)})) if named else source(comparison)
