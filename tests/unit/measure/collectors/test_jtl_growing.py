"""JMeter's log read while it grows, and by several processes: the results are those of reading it at the end."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.measure.collectors.test_jtl_columns import (
    HEADER,
    START,
    WHOLE,
    broken_rows,
    odd_rows,
    outcome,
    text_of,
    usual_rows,
)
from troop.measure import operations
from troop.measure.collectors import growing, jtl, jtl_columns, jtl_pool
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.jtl_columns import Counts, Labels, Tally, counts_of
from troop.measure.collectors.window import Window

WINDOW = Window(START, START + 5)


class Grown:
    """A file that grows by another piece at each look at its writer, which ends after the last piece."""

    def __init__(self, path: Path, pieces: list[bytes]) -> None:
        self.path, self.pieces = path, iter(pieces)

    def is_over(self) -> bool:
        piece = next(self.pieces, None)
        if piece is None:
            return True
        with self.path.open("ab") as file:
            file.write(piece)
        return False


class Helpers:
    """Other processes, in this one: each has a tally of its own, and they take turns.

    Args:
        waits: for each question whether much of the log is waiting.
    """

    waits: Callable[[], bool]
    number = 2
    most = 3
    fails = False

    def __init__(self, layout: Any, window: Window, waiting: Any, *, stamped_at_end: bool) -> None:
        labels = [Labels(finds_parts=layout.finds_parts) for _ in range(self.number)]
        self.tallies = [Tally(layout, window, one, stamped_at_end=stamped_at_end) for one in labels]
        self.turn = 0

    def is_behind(self) -> bool:
        return type(self).waits()

    def count(self, text: str) -> Future[Counts | None]:
        self.turn += 1
        future: Future[Counts | None] = Future()
        if self.fails and self.turn > 1:
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(counts_of(self.tallies[self.turn % self.number], text))
        return future

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def grown(path: Path, pieces: list[bytes], window: Window, stamped_at_end: bool) -> Any:
    """What reading of a growing log gives, in the form of :func:`outcome`."""
    path.unlink(missing_ok=True)
    problems, file = Problems(), Grown(path, pieces)
    try:
        with patch.object(growing, "PAUSE_SECONDS", 0):
            log = jtl.follow(path, file.is_over, window, problems, stamped_at_end=stamped_at_end)
    except CollectorError as error:
        return str(error).replace(str(path), "a")
    lines = [line.replace(str(path), "a") for line in problems.lines()]
    return [*log.operations], operations.document_of(log.operations), log.outside, lines


@settings(max_examples=200, deadline=None)
@given(
    first=st.lists(usual_rows, max_size=30),
    others=st.just([]) | st.lists(usual_rows | odd_rows | broken_rows, max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    cuts=st.lists(st.integers(0, 5000), max_size=8),
    part=st.sampled_from([1, 200, 1 << 16]),
    block=st.sampled_from([1, 90, 1 << 16]),
    waits=st.lists(st.booleans(), min_size=1, max_size=12),
    window=st.sampled_from([WINDOW, Window(START + 1.5, START + 4.25, 1.75)]),
    is_cut=st.booleans(),
    stamped_at_end=st.booleans(),
    fails=st.sampled_from([False, False, True]),
)
def test_a_growing_log_gives_what_the_whole_log_gives(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[Any],
    others: list[Any],
    end: str,
    quoting: Any,
    cuts: list[int],
    part: int,
    block: int,
    waits: list[bool],
    window: Window,
    is_cut: bool,
    stamped_at_end: bool,
    fails: bool,
) -> None:
    """Pieces end anywhere: within a line, a quoted label, a line end, or a character of two bytes."""
    text = "".join(text_of(row, end, quoting) for row in [HEADER, *first, *others])
    text = text[:-3] if is_cut else text
    expected = outcome(text, window, stamped_at_end)
    data = text.encode("utf-8")
    at = sorted({min(cut, len(data)) for cut in cuts})
    pieces = [data[begin:until] for begin, until in zip([0, *at], [*at, len(data)], strict=True)]
    answers: Iterator[bool] = iter([])

    def behind() -> bool:
        nonlocal answers
        answer = next(answers, None)
        if answer is None:
            answers = iter(waits)
            answer = next(answers)
        return answer

    path = tmp_path_factory.getbasetemp() / f"growing-{os.getpid()}.jtl"
    with (
        patch.object(Helpers, "waits", staticmethod(behind), create=True),
        patch.object(Helpers, "fails", fails),
        patch.object(jtl, "Processes", Helpers),
        patch.multiple(jtl_columns, PART=part, BLOCK=block),
    ):
        assert grown(path, pieces, window, stamped_at_end) == expected


@pytest.mark.parametrize("later", [0, 2])
def test_a_request_of_a_sampler_is_found_though_another_process_read_its_sampler(later: int) -> None:
    """And if this process reads it after the others."""
    rows = [WHOLE, (*WHOLE[:5], "users 1-2", *WHOLE[6:]), (*WHOLE[:2], "list-0", *WHOLE[3:]), WHOLE]
    text = "".join(text_of(row, "\n") for row in [HEADER, *rows])
    answers = iter([True] * (4 - later) + [False] * 9)
    with (
        patch.object(Helpers, "waits", staticmethod(lambda: next(answers)), create=True),
        patch.object(Helpers, "number", 3),
        patch.object(jtl, "Processes", Helpers),
        patch.multiple(jtl_columns, PART=1, BLOCK=1),
    ):
        result = outcome(text, WINDOW, False)
    assert result == outcome(text, WINDOW, False)
    assert result[1]["list"]["histogram"]["count"] == 3
    assert list(result[0]) == ["list"], "the request within the sample does not count again"


def test_quoted_labels_at_the_end_of_a_part_do_not_end_the_work_of_processes() -> None:
    """However much longer a part is than the longest field."""
    rows = [(START * 1000 + n, 5, "two\nlines", 200, "OK", "t", "true", 1, 0) for n in range(300)]
    text = "".join(text_of(row, "\n", csv.QUOTE_ALL) for row in [HEADER, *rows])
    with (
        patch.object(Helpers, "waits", staticmethod(lambda: True), create=True),
        patch.object(jtl, "Processes", Helpers),
        patch.object(jtl._Once, "of", side_effect=AssertionError("read by rows")),
        patch.multiple(jtl_columns, PART=2000, BLOCK=100, LONGEST_FIELD=500),
    ):
        (one,) = outcome(text, WINDOW, False)[1].values()
    assert one["histogram"]["count"] == 300


def test_real_processes_give_what_one_gives(tmp_path: Path) -> None:
    rows = [
        (
            START * 1000 + n,
            n % 97,
            f"la,bel \n{n % 7}",
            200 if n % 50 else 500,
            "OK",
            f"t {n % 5}",
            str(bool(n % 50)).lower(),
            n,
            0,
        )
        for n in range(4000)
    ]
    path = tmp_path / "results.jtl"
    path.write_text("".join(text_of(row, "\n") for row in [HEADER, *rows]), newline="")
    expected = outcome(path.read_text(), WINDOW, False)
    started: list[int] = []

    class Two(jtl_pool.Processes):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options, number=2)

        def count(self, text: str) -> Future[Counts | None]:
            started.append(len(text))
            return super().count(text)

    with (
        patch.object(jtl, "Processes", Two),
        patch.multiple(jtl_pool, FAR=1, PART=1),
        patch.multiple(jtl_columns, PART=20_000),
    ):
        assert grown(path, [path.read_bytes()], WINDOW, False) == expected
    assert len(started) > 3


def test_a_log_that_never_comes_is_missing(tmp_path: Path) -> None:
    answers = iter([False, False, True])
    with patch.object(growing, "PAUSE_SECONDS", 0), pytest.raises(FileNotFoundError):
        jtl.follow(tmp_path / "no.jtl", lambda: next(answers), WINDOW, Problems())


def test_memory_does_not_grow_with_what_is_waiting() -> None:
    """However far behind the reader is, few parts are read ahead."""
    most: list[int] = []

    class Slow(Helpers):
        def count(self, text: str) -> Future[Counts | None]:
            most.append(self.turn)
            return super().count(text)

    rows = [WHOLE] * 200
    text = "".join(text_of(row, "\n") for row in [HEADER, *rows])
    held: list[int] = []
    settle = jtl_columns.Columns._settle

    def settled(self: Any, number: int) -> bool:
        held.append(len(self._parts))
        return settle(self, number)

    with (
        patch.object(Slow, "waits", staticmethod(lambda: True), create=True),
        patch.object(jtl, "Processes", Slow),
        patch.multiple(jtl_columns, PART=50, BLOCK=50),
        patch.object(jtl_columns.Columns, "_settle", settled),
    ):
        assert outcome(text, WINDOW, False)[1]["list"]["histogram"]["count"] == 200
    assert len(most) > 50
    assert max(held) == Slow.most
