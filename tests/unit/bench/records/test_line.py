import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.records.line import LARGEST, Figures, Line, Values, changes, fitted
from troop.shared import codec
from troop.shared.aws.dynamo import plain, typed

AT = datetime(2026, 11, 20, 17, 5, tzinfo=UTC)
READS = Figures(
    "n3",
    "measure",
    "threads=50",
    "drivers",
    "read",
    values=(Values(103.0, 1.5, 1.25, 9.0, 0.125, 0.0), Values(99.0, None, None, 9.5)),
    baseline=(Values(100.0, 1.25, 1.0, 8.0, 0.25, 0.5), Values(100.0, 1.0, 1.0, 8.5)),
)
LINE = Line(
    "run-1",
    "nightly",
    AT,
    "small",
    "SUCCEEDED",
    "1.2",
    version="abc123",
    versions={"type servers": "i4i.large", "kernel": "6.1.1"},
    baseline={"parameters.version": "1.2", "parameters.options": {"a": (1, 2)}},
    cost=Decimal("1.25"),
    figures=(READS, replace(READS, operation="write", baseline=())),
)


def test_line_is_read_back_from_a_table_and_from_json() -> None:
    document = codec.to_document(LINE)
    assert codec.from_document(Line, plain(typed(document))) == LINE
    assert codec.from_document(Line, json.loads(json.dumps(document, default=float))) == LINE
    bare = Line("run-1", "nightly", AT, None, "FAILED", "1.2")
    assert codec.from_document(Line, plain(typed(codec.to_document(bare)))) == bare


def test_figures_are_stored_as_lists_of_short_numbers() -> None:
    document = codec.to_document(replace(READS, values=(Values(1234567.891, 1 / 3),), baseline=()))
    assert document["values"] == [[1234570.0, 0.333333, None, None, None, None]]
    assert "baseline" not in document


def test_line_with_further_figures_of_a_later_version_is_read() -> None:
    document = codec.to_document(READS) | {"values": [[1, 2, 3, 4, 5, 0, 6]], "baseline": []}
    assert codec.from_document(Figures, document).values == (Values(1.0, 2.0, 3.0, 4.0, 5.0, 0.0),)


@given(st.integers(0, 1500), st.integers(1, 30))
def test_measurements_that_do_not_fit_are_counted(measurements: int, cells: int) -> None:
    figures = tuple(
        Figures(f"Größe={n}", "measure", "", "drivers", "read", (Values(1 / 3, 1 / 7, 1 / 9, 1 / 11, 1 / 13),) * cells)
        for n in range(measurements)
    )
    line = fitted(replace(LINE, figures=figures))
    assert line.figures == figures[: len(line.figures)]
    assert line.left_out == measurements - len(line.figures)
    assert len(json.dumps(codec.to_document(line), default=str, ensure_ascii=False).encode()) <= LARGEST
    if line.left_out:
        one_more = replace(line, figures=figures[: len(line.figures) + 1])
        assert len(json.dumps(codec.to_document(one_more), default=str, ensure_ascii=False).encode()) > LARGEST - 1000


def test_level_is_a_mean_of_ratios_where_there_is_a_baseline() -> None:
    assert READS.level() == pytest.approx((1.03 * 0.99) ** 0.5)
    assert READS.level("mean_ms") == pytest.approx(1.2)  # only one pair is known
    assert READS.level("errors") is None
    assert replace(READS, baseline=()).level() == pytest.approx((103 * 99) ** 0.5)


def test_name_of_a_measurement_has_no_empty_parts() -> None:
    assert READS.name == "n3 · measure · threads=50 · drivers · read"
    assert replace(READS, variant="", point="").name == "measure · drivers · read"


def test_changes_between_runs_name_versions_types_and_the_user_s_version() -> None:
    later = replace(
        LINE, version="def456", troop="1.3", versions={"type servers": "i4i.large", "kernel": "6.1.2", "agent": "f00"}
    )
    assert changes(LINE, later) == {
        "version": ("abc123", "def456"),
        "kernel": ("6.1.1", "6.1.2"),
        "agent": ("", "f00"),
        "Troop": ("1.2", "1.3"),
    }
    assert changes(LINE, replace(LINE, run="run-2", cost=None, figures=())) == {}
