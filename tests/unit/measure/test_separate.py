"""What only a single node can tell: what is written can be read again, and what is none is refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.collect import separate_in
from tests.unit.measure.build import separates
from troop.measure.operations import OperationsError
from troop.measure.separate import FORMAT, MOST_PERCENTILES, MOST_ROWS, Separate, file_of, parse, parse_file

ROW = {"operation": "get", "count": 10}


def file(**changes: Any) -> dict[str, Any]:
    return {"format": FORMAT, "tool": "wrk", "rows": [ROW], **changes}


def row(**changes: Any) -> dict[str, Any]:
    return file(rows=[ROW, {**ROW, **changes}])


@given(st.lists(separates, max_size=3))
def test_written_rows_can_be_read(rows: list[Separate]) -> None:
    assert parse(json.loads(json.dumps([one.document() for one in rows])), "it") == tuple(rows)


def test_a_file_is_of_one_tool() -> None:
    rows = [Separate("wrk", "get", 10, 2.5, {"timeout": 1}, percentiles={"99.9": 8.0})]
    assert parse_file(json.loads(json.dumps(file_of("wrk", rows)))) == tuple(rows)


def test_absent_fields_stay_absent() -> None:
    assert parse_file(file()) == (Separate("wrk", "get", 10),)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "format must be troop.separate/1"),
        (file(format="troop.separate/2"), "format must be troop.separate/1"),
        (file(rows={}), "rows must be a list of objects"),
        (file(rows=["get"]), "rows must be a list of objects"),
        (file(rows=[ROW] * (MOST_ROWS + 1)), f"at most {MOST_ROWS} rows"),
        (file(tool=None), r"rows\[0\]\.tool: 'None' must match"),
        (row(operation="a b"), r"rows\[1\]\.operation: 'a b' must match"),
        (row(count=1.5), r"rows\[1\]\.count must be a whole number"),
        (row(per_second=-1), r"rows\[1\]\.per_second must be a number from 0, or null"),
        (row(mean_ms=True), r"mean_ms must be a number"),
        (row(max_ms=float("nan")), r"max_ms must be a number"),
        (row(bytes_per_second=10**400), r"bytes_per_second must be a number"),
        (row(errors={"timeout": -1}), r"errors\.timeout must be a whole number"),
        (row(percentiles=[]), "percentiles must be an object"),
        (row(percentiles={str(n): 1 for n in range(MOST_PERCENTILES + 1)}), f"at most {MOST_PERCENTILES} times"),
        (row(percentiles={"p99": 1}), "'p99' must be a percent"),
        (row(percentiles={"100.5": 1}), "'100.5' must be a percent"),
        (row(percentiles={"99": None}), r"percentiles\.99 must be a number"),
    ],
)
def test_malformed_file_is_refused_with_a_reason(bad: Any, message: str) -> None:
    with pytest.raises(OperationsError, match=message):
        parse_file(bad)


# ------------------------------------------------------------------ what the agent makes of them


def test_a_file_that_cannot_be_read_takes_no_other_with_it(tmp_path: Path) -> None:
    contents = {"1": json.dumps(file()), "2": "{", "3": "[" * 100_000, "4": json.dumps(file(tool="iozone"))}
    for name, content in contents.items():
        (tmp_path / f"separate-{name}.json").write_text(content)
    problems: list[str] = []
    assert [one.tool for one in separate_in(tmp_path, problems)] == ["wrk", "iozone"]
    assert [problem.split(" of ")[0] for problem in problems] == ["separate-2.json", "separate-3.json"]


def test_a_node_has_no_more_rows_than_a_summary_holds(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"separate-{number}.json").write_text(json.dumps(file(rows=[ROW] * MOST_ROWS)))
    problems: list[str] = []
    assert len(separate_in(tmp_path, problems)) == MOST_ROWS
    assert problems == [f"the script left {2 * MOST_ROWS} separate rows; only {MOST_ROWS} are kept"]
