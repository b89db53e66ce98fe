"""Numbers, amounts and definitions as a page says them; and where it gets its charts from."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.report import sample_reports as samples
from tests.unit.report.sample_cells import BEGAN
from troop.report import assets, formatting, overview
from troop.report.document import Cell, Operation, Phase, Point, Scaling
from troop.report.outline import outline

_TEXT = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" \n\t"), max_size=12)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4))
_WORDS = [
    "yes",
    "null",
    "1:1",
    "- a",
    "a: b",
    "a #b",
    "1e3",
    "0x1f",
    "1_000",
    "2026-11-20",
    "~",
    "=",
    "12:30:45",
    "",
    "%a",
    "@b",
]


@settings(deadline=None, derandomize=True, database=None, max_examples=60)
@given(_VALUES | st.lists(st.sampled_from(_WORDS), max_size=8))
def test_an_outline_reads_as_what_it_is_of(value: Any) -> None:
    assert yaml.safe_load(outline(value)) == value


def test_an_outline_looks_like_a_file() -> None:
    text = outline(samples.DEFINITION)
    assert "    instance_type: i4i.xlarge\n" in text
    assert "  - name: measure\n    roles: [servers, drivers]\n" in text
    assert '  ratio: "1:1"\n' in text


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (formatting.plain(None), formatting.NOTHING),
        (formatting.plain(math.nan), formatting.NOTHING),
        (formatting.plain(0), "0"),
        (formatting.plain(0.0421), "0.042"),
        (formatting.plain(3.14159), "3.14"),
        (formatting.plain(9.996), "10.0"),
        (formatting.plain(99.96), "100"),
        (formatting.plain(12345.6), "12,346"),
        (formatting.short(464_123_456), "464 million"),
        (formatting.short(999_960_000), "1 billion"),
        (formatting.short(87_863), "87,860"),
        (formatting.percent(82.3), "82 %"),
        (formatting.percent(0.43), "0.4 %"),
        (formatting.percent(0.00091), "0.0009 %"),
        (formatting.percent(0.00001), "below 0.0001 %"),
        (formatting.percent(0), "0 %"),
        (formatting.share(0.974), "97 %"),
        (formatting.mega(1_740_000), "1.74"),
        (formatting.gibi(2 * 2**30), "2.00"),
        (formatting.money(None), formatting.NOTHING),
        (formatting.money(0), "$0.00"),
        (formatting.money(1234.5), "$1,234.50"),
        (formatting.money(0.5), "$0.50"),
        (formatting.money(0.04231), "$0.0423"),
        (formatting.money(0.9951), "$1.00"),
        (formatting.money(0.0000001), "less than $0.000001"),
        (formatting.money(12.3, "CNY"), "CNY 12.30"),
        (formatting.price(0.0416), "$0.0416"),
        (formatting.price(0.088), "$0.088"),
        (formatting.price(1.5), "$1.50"),
        (formatting.price(0.0000007), "$0.0000007"),
        (formatting.duration(None), formatting.NOTHING),
        (formatting.duration(4.25), "4.2 s"),
        (formatting.duration(600), "10 min"),
        (formatting.duration(615), "10 min 15 s"),
        (formatting.duration(4320), "1 h 12 min"),
        (formatting.counted(1, "cell"), "1 cell"),
        (formatting.counted(1200, "cell"), "1,200 cells"),
        (formatting.moment(BEGAN), "2026-11-20 09:30 UTC"),
    ],
)
def test_numbers_are_told_as_people_read_them(shown: str, expected: str) -> None:
    assert shown.replace("\N{NO-BREAK SPACE}", " ") == expected


def test_the_first_sentence_tells_what_was_run_and_what_it_cost() -> None:
    report = samples.study()
    sentence = f"{overview.headline(report)} {overview.cost(report)}".replace("\N{NO-BREAK SPACE}", " ")
    assert sentence == (
        "18 cells of up to 12 servers (i4i.xlarge) and 4 drivers (c6i.2xlarge), in 3 zones, spot and on-demand. "
        "It cost $33.42 (and what has no price); $31.20 were expected, and at most $118.75."
    )


def test_key_figures_are_of_cells_that_succeeded() -> None:
    report = samples.study()
    best = report.cells[0].model_copy(update={"status": "INVALID"})
    phase = best.phases[0]
    faster = [one.model_copy(update={"per_second": 1e9}) for one in phase.operations]
    cells = [best.model_copy(update={"phases": [phase.model_copy(update={"operations": faster})]}), *report.cells[1:]]
    figures = {key.label: key for key in overview.keys(report.model_copy(update={"cells": cells}))}
    assert figures["Cells succeeded"].value == "16 of 18"
    assert figures["Highest throughput"].note == "all operations, n12, threads=200"
    assert figures["Efficiency at 12 servers"].note == "write, relative to ideal growth, threads=50"


def _measured(number: int, scale: str, repetition: int, rate: float, **more: Any) -> Cell:
    """A cell with the total of all operations, and a rare one of them that costs next to nothing."""
    fields = {
        "role": "drivers",
        "operation": "all operations",
        "count": int(rate * 10),
        "p99_ms": 5.0,
        "cost_per_million": 2.0,
    }
    total = Operation(**{**fields, "per_second": rate, **more})
    reads = total.model_copy(update={"operation": "read", "per_second": 1.0})
    beats = Operation(role="drivers", operation="beat", count=9, per_second=9e9, cost_per_million=1e-6)
    return Cell(
        cell=f"c{number:03d}",
        label=f"{scale}, #{repetition}",
        scale=scale,
        repetition=repetition,
        status="SUCCEEDED",
        phases=[Phase(phase="measure", nodes=1, measured_seconds=10, operations=[beats, reads], totals=[total])],
    )


def test_key_figures_are_of_all_repetitions_and_of_all_operations() -> None:
    """One lucky repetition of n3 has the greatest rate and the least cost of all; n6 does more, for less."""
    cells = [
        _measured(1, "n3", 1, 100.0, p99_ms=5.0, cost_per_million=3.0),
        _measured(2, "n3", 2, 900.0, p99_ms=1.0, cost_per_million=0.5),
        _measured(3, "n3", 3, 100.0, p99_ms=9.0, cost_per_million=4.0),
        _measured(4, "n6", 1, 400.0, p99_ms=7.0, cost_per_million=2.0),
        _measured(5, "n6", 2, 625.0, p99_ms=6.0, cost_per_million=1.0),
    ]
    figures = {key.label: key for key in overview.keys(samples.bare().model_copy(update={"cells": cells}))}
    assert (figures["Highest throughput"].value, figures["Highest throughput"].note) == ("500/s", "all operations, n6")
    assert figures["p99 at highest throughput"].value.replace("\N{NO-BREAK SPACE}", " ") == "6.50 ms"
    cheapest = figures["Lowest cost per million"]
    assert (cheapest.value, cheapest.note) == ("$1.50", "all operations, n6")


def test_charts_come_from_beside_the_code_or_from_the_checkout(tmp_path: Path) -> None:
    beside, checkout = tmp_path / "a.js", tmp_path / "b.js"
    checkout.write_text("checkout", encoding="utf-8")
    assert assets.chart_script((beside, checkout)) == "checkout"
    beside.write_text("beside", encoding="utf-8")
    assert assets.chart_script((beside, checkout)) == "beside"


def test_missing_charts_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(assets.MissingChartsError, match="make setup"):
        assets.chart_script((tmp_path / "none.js",))


def test_efficiency_is_the_mean_of_the_repetitions_with_the_most_nodes() -> None:
    parts = [(3, 1.0), (6, 0.5), (6, 0.7)]
    points = [Point(cell=f"c{n}", nodes=n, per_second=1.0, efficiency=each) for n, each in parts]
    one = Scaling(
        label="threads=4", phase="measure", role="drivers", operation="read", counted="servers", points=points
    )
    few = one.model_copy(update={"points": points[:1]})
    (figure,) = overview._growth(samples.bare().model_copy(update={"scaling": [few, one]}))
    assert (figure.label, figure.value) == ("Efficiency at 6 servers", "60\N{NO-BREAK SPACE}%")
    assert figure.note == "read, relative to ideal growth, threads=4"
