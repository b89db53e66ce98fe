"""The reader of tables: columns by name, units, moments, what is a success, and rows that are none."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tests.unit.measure.collectors.test_jtl import DATA, EVER, REAL
from troop.measure.collectors import jtl, table
from troop.measure.collectors.__main__ import main
from troop.measure.collectors.common import LONGEST_FIELD, CollectorError, Problems
from troop.measure.collectors.table import Table, Term, good, terms
from troop.measure.collectors.window import Counted, Window
from troop.measure.operations import document_of

START = 1_790_000_000
PLAIN = Table(time=terms("took:ms"), moment=terms("at:s"))


def read(text: str, columns: Table = PLAIN, window: Window | None = None) -> tuple[Counted, list[str]]:
    problems, totals = Problems(), Counted(window or Window(START, START + 10))
    table.counted(io.StringIO(text, newline=""), "a", columns, problems, totals)
    return totals, problems.lines()


def test_a_log_of_jmeter_gives_what_its_collector_gives() -> None:
    by_collector = jtl.read(REAL, EVER, Problems()).operations
    layout = Table(
        time=terms("elapsed:ms"),
        moment=terms("timeStamp:ms"),
        name="label",
        status="responseCode",
        is_good=good("200-399"),
        moved="bytes",
    )
    totals, problems = read((DATA / "jmeter-5.6.3.jtl").read_text(), layout, EVER)
    assert problems == []
    assert totals.operations.keys() == by_collector.keys() != set()
    for name, one in totals.operations.items():
        its = document_of({name: one})[name]
        other = document_of({name: by_collector[name]})[name]
        assert {**its, "errors": sum(its["errors"].values())} == {**other, "errors": sum(other["errors"].values())}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("took:us", (Term("took", 1000),)),
        ("second:s+fraction:us", (Term("second", 10**9), Term("fraction", 1000))),
        ("DNS+dialup:s+a b:c:ns", (Term("DNS+dialup", 10**9), Term("a b:c", 1))),
    ],
)
def test_a_time_is_one_column_or_several(text: str, expected: Any) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize("text", ["", "took", "took:m", "took:ms+", "took:ms+other", ":ms"])
def test_a_time_without_a_unit_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["table", str(tmp_path), "--began", "at:s", "--time", text])
    assert "must be a column with its unit, such as took:ms; units are ns, us, ms, s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("end", "second"),
    [(False, 3), (True, 2)],
)
def test_a_moment_is_the_beginning_or_the_end(end: bool, second: int) -> None:
    columns = Table(time=terms("took:s"), moment=terms("at:s"), is_end=end, origin=START - 0.5)
    totals, _ = read("took,at\n0.75,2.75\n", columns)
    assert [n for n, count in enumerate(totals.operations["requests"].per_second.count) if count] == [second]
    assert totals.operations["requests"].times.max == 750_000


def test_large_numbers_keep_their_nanoseconds() -> None:
    columns = Table(time=terms("took:ns"), moment=terms("at:ns"))
    totals, _ = read(f"at,took\n{START}000000000,999499\n{START}000000000,999500\n", columns)
    assert (totals.operations["requests"].times.min, totals.operations["requests"].times.max) == (999, 1000)


@pytest.mark.parametrize(
    ("row", "errors"),
    [
        ("200,", {}),
        ("OK,", {}),
        ("503,", {"503": 1}),
        ("0,Get: dial tcp 10.0.0.7:80: i/o timeout", {"i-o-timeout": 1}),
        ("0,", {"failed": 1}),
        (",", {"failed": 1}),
        ("200,reset by peer", {"reset-by-peer": 1}),
    ],
)
def test_status_and_error_decide_about_success(row: str, errors: dict[str, int]) -> None:
    columns = Table(PLAIN.time, PLAIN.moment, status="code", error="error", is_good=good("200-399,OK"))
    totals, problems = read(f"at,took,code,error\n{START},5,{row}\n", columns)
    (one,) = totals.operations.values()
    assert (one.errors, one.times.count, problems) == (errors, 0 if errors else 1, [])


def test_a_failure_needs_no_time() -> None:
    columns = Table(PLAIN.time, PLAIN.moment, failures=frozenset({"skipped"}), status="code")
    rows = "skipped,200", ",503", "1500,503", "inf,503", "nan,503"
    totals, problems = read("at,took,code\n" + "".join(f"{START},{row}\n" for row in rows), columns)
    (one,) = totals.operations.values()
    assert (one.errors, one.per_second.errors[:3], problems) == ({"skipped": 1, "503": 4}, [4, 1, 0], [])


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (f"{START},", "a time or a moment is empty"),
        (",5", "a time or a moment is empty"),
        (f"{START},fast", "could not convert"),
        (f"{START},-1", "the time is -1000000 ns"),
        (f"{START},nan", "cannot convert"),
        (f"{START},inf", "cannot convert"),
        (f"{START},5,6", "the row has 3 columns instead of 2"),
    ],
)
def test_row_without_a_time_is_a_problem_and_other_rows_count(row: str, why: str) -> None:
    """No time is not a time of zero."""
    totals, (problem,) = read(f"at,took\n{START},5\n{row}\n{START},7\n")
    assert problem.startswith("a:3: ")
    assert why in problem
    assert (totals.operations["requests"].times.count, totals.operations["requests"].times.min) == (2, 5000)


def test_a_missing_column_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(CollectorError, match="a:1: there is no column took: the columns are at, time"):
        read("at,time\n1,2\n")


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("at,took,took,other,other", "the header has took twice"),
        ('"at"x,took', "',' expected after '\"'"),
        (f"at,took,{'x' * LONGEST_FIELD}x", "field larger than field limit"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(header: str, why: str) -> None:
    with pytest.raises(CollectorError, match=f"^a:1: {why}"):
        read(f"{header}\n{START},5\n")


def test_a_column_that_is_not_read_may_stand_twice() -> None:
    totals, problems = read(f"at,_,took,_\n{START},1,5,2\n")
    assert (totals.operations["requests"].times.max, problems) == (5000, [])


@pytest.mark.parametrize(
    ("separator", "text"), [(" ", "at  took\n{}   5\n"), ("\t", "at\ttook\n{}\t5\n"), (";", '"at";"took"\n{};"5"\n')]
)
def test_columns_have_several_separators(separator: str, text: str) -> None:
    totals, problems = read("\ufeff" + text.format(START), Table(PLAIN.time, PLAIN.moment, separator=separator))
    assert (totals.operations["requests"].times.max, problems) == (5000, [])


def test_a_file_that_is_cut_off_says_so() -> None:
    totals, problems = read(f"at,took\n{START},5\n{START},50")
    assert (totals.operations["requests"].times.count, problems) == (1, ["a:3: the last line is incomplete"])


def test_names_that_are_not_utf_8_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f"at,took,name\n{START},5,Größe\n{START},5,Grüße\n".encode("cp1252"))
    columns = Table(PLAIN.time, PLAIN.moment, name="name")
    assert len(table.follow(path, lambda: True, columns, Window(START, START + 9), Problems()).operations) == 2
