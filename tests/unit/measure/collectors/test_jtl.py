"""JMeter's logs: what JMeter itself wrote, and what disks and people make of such files."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.measure.collectors import jtl, jtl_once
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.jtl_once import Once, Sample
from troop.measure.collectors.window import Window
from troop.measure.operations import Operations

DATA = Path(__file__).with_name("data")
REAL = DATA / "jmeter-5.6.3.jtl"
EVER = Window(1_795_287_000, 1_795_287_100)
HEADER = "timeStamp,elapsed,label,responseCode,success,bytes"


BLIND = (
    "a.jtl:1: the header has no responseMessage, threadName: transactions and requests of a sampler would "
    "count twice. Let JMeter save these columns (jmeter.save.saveservice.thread_name=true and "
    "response_message=true)"
)
"""What is said of most logs here, which have only what their tests are about."""


def read(text: str, window: Window = EVER, **how: Any) -> tuple[Operations, list[str]]:
    problems = Problems()
    operations = jtl.counted(io.StringIO(text, newline=""), "a.jtl", window, problems, **how).operations
    return operations, [line for line in problems.lines() if line != BLIND]


def samples(*rows: str) -> str:
    return "\n".join([HEADER, *rows, ""])


def test_samples_of_jmeter_are_counted_by_label() -> None:
    problems = Problems()
    operations = jtl.read(REAL, EVER, problems).operations
    assert problems.lines() == []
    with REAL.open(newline="") as file:
        rows = list(csv.DictReader(file))
    home = [int(row["elapsed"]) for row in rows if row["label"].startswith("GET")]
    assert set(operations) == {"GET-the-home-page-4f4e59ec", "missing", "nobody-there"}
    home_page = operations["GET-the-home-page-4f4e59ec"]
    assert (home_page.times.count, home_page.times.min, home_page.times.max) == (
        len(home),
        min(home) * 1000,
        max(home) * 1000,
    )
    assert home_page.times.sum == sum(home) * 1000
    assert home_page.bytes == sum(int(row["bytes"]) for row in rows if row["label"].startswith("GET"))
    assert sum(home_page.per_second.count) == len(home)
    assert operations["missing"].errors == {"404": 32}
    assert operations["nobody-there"].errors == {"HttpHostConnectException": 32}
    assert operations["missing"].times.count == 0


def test_columns_are_recognized_by_their_names() -> None:
    text = "label,extra,success,elapsed,timeStamp\nread,x,true,7,1795287010000\n"
    operations, problems = read(text)
    assert problems == []
    assert operations["read"].times.max == 7000


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("timeStamp,elapsed,label", "no success"),
        ("1795287010000,7,read,200,true,1", "no timeStamp, elapsed, label, success"),
        ("", "no timeStamp"),
        (HEADER + ",label", "twice"),
    ],
)
def test_a_log_without_its_header_is_refused(header: str, message: str) -> None:
    with pytest.raises(CollectorError, match=rf"a\.jtl:1: .*{message}"):
        read(header + "\n1795287010000,7,read,200,true,1\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1795287010000,7,read,200,tru", "a.jtl:3: the row has 5 columns, but the header has 6"),
        ("1795287010000,x,read,200,true,1", "a.jtl:3: invalid literal"),
        ("1795287010000,-7,read,200,true,1", "a.jtl:3: elapsed is -7"),
        ("17952x,7,read,200,true,1", "a.jtl:3: invalid literal"),
        ("1795287010000,7,read,200,true,-1", "a.jtl:3: bytes is -1: must be from 0 to "),
        (f"1795287010000,7,read,200,true,{2**53}", f"a.jtl:3: bytes is {2**53}"),
        ("1795287010000,7,read,200,maybe,1", "a.jtl:3: success is 'maybe'"),
        ('1795287010000,7,"read,200,true,1', "a.jtl:"),
        ("\0\0\0\0\nhalf", "a.jtl:"),
    ],
)
def test_damaged_line_is_a_problem_and_other_lines_count(row: str, message: str) -> None:
    good = "1795287010000,5,read,200,true,1"
    operations, (problem, *_) = read(samples(good, row, good))
    assert message in problem
    assert operations["read"].times.count == 2


def test_timestamps_in_words_are_one_problem_with_its_solution() -> None:
    problems = Problems()
    rows = [f"2026/11/22 03:00:0{n}.123,5,read,200,true,1" for n in range(9)]
    log = jtl.counted(io.StringIO(samples(*rows, "1795287010000,5,read,200,true,1")), "a.jtl", EVER, problems)
    assert log.operations["read"].times.count == 1
    blind, problem, more = problems.lines()
    assert (blind, more) == (BLIND, "and 8 more")
    assert problem == (
        "a.jtl:2: timeStamp is '2026/11/22 03:00:00.123': must be in milliseconds: set "
        "jmeter.save.saveservice.timestamp_format=ms"
    )


def test_a_quote_without_an_end_takes_no_other_line_with_it() -> None:
    """As of a process that was killed, or a disk that was full, and of a log that went on afterwards."""
    good = ["1795287010000,5,read,200,true,1", '1795287010000,5,"read",200,true,1']
    rows = ['1795287010000,5,"Internal server er', *good, '1795287010000,5,"again', *good * 20, '1795287010000,5,"last']
    operations, problems = read(samples(*rows))
    assert operations["read"].times.count == 42
    assert [problem.split(": ")[0] for problem in problems] == ["a.jtl:2", "a.jtl:5", "a.jtl:46"]


def test_many_quotes_without_an_end_are_read_in_a_row() -> None:
    """Each may be looked for to the end of a field at its longest, which is no more than a megabyte."""
    good = "1795287010000,5,read,200,true,1"
    rows = [good] * 30_000
    rows[10_000] = rows[20_000] = '1795287010000,5,"rea'
    operations, problems = read(samples(*rows))
    assert operations["read"].times.count == 29_998
    assert [problem.split(": ")[0] for problem in problems] == ["a.jtl:10002", "a.jtl:20002"]


def test_a_message_of_several_lines_is_one_column() -> None:
    operations, problems = read(samples('1795287010000,5,"read\nmore",200,true,1', "1795287010000,5,b,500,false,1"))
    assert problems == []
    assert operations["read-more-fe556efe"].times.count == 1
    assert operations["b"].errors == {"500": 1}


@pytest.mark.parametrize(
    ("stamp", "elapsed", "counts", "at_end"),
    [
        (9_000, 999, False, False),
        (9_000, 1_000, True, False),
        (19_000, 999, True, False),
        (19_000, 1_000, False, False),
        (9_999, 500, False, True),
        (10_000, 9_000, True, True),
    ],
)
def test_sample_that_ends_outside_of_the_measured_time_is_left_out(
    stamp: int, elapsed: int, counts: bool, at_end: bool
) -> None:
    window = Window(1_795_287_010, 1_795_287_020)
    row = f"{1_795_287_000_000 + stamp},{elapsed},read,200,true,1"
    operations, _ = read(samples(row), window, stamped_at_end=at_end)
    assert bool(operations) == counts


@given(st.lists(st.tuples(st.integers(0, 9_999), st.integers(0, 5_000), st.booleans()), max_size=40))
def test_every_sample_counts_once(entries: list[tuple[int, int, bool]]) -> None:
    rows = [f"{1_795_287_000_000 + stamp},{elapsed},read,200,{str(good).lower()},3" for stamp, elapsed, good in entries]
    operations, problems = read(samples(*rows))
    assert problems == []
    good = [elapsed for _, elapsed, is_good in entries if is_good]
    if entries:
        assert operations["read"].times.count == sum(operations["read"].per_second.count) == len(good)
        assert operations["read"].errors.get("200", 0) == sum(operations["read"].per_second.errors)
        assert operations["read"].times.count + operations["read"].errors.get("200", 0) == len(entries)
        assert operations["read"].times.sum == sum(good) * 1000


@pytest.mark.parametrize("labels", [256, 1000])
def test_the_first_256_labels_have_operations_and_the_others_one_together(labels: int, tmp_path: Path) -> None:
    log = tmp_path / "log.jtl"
    rows = [f"1795287010000,{n},label {n % labels},200,true,1" for n in range(2 * labels)]
    log.write_text(samples(*rows))
    counted = jtl.read(log, EVER, Problems())
    operations = dict(counted.operations)
    assert all(operations[f"label-{n}"].times.count == 2 for n in range(256))
    rest = operations.pop("other", None)
    assert (len(operations), rest.times.count if rest else 0) == (256, 2 * (labels - 256))
    note = "at least 128 labels after the first 256 are counted together as other, such as label-256"
    assert counted.notes("samples") == ([note] if rest else [])


NAMED = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes"


def named(*rows: tuple[int, int, str, str, str]) -> str:
    """Rows of start, time, label, message and thread."""
    lines = [
        f'{1_795_287_000_000 + start},{took},{label},200,"{message}",{thread},true,5'
        for start, took, label, message, thread in rows
    ]
    return "\n".join([NAMED, *lines, ""])


TWO = "Number of samples in transaction : 2, number of failing samples : 0"


def test_a_request_counts_once_though_jmeter_logs_its_redirects_and_transactions_too() -> None:
    """Of three users, five times: one sampler is redirected; one transaction comes after its parts, two before."""
    window = Window(1_795_299_080, 1_795_299_100)
    problems = Problems()
    operations = jtl.read(DATA / "jmeter-5.6.3-transactions.jtl", window, problems).operations
    assert problems.lines() == []
    requests = {"home", "cart", "pay", "search", "form", "post", "view", "open", "save"}
    counts = {name: operation.times.count + sum(operation.errors.values()) for name, operation in operations.items()}
    assert counts == dict.fromkeys(requests, 15)
    assert operations["search"].bytes == 15 * 495, "of both of its requests"


def test_transactions_count_where_jmeter_does_not_log_their_parts() -> None:
    """The same plan with jmeter.save.saveservice.subresults=false."""
    window = Window(1_795_299_080, 1_795_299_100)
    operations = jtl.read(DATA / "jmeter-5.6.3-no-subresults.jtl", window, Problems()).operations
    counts = {name: operation.times.count + sum(operation.errors.values()) for name, operation in operations.items()}
    assert counts == dict.fromkeys({"home", "cart", "pay", "search", "login", "view", "edit"}, 15)


@pytest.mark.parametrize(
    ("rows", "counted"),
    [
        ([(1000, 10, "a", "OK", "1"), (1005, 30, "b", "OK", "2"), (1000, 32, "t", TWO, "1")], {"a": 1, "b": 1}),
        ([(1000, 10, "a", "OK", "1"), (1011, 32, "t", TWO, "1"), (1050, 32, "t", TWO, "1")], {"a": 1, "t": 2}),
        ([(1000, 9, "t", TWO, "1"), (1000, 4, "a", "OK", "1"), (1004, 5, "b", "OK", "1")], {"a": 1, "b": 1}),
        ([(1000, 9, "t", TWO, "1"), (1001, 4, "a", "OK", "2"), (1010, 5, "b", "OK", "1")], {"t": 1, "a": 1, "b": 1}),
        ([(1000, 9, "a", "OK", "1"), (1009, 4, "a-0", "OK", "1")], {"a": 1, "a-0": 1}),
        ([(1000, 9, "a", "OK", "1"), (1000, 4, "a-b", "OK", "1"), (1004, 5, "/c", "OK", "1")], {"a": 1}),
        ([(1000, 9, "a", "OK", "1"), (1000, 4, "b", "OK", "2")], {"a": 1, "b": 1}),
        ([(1000, 9, "a", "OK", "1"), (1009, 0, "b", "OK", "1")], {"a": 1, "b": 1}),
        # A sampler without length: what was certain of the same labels before decides.
        ([(1000, 9, "a", "OK", "1"), (1000, 9, "b", "OK", "1"), (1020, 0, "a", "OK", "1"), (1020, 0, "b", "OK", "1")],
         {"a": 2}),
        ([(1000, 9, "a", "OK", "1"), (1000, 9, "b", "OK", "1"), (1020, 5, "a", "OK", "1"), (1025, 5, "b", "OK", "1"),
          (1031, 0, "a", "OK", "1"), (1031, 0, "b", "OK", "1")], {"a": 3, "b": 2}),
        ([(1000, 9, "a", "OK", "1"), (1000, 4, "a-0", "OK", "1"), (1001, 2, "a-0-1", "OK", "1")], {"a": 1}),
        ([(1000, 9, "t", TWO, "1")], {"t": 1}),
        # At the edge of a transaction: what was certain of the one before decides.
        ([(1000, 9, "t", TWO, "1"), (1010, 5, "a", "OK", "1"), (1020, 5, "t", TWO, "1"), (1025, 0, "a", "OK", "1")],
         {"t": 2, "a": 2}),
        ([(1000, 9, "t", TWO, "1"), (1000, 5, "a", "OK", "1"), (1020, 0, "t", TWO, "1"), (1020, 0, "a", "OK", "1")],
         {"a": 2}),
    ],
)  # fmt: skip
def test_transactions_and_their_requests_count_once(
    rows: list[tuple[int, int, str, str, str]], counted: dict[str, int]
) -> None:
    operations, problems = read(named(*rows))
    assert problems == []
    assert {name: operation.times.count for name, operation in operations.items()} == counted


def test_pauses_within_a_transaction_are_no_part_of_its_time() -> None:
    text = named((1000, 9, "t", TWO, "1"), (1002, 4, "a", "OK", "1"), (5004, 5, "b", "OK", "1")).splitlines()
    text = [line + end for line, end in zip(text, [",IdleTime", ",4000", ",0", ",0"], strict=True)]
    operations, problems = read("\n".join([*text, ""]))
    assert problems == []
    assert set(operations) == {"a", "b"}


def test_a_log_that_was_cut_off_says_so() -> None:
    whole = samples(*["1795287010000,5,read,200,true,1"] * 3)
    operations, problems = read(whole[: whole.rindex(",")])
    assert operations["read"].times.count == 2
    assert problems == [
        "a.jtl:4: the row has 5 columns, but the header has 6",
        "a.jtl:4: the last line of the log is incomplete",
    ]


def test_warm_up_counts_only_over_time() -> None:
    window = Window(1_795_287_010, 1_795_287_020, warm_up=5)
    rows = [
        f"{1_795_287_000_000 + at},1000,read,200,{good},7" for at in (3000, 5000, 9500) for good in ("true", "false")
    ]
    operations, _ = read(samples(*rows), window)
    (operation,) = operations.values()
    assert (operation.times.count, operation.errors, operation.bytes) == (1, {"200": 1}, 7)
    assert operation.per_second.start == 1_795_287_005
    assert operation.per_second.count == operation.per_second.errors == [0, 1, 0, 0, 0, 1] + [0] * 9
    assert operation.over_time is not None
    assert [operation.over_time.count(step) for step in range(operation.over_time.steps)] == [0, 1, 0, 0, 0, 1]


def test_columns_that_transactions_need_are_named_when_missing() -> None:
    problems = Problems()
    jtl.counted(io.StringIO(samples("1795287010000,5,read,200,true,1")), "a.jtl", EVER, problems)
    assert problems.lines() == [BLIND]
    problems = Problems()
    text = named((1000, 9, "a", "OK", "1")).replace("threadName", "thread")
    jtl.counted(io.StringIO(text), "a.jtl", EVER, problems)
    (problem,) = problems.lines()
    assert problem.startswith("a.jtl:1: the header has no threadName: ")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_another_delimiter_is_known_by_the_header(delimiter: str, quote: str) -> None:
    text = named((1000, 9, "t", TWO.replace(",", " "), "1"), (1000, 4, "a", "OK", "1")).replace(",", delimiter)
    text = text.replace("timeStamp", f"{quote}timeStamp{quote}")
    for begin in ("", "\ufeff"):
        operations, problems = read(begin + text)
        assert problems == []
        assert {name: operation.times.count for name, operation in operations.items()} == {"a": 1}


def test_no_bytes_and_no_pause_are_none() -> None:
    operations, problems = read(HEADER + ",IdleTime\n1795287010000,5,read,200,true,,\n")
    assert problems == []
    assert (operations["read"].times.count, operations["read"].bytes) == (1, 0)


def test_memory_for_threads_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jtl_once, "MOST_REMEMBERED", 2)
    once = Once()
    rows = [
        (1, "a", False, [("a")]),
        (2, "a", False, [("a")]),
        (1, "b", False, [("b")]),
        (3, "a", False, [("a")]),  # of thread 2 nothing is remembered now
        (1, "b-0", False, []),
        (2, "a-0", False, ["a-0"]),
        (4, "t", True, []),
        (5, "t", True, []),
        (6, "t", True, ["t"]),  # one too many is held back: the first one counts
    ]
    for thread, label, transaction, counts in rows:
        began = {"b": 2000, "b-0": 2000}.get(label, 1000)
        sample = Sample(label, began, began + 10, 10, None, 0)
        assert [one.label for one in once.counting(str(thread), sample, transaction=transaction)] == counts, (
            thread,
            label,
        )
    assert [one.label for one in once.rest()] == ["t", "t"]


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("java.net.SocketTimeoutException", "Non HTTP response message: Connect timed out", "ConnectTimeoutException"),
        ("java.net.SocketTimeoutException", "Non HTTP response message: Read timed out", "SocketTimeoutException"),
        ("org.apache.http.conn.ConnectTimeoutException", "Connect to a:80 failed", "ConnectTimeoutException"),
    ],
)
def test_timeouts_of_connecting_and_of_reading_are_apart(code: str, message: str, kind: str) -> None:
    row = f"1795287010000,5,get,Non HTTP response code: {code},{message},t 1-1,false,0"
    header = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes"
    operations, problems = read(f"{header}\n{row}\n")
    assert (operations["get"].errors, problems) == ({kind: 1}, [])


@pytest.mark.parametrize("parent", ["", TWO])
def test_requests_of_a_sampler_count_once_though_jmeter_does_not_rename_them(parent: str) -> None:
    """Of a real run with subresults.disable_renaming=true: redirects and an embedded resource. Then they are
    within a transaction that comes before its parts."""
    problems = Problems()
    text = (DATA / "jmeter-5.6.3-not-renamed.jtl").read_text()
    if parent:
        first, *rest = text.splitlines(keepends=True)
        rows = [row.replace("tg 1-2", "tg 1-1") for row in rest if "tg 1-1" in row]
        text = "".join([first, f'1795692686960,9999,t,200,"{parent}",tg 1-1,text,true,,1,1,2,2,null,0,0,0\n', *rows])
    log = jtl.counted(io.StringIO(text), "a.jtl", Window(1_795_692_680, 1_795_692_700), problems)
    counts = {name: operation.times.count for name, operation in log.operations.items()}
    assert counts == {"redirected": 1 if parent else 2, "page": 1}
    assert problems.lines() == []


def test_ambiguous_times_of_threads_are_a_problem() -> None:
    """Two threads of one name, as of logs that were joined; and requests without length that no other row explains."""
    nested = [(1000, 90, "a", "OK", "1"), (1000, 40, "x", "OK", "1")]
    _, (problem,) = read(named(*nested, (1050, 90, "b", "OK", "1")))
    assert "samples of 1 threads overlap, so 1 or more samples may be left out wrongly" in problem
    operations, (problem,) = read(named(*nested, (2000, 0, "c", "OK", "1"), (2000, 0, "d", "OK", "1")))
    assert {"c", "d"} < set(operations)
    assert "1 samples without length count, but may be requests of the sample before" in problem
    assert "subresults.disable_renaming=false" in problem


def test_samples_that_overlap_are_no_requests_of_each_other() -> None:
    """From the first two on that show it: one thread name stands for several at a time."""
    rows = [(1000, 90, "a", "OK", "1"), (1050, 90, "b", "OK", "1"), (1060, 20, "c", "OK", "1")]
    rows += [(1000, 90, "a", "OK", "2"), (1000, 90, "a", "OK", "2"), (1000, 20, "c", "OK", "2")]
    operations, problems = read(named(*rows))
    assert ({name: one.times.count for name, one in operations.items()}, problems) == ({"a": 3, "b": 1, "c": 2}, [])


@pytest.mark.parametrize(("numbers", "word"), [("250,0", "SampleCount is 250"), ("1,10", "ErrorCount is 10")])
def test_a_row_that_stands_for_several_samples_is_refused(numbers: str, word: str) -> None:
    good = "1795287010000,5,read,200,true,1"
    operations, (problem,) = read(f"{HEADER},SampleCount,ErrorCount\n{good},{numbers}\n{good},1,0\n")
    assert operations["read"].times.count == 1
    assert f"a.jtl:2: {word}" in problem


def test_labels_that_are_not_utf_8_stay_apart(tmp_path: Path) -> None:
    log = tmp_path / "a.jtl"
    log.write_bytes(samples(*(f"1795287010000,5,Gr{letter}ße,200,true,1" for letter in "öü")).encode("cp1252"))
    assert [one.times.count for one in jtl.read(log, EVER, Problems()).operations.values()] == [1, 1]
