"""The lines of a benchmark's ended runs: all of them, newest first, by few queries."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.account.account import calls
from tests.unit.account.asking import ask, get
from tests.unit.account.bench import Half
from troop.bench.records.line import Figures, Line, Values
from troop.shared import codec

READS = Figures(
    "n3", "measure", "", "drivers", "read", (Values(101.5, 1.5, 1.25, 9.0, 0.125, 0.0),), (Values(100.0, None),)
)


def line(half: Half, night: int, name: str = "reads", figures: int = 1) -> Line:
    at = half.account.clock() + timedelta(days=night)
    return Line(
        f"{at:%Y%m%d-%H%M%S}-{name}",
        name,
        at,
        "small" if night % 2 else None,
        "SUCCEEDED",
        "1.2",
        version=f"commit-{night}",
        schedule="nightly",
        versions={"kernel": "6.1.1"},
        baseline={"parameters.version": "1.2"},
        cost=Decimal("0.25"),
        figures=(READS,) * figures,
    )


def test_lines_are_read_newest_first_by_pages_as_they_were_stored(half: Half) -> None:
    lines = [line(half, night) for night in range(5)]
    for one in (*lines, line(half, 2, name="writes"), lines[3]):
        half.runs.lines.put(one)
    read, cursor = list[Line](), None
    while True:
        page = get("/benchmarks/history", name="reads", limit=2, **({"cursor": cursor} if cursor else {}))
        assert len(page["lines"]) <= 2
        read += [codec.from_document(Line, json.loads(json.dumps(one))) for one in page["lines"]]
        if (cursor := page["cursor"]) is None:
            break
    assert read == lines[::-1]
    assert get("/benchmarks/history", name="none") == {"lines": [], "malformed": [], "cursor": None}


def test_runs_are_listed_without_lines_and_lines_without_runs(half: Half) -> None:
    half.runs.lines.put(line(half, 1))
    assert get("/benchmarks")["runs"] == []
    assert len(list(half.runs.lines.newest("reads", 10))) == 1


def test_a_line_that_cannot_be_read_hides_no_other(half: Half) -> None:
    for night in range(3):
        half.runs.lines.put(line(half, night))
    broken = line(half, 1).run
    half.account.change("Runs", {"run": broken, "item": "line"}, figures=[{"values": "none"}])
    answer = get("/benchmarks/history", name="reads")
    assert [one["version"] for one in answer["lines"]] == ["commit-2", "commit-0"]
    assert [one["item"] for one in answer["malformed"]] == [f"Runs: {broken}, line"]


def test_newest_lines_are_bounded_and_beyond_one_megabyte(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB ends a page at a megabyte: a line of 1,500 measurements has some 200 KB."""
    for night in range(9):
        half.runs.lines.put(replace(line(half, night, figures=1500), version=str(night)))
    with calls(monkeypatch) as operations:
        newest = [one.version for one in half.runs.lines.newest("reads", 8)]
    assert newest == ["8", "7", "6", "5", "4", "3", "2", "1"]
    assert operations == ["Query", "Query"]


@pytest.mark.parametrize(
    "query",
    [{}, {"name": ""}, {"name": "reads", "limit": 1001}, {"name": "reads", "cursor": "nonsense"}, {"name": "x" * 65}],
)
def test_a_wrong_request_is_refused(half: Half, query: dict[str, Any]) -> None:
    assert half.account
    assert ask("GET", "/benchmarks/history", **query)[0] == 400


def test_a_cursor_is_of_one_benchmark_only(half: Half) -> None:
    for night in range(2):
        half.runs.lines.put(line(half, night))
    cursor = get("/benchmarks/history", name="reads", limit=1)["cursor"]
    assert ask("GET", "/benchmarks/history", name="writes", limit=1, cursor=cursor)[0] == 400
