"""JMeter's log read while it grows: the results are those of reading it at the end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troop.measure import operations
from troop.measure.collectors import growing, jtl
from troop.measure.collectors.common import Problems
from troop.measure.collectors.window import Window

HEADER = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes"
START = 1_790_000_000
WINDOW = Window(START, START + 5, 1)
ROWS = st.builds(
    "{},{},{},{},OK,users 1-{},{},7".format,
    st.integers(START * 1000 - 3000, START * 1000 + 9000) | st.sampled_from(["", -5]),
    st.integers(0, 3000),
    st.sampled_from(["list", "list-0", "größe", '"a, b"', '"two\nlines"', '"open', "nul\0"]),
    st.sampled_from([200, 404]),
    st.integers(1, 2),
    st.sampled_from(["true", "false"]),
)


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


def outcome(path: Path, is_over: Any) -> Any:
    problems = Problems()
    with patch.object(growing, "PAUSE_SECONDS", 0):
        log = jtl.follow(path, is_over, WINDOW, problems)
    return [*log.operations], operations.document_of(log.operations), log.outside, problems.lines()


@settings(deadline=None)
@given(
    rows=st.lists(ROWS, max_size=20),
    end=st.sampled_from(["\n", "\r\n"]),
    cuts=st.lists(st.integers(0, 2000), max_size=8),
    is_cut=st.booleans(),
)
def test_a_growing_log_gives_what_the_whole_log_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], end: str, cuts: list[int], is_cut: bool
) -> None:
    """Pieces end anywhere: within a line, a quoted label, a line end, or a character of two bytes."""
    text = end.join([HEADER, *rows, ""])
    data = (text[:-3] if is_cut else text).encode()
    at = sorted({min(cut, len(data)) for cut in cuts})
    pieces = [data[begin:until] for begin, until in zip([0, *at], [*at, len(data)], strict=True)]
    path = tmp_path_factory.getbasetemp() / f"growing-{os.getpid()}.jtl"
    path.write_bytes(data)
    expected = outcome(path, lambda: True)
    path.unlink()
    assert outcome(path, Grown(path, pieces).is_over) == expected
    path.unlink()


def test_a_log_that_never_comes_is_missing(tmp_path: Path) -> None:
    answers = iter([False, False, True])
    with patch.object(growing, "PAUSE_SECONDS", 0), pytest.raises(FileNotFoundError):
        jtl.follow(tmp_path / "no.jtl", lambda: next(answers), WINDOW, Problems())
