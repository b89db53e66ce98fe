"""What scripts leave: all of a node's files together, within the bounds of what the workflow reads."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import collect
from agent.collect import operations_in
from tests.unit.measure.build import START, histogram_of, summary
from troop.measure.operations import (
    MOST_FAILURES,
    MOST_LISTED,
    MOST_NAMES,
    OTHER,
    Operation,
    Operations,
    PerSecond,
    add_all,
    document_of,
)
from troop.measure.recorder import FORMAT
from troop.measure.summary import parse


def left(folder: Path, *files: Operations) -> Path:
    """As recorders and collectors leave them; the folder."""
    for number, operations in enumerate(files):
        document = {"format": FORMAT, "operations": document_of(operations)}
        (folder / f"operations-{number:03d}.json").write_text(json.dumps(document))
    return folder


def collected(folder: Path) -> Operations:
    problems: list[str] = []
    operations = operations_in(folder, problems)
    assert problems == []
    return operations


def named(prefix: str, names: int, kinds: int) -> Operations:
    """Each has succeeded once, and failed once of each kind; the first ones are called but for the prefix."""
    errors = {f"{prefix}-{n}" if n else prefix: 1 for n in range(kinds)}
    return {
        f"{prefix}{n:03d}" if n else prefix: Operation(
            histogram_of([n]), dict(errors), PerSecond(START, [1], [kinds]), bytes=7
        )
        for n in range(names)
    }


def total(operations: Operations) -> tuple[int, int, int, int]:
    return (
        sum(one.times.count for one in operations.values()),
        sum(sum(one.errors.values()) for one in operations.values()),
        sum(sum(one.per_second.count) + sum(one.per_second.errors) for one in operations.values()),
        sum(one.bytes for one in operations.values()),
    )


_many = st.builds(named, st.sampled_from(["a", "b", OTHER]), st.sampled_from([1, 133, MOST_NAMES]), st.just(1))
_faulty = st.builds(named, st.just("a"), st.just(1), st.sampled_from([40, MOST_FAILURES])) | st.builds(
    named, st.sampled_from(["b", OTHER]), st.just(2), st.just(40)
)


@settings(max_examples=20)
@given(st.lists(_many | _faulty, max_size=4))
def test_whatever_names_files_have_the_workflow_reads_them_together(files: list[Operations]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        operations = collected(left(Path(folder), *files))
    assert parse(json.loads(json.dumps(summary(operations=operations).document()))).operations == operations
    assert all(len(one.names) <= MOST_LISTED for one in operations.values())
    assert total(operations) == tuple(map(sum, zip(*map(total, files), strict=True)) if files else [0] * 4)


def test_names_beyond_the_first_ones_are_counted_together(tmp_path: Path) -> None:
    operations = collected(left(tmp_path, named("a", 140, 0), named("b", 140, 0)))
    first = [*named("a", 140, 0), *named("b", 116, 0)]
    assert list(operations) == [*first, OTHER]
    assert {operations[name].times.count for name in first} == {1}
    assert (operations[OTHER].times.count, operations[OTHER].times.min, operations[OTHER].times.max) == (24, 116, 139)
    assert operations[OTHER].names == {f"b{n}" for n in range(116, 140)}


def test_kinds_of_errors_beyond_the_first_ones_are_counted_together(tmp_path: Path) -> None:
    (operation,) = collected(
        left(tmp_path, *({"get": one} for p in ("a", "b") for one in named(p, 1, 50).values()))
    ).values()
    assert len(operation.errors) == MOST_FAILURES
    assert Counter(operation.errors)[OTHER] == 100 - (MOST_FAILURES - 1)


def test_as_many_names_as_there_may_be_keep_theirs(tmp_path: Path) -> None:
    assert set(collected(left(tmp_path, named("a", MOST_NAMES, 0), named("a", 3, 0)))) == set(named("a", MOST_NAMES, 0))


def test_a_file_that_cannot_be_read_takes_no_other_with_it(tmp_path: Path) -> None:
    good, late = named("get", 1, 0), Operation(histogram_of([1]), {}, PerSecond(START, [1], [0]), bytes=1)
    apart = {"get": Operation(histogram_of([2]), {}, PerSecond(0, [1], [0]), bytes=2), "put": late}
    left(tmp_path, good, {}, apart, {"put": late})
    (tmp_path / "operations-001.json").write_text("{")
    problems: list[str] = []
    both: Operations = {}
    add_all(both, {**good, "put": late})
    assert operations_in(tmp_path, problems) == both, "and nothing of those that were left out"
    assert [problem.split(": ")[0] for problem in problems] == [
        f"operations-{number}.json of the script's results cannot be read" for number in ("001", "002")
    ]


def test_first_of_very_many_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "MOST_FILES", 2)
    problems: list[str] = []
    operations = operations_in(left(tmp_path, *[named("get", 1, 0)] * 3), problems)
    assert (operations["get"].times.count, problems) == (2, ["the script left 3 operations files; only 2 are read"])
