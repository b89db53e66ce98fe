"""JMeter's logs read by columns: the results are those of the reader by rows, whatever the log holds."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troop.measure import operations
from troop.measure.collectors import jtl, jtl_columns
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.window import Window

HEADER = (
    "timeStamp",
    "elapsed",
    "label",
    "responseCode",
    "responseMessage",
    "threadName",
    "success",
    "bytes",
    "IdleTime",
)
START = 1_790_000_000
WHOLE = (START * 1000, 12, "list", 200, "OK", "users 1-1", "true", 5, 0)

usual = {
    "timeStamp": st.integers(START * 1000 - 3000, START * 1000 + 9000),
    "elapsed": st.integers(0, 3000),
    "label": st.sampled_from(
        ["list", "log out", "a, b", 'say "x"', "two\nlines", "three\r\nlines", '"', '""', '"a', 'a"', "ü", ""]
    ),
    "responseCode": st.sampled_from([200, 404, "Non HTTP response code: java.net.SocketTimeoutException", ""]),
    "responseMessage": st.sampled_from(["OK", "", "not, found"]),
    "threadName": st.sampled_from(["users 1-1", "users 1-2"]),
    "success": st.sampled_from(["true", "true", "true", "false"]),
    "bytes": st.sampled_from([0, 5, 70_000, ""]),
    "IdleTime": st.sampled_from([0, 0, 30, ""]),
}
odd = {
    "timeStamp": st.sampled_from(["", "2026/11/22 10:00:00", -5, 1 << 60]),
    "elapsed": st.sampled_from(["", "x", -1, 1 << 40, " 7", "1_0"]),
    "label": st.sampled_from(["list-0", "list-0-1", "log out-12", "-3", "nul\0"]),
    "responseMessage": st.just("Number of samples in transaction : 1, number of failing samples : 0"),
    "success": st.sampled_from(["", "TRUE"]),
    "bytes": st.sampled_from([-1, "x", 1 << 60]),
    "IdleTime": st.sampled_from([-40, "x", 1 << 60]),
}
usual_rows = st.tuples(*usual.values())
odd_rows = st.sampled_from([*odd]).flatmap(lambda name: st.tuples(*{**usual, name: odd[name]}.values()))
broken_rows = st.sampled_from(
    [
        '9,8,a""b,200,OK,t,true,1,0\n',
        '9,8,a"b,200,"OK","t",true,1,0\n',
        "\x010,\n",
        "\n",
        "1,2\n",
        '"open\n',
        '1,"a"b\n',
        "\r",
        'a"b,1\n',
    ]
)


def text_of(row: Sequence[Any] | str, end: str, quoting: Any = csv.QUOTE_MINIMAL) -> str:
    if isinstance(row, str):
        return row
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=end, quoting=quoting).writerow(row)
    return file.getvalue()


def outcome(text: str, window: Window, stamped_at_end: bool) -> Any:
    problems = Problems()
    try:
        log = jtl.counted(io.StringIO(text, newline=""), "a", window, problems, stamped_at_end=stamped_at_end)
    except CollectorError as error:
        return str(error)
    return [*log.operations], operations.document_of(log.operations), log.outside, problems.lines()


def by_rows(text: str, window: Window, stamped_at_end: bool) -> Any:
    with patch.object(jtl_columns.Columns, "take_from", lambda self, log: iter(())):
        return outcome(text, window, stamped_at_end)


@settings(max_examples=150, deadline=None)
@given(
    first=st.lists(usual_rows, max_size=30),
    others=st.just([]) | st.lists(usual_rows | odd_rows | broken_rows, max_size=8),
    block=st.sampled_from([1, 90, 400, 1 << 16]),
    most=st.sampled_from([3, 100_000]),
    window=st.sampled_from([Window(START, START + 5), Window(START + 1.5, START + 4.25, 1.75)]),
    end=st.sampled_from(["\n", "\r\n"]),
    columns=st.sampled_from([len(HEADER), len(HEADER), 8, 5]),
    is_cut=st.booleans(),
    stamped_at_end=st.booleans(),
)
def test_columns_give_what_rows_give(
    first: list[Any],
    others: list[Any],
    block: int,
    most: int,
    window: Window,
    end: str,
    columns: int,
    is_cut: bool,
    stamped_at_end: bool,
) -> None:
    header = HEADER[:4] + HEADER[6:] if columns == 5 else HEADER[:columns]  # 5: without thread and message
    numbers = [HEADER.index(name) for name in header]
    cut = [row if isinstance(row, str) else [row[at] for at in numbers] for row in first + others]
    text = "".join(text_of(row, end) for row in [header, *cut])
    text = text[:-3] if is_cut else text
    expected = by_rows(text, window, stamped_at_end)
    with patch.multiple(jtl_columns, BLOCK=block, MOST_COUNTS=most):
        assert outcome(text, window, stamped_at_end) == expected


@pytest.mark.parametrize("first", ["list", "list-0"])
def test_a_request_of_a_sampler_is_found_in_a_later_block(first: str) -> None:
    """Whichever of the two labels comes first, and for each thread by its own last sample."""
    rows = [(*WHOLE[:2], first, *WHOLE[3:]), (*WHOLE[:5], "users 1-2", *WHOLE[6:])]
    rows += [WHOLE, (*WHOLE[:2], "list-0", *WHOLE[3:])]
    text = "".join(text_of(row, "\n") for row in [HEADER, *rows])
    window = Window(START, START + 5)
    with patch.object(jtl_columns, "BLOCK", 1):
        assert outcome(text, window, False) == by_rows(text, window, False)


@pytest.mark.parametrize(
    "name", ["jmeter-5.6.3.jtl", "jmeter-5.6.3-transactions.jtl", "jmeter-5.6.3-no-subresults.jtl"]
)
def test_real_logs_give_what_rows_give(name: str) -> None:
    text = Path(__file__).with_name("data").joinpath(name).read_text()
    window = Window(1_795_287_000, 1_795_307_000)
    assert outcome(text, window, False) == by_rows(text, window, False)
    assert outcome(text, window, False)[0]


def test_the_first_names_stay_when_there_are_too_many() -> None:
    """Labels outside the measured time, and kinds of errors, take no name from those that follow."""
    rows: list[Any] = [(START * 1000 - 9000, 1, f"early {n}", 200, "OK", "t", "true", 1, 0) for n in range(90)]
    for n in range(200):
        good = "true" if n % 3 else "false"
        rows.append((START * 1000 + n, 1, f"label {n % 80}", 300 + n, "OK", f"t {n}", good, 1, 0))
        rows.append((START * 1000 + n, 1, "one", f"code.{n}", "OK", f"t {n}", "false", 1, 0))
    text = "".join(text_of(row, "\n") for row in [HEADER, *rows])
    window = Window(START, START + 5)
    expected = by_rows(text, window, False)
    with patch.object(jtl_columns, "BLOCK", 2000):
        assert outcome(text, window, False) == expected
    assert "label-61" in expected[0]
    assert "label-70" not in expected[0]


def test_usual_logs_are_read_by_columns() -> None:
    """Also quoted ones; that is what their speed depends on."""
    rows = [(START * 1000 + n, n % 9, 'a, "b"', 200, "OK", f"t {n % 5}", "true", 1, 0) for n in range(500)]
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        log = io.StringIO("".join(text_of(row, "\n", quoting) for row in [HEADER, *rows]), newline="")
        with patch.object(jtl._Once, "of", side_effect=AssertionError("read by rows")):
            counted = jtl.counted(log, "a", Window(START, START + 5), Problems())
        assert sum(one.times.count for one in counted.operations.values()) == 500
