"""k6's samples as CSV: what k6 itself wrote in three processes at a time, and what disks make of such files."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.collect import operations_in
from troop.measure.collectors import k6
from troop.measure.collectors.__main__ import main
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.window import Window
from troop.measure.histogram import highest_in, index_of, lowest_in
from troop.measure.operations import Operations, add_all, document_of, parse

DATA = Path(__file__).with_name("data")
REAL = sorted(DATA.glob("k6-1.8.1-*.csv.gz"))
"""Of three processes of k6 1.8.1 that ran at the same time; the last had a single virtual user for 200 a second."""
HEADER = "metric_name,timestamp,metric_value,error_code,expected_response,method,name,status,extra_tags,metadata"
START = 1_795_404_770


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of(path), newline="")))


def everything(rows: list[dict[str, str]]) -> Window:
    stamps = [int(row["timestamp"]) for row in rows]
    return Window(min(stamps) // 10**6, max(stamps) // 10**6 + 1)


EVER = Window(START, START + 10)


def read(text: str, window: Window = EVER) -> tuple[Operations, list[str]]:
    problems = Problems()
    return k6.counted(io.StringIO(text, newline=""), "a.csv", window, problems).operations, problems.lines()


def rank(values: list[int], percent: str) -> int:
    """The smallest of ascending values that at least ``percent`` of them do not exceed."""
    return values[max(-(-Fraction(percent) * len(values) // 100), 1) - 1]


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_requests_of_k6_are_counted_by_name(path: Path) -> None:
    rows = [row for row in rows_of(path) if row["metric_name"] == k6.DURATION]
    operations, problems = read(text_of(path), everything(rows_of(path)))
    assert problems == []
    slow_times = sorted(round(float(row["metric_value"]) * 1000) for row in rows if row["name"] == "slow")
    slow = operations["slow"]
    assert (slow.times.count, slow.times.min, slow.times.max) == (len(slow_times), slow_times[0], slow_times[-1])
    assert slow.times.sum == sum(slow_times), "to the microsecond"
    assert sum(slow.per_second.count) == len(slow_times)
    errors = {name: one.errors for name, one in operations.items() if one.errors and name != k6.DROPPED}
    kinds = {
        "GET-missing-1": ("404", "/missing"),
        "refused": ("connect-refused", "refused"),
        "hurried": ("read-timeout", "hurried"),
    }
    assert errors == {
        label: {kind: sum(part in row["name"] for row in rows)}
        for label, (kind, part) in kinds.items()
        if any(part in row["name"] for row in rows)
    }


def test_iterations_that_had_no_user_are_unfinished() -> None:
    rows = rows_of(REAL[2])
    dropped = sum(float(row["metric_value"]) for row in rows if row["metric_name"] == k6.DROPPED)
    operations, _ = read(text_of(REAL[2]), everything(rows))
    assert dropped > 100
    assert operations[k6.DROPPED].errors == {"unfinished": int(dropped)}


def test_percentiles_of_three_nodes_are_those_of_all_samples_together() -> None:
    pooled: list[int] = []
    merged: Operations = {}
    for path in REAL:
        rows = rows_of(path)
        operations, _ = read(text_of(path), everything(rows))
        add_all(merged, parse(json.loads(json.dumps(document_of(operations)))))
        pooled += [
            round(float(row["metric_value"]) * 1000)
            for row in rows
            if row["metric_name"] == k6.DURATION and row["name"] == "slow"
        ]
    pooled.sort()
    times = merged["slow"].times
    assert times.count == len(pooled) > 500
    for percent in ("50", "90", "95", "99", "99.9", "100"):
        exact, result = rank(pooled, percent), times.percentile(float(percent))
        assert result is not None
        assert abs(index_of(result) - index_of(exact)) <= 1, f"p{percent}: {result}, not {exact}"
        assert lowest_in(index_of(exact)) <= result <= highest_in(index_of(exact)), f"p{percent}"


def test_the_command_writes_what_the_agent_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = everything(rows_of(REAL[0]))
    monkeypatch.setenv("TROOP_RESULTS", str(tmp_path))
    monkeypatch.setenv("TROOP_MEASURED_FROM", str(window.start))
    monkeypatch.setenv("TROOP_MEASURED_SECONDS", str(window.measured))
    (tmp_path / "samples.csv").write_text(text_of(REAL[0]))
    assert main(["k6", str(tmp_path / "samples.csv")]) == 0
    slow = operations_in(tmp_path, [])["slow"]
    assert (slow.tools, slow.timing) == ({"k6"}, "service")
    assert (
        slow.times.count
        == Counter(row["name"] for row in rows_of(REAL[0]) if row["metric_name"] == k6.DURATION)["slow"]
    )


def line(ended: float = START + 1, ms: float = 1.5, **columns: Any) -> str:
    values = {"metric_name": k6.DURATION, "timestamp": f"{ended * 10**6:.0f}", "metric_value": f"{ms:f}"}
    usual = {"expected_response": "true", "method": "GET", "name": "home", "status": "200"}
    file = io.StringIO()
    csv.DictWriter(file, HEADER.split(","), restval="", lineterminator="\n").writerow({**usual, **values, **columns})
    return file.getvalue()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", "a.csv:1: the header has no metric_name"),
        (HEADER.replace("status", "x"), "the header has no status"),
        (f"{HEADER},name", "^a.csv:1: the header has name twice"),
    ],
)
def test_output_of_another_form_is_refused(header: str, expected: str) -> None:
    with pytest.raises(CollectorError, match=expected):
        read(f"{header}\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            line(timestamp=str(START)),
            f"timestamp is '{START}': must be in microseconds: start k6 with K6_CSV_TIME_FORMAT",
        ),
        (line(metric_value="slow"), "could not convert"),
        (line(metric_value="-1"), "metric_value is -1"),
        (line(metric_value="1e99"), "metric_value is 1e99"),
        (line(metric_value="nan"), "cannot convert"),
        ("http_req_duration,1\n", "the row has 2 columns, but the header has 10"),
        (line().rstrip("\n"), "the last line is incomplete"),
    ],
)
def test_damaged_line_is_a_problem_and_other_lines_count(row: str, message: str) -> None:
    operations, problems = read(f"{HEADER}\n{line()}{row}")
    assert operations["home"].times.count == 1
    (problem,) = problems
    assert problem.startswith("a.csv:3: ")
    assert message in problem


@pytest.mark.parametrize(
    ("columns", "name", "error"),
    [
        ({"name": "http://10.0.0.7:8080/a/b?c=1", "method": "POST"}, "POST-a-b", None),
        ({"name": "https://shop.example"}, "GET", None),
        ({"expected_response": "false", "status": "503", "error_code": "1503"}, "home", "503"),
        ({"expected_response": "true", "status": "404"}, "home", None),
        ({"expected_response": "", "status": "404"}, "home", "404"),
        ({"expected_response": "", "status": "302"}, "home", None),
        ({"expected_response": "false", "status": "0", "error_code": "1211"}, "home", "connect-timeout"),
        ({"expected_response": "false", "status": "0", "error_code": "1999"}, "home", "error-1999"),
    ],
)
def test_names_and_kinds_of_errors(columns: dict[str, Any], name: str, error: str | None) -> None:
    operations, problems = read(f"{HEADER}\n{line(**columns)}")
    assert problems == []
    ((label, one),) = operations.items()
    assert (label, one.errors, one.times.count) == (name, {error: 1} if error else {}, 0 if error else 1)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["home", 'say "x"', "two\nlines", f"a\n{k6.DURATION},1,2", "a, b", "ü"]),
            st.floats(0, 100_000),
            st.floats(-3, 13),
        ),
        max_size=30,
    )
)
def test_every_request_counts_once_whatever_its_name(requests: list[tuple[str, float, float]]) -> None:
    window = Window(START, START + 10, 2)
    rows = [line(START + round(at, 6), ms, name=name) for name, ms, at in requests]
    noise = line(metric_name="http_reqs", name='a "quoted"\nname')
    operations, problems = read("".join([f"{HEADER}\n", *(row + noise for row in rows)]), window)
    assert problems == []
    inside = [ms for _, ms, at in requests if 0 <= round(at, 6) < 10]
    assert sum(one.times.count for one in operations.values()) == len(inside)
    assert sum(one.times.sum for one in operations.values()) == sum(round(float(f"{ms:f}") * 1000) for ms in inside)
    seen = sum(sum(one.per_second.count) for one in operations.values())
    assert seen == sum(-2 <= round(at, 6) < 10 for _, _, at in requests), "the warm-up counts over time"


def test_a_stream_is_read_as_it_comes() -> None:
    """k6 writes into a pipe, so nothing may wait for the end."""
    taken: list[int] = []

    def lines() -> Iterator[str]:
        yield f"{HEADER}\n"
        for number in range(3):
            taken.append(number)
            yield line()

    problems = Problems()
    counted = k6.counted(lines(), "a.csv", Window(START, START + 10), problems)
    assert (taken, counted.operations["home"].times.count) == ([0, 1, 2], 3)


def test_metrics_of_other_requests_are_named_and_those_of_the_same_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TROOP_RESULTS", str(tmp_path))
    monkeypatch.setenv("TROOP_MEASURED_FROM", str(START))
    monkeypatch.setenv("TROOP_MEASURED_SECONDS", "10")
    metrics = ["http_req_waiting", "http_reqs", "vus", "ws_session_duration", "grpc_req_duration", "grpc_req_duration"]
    rows = [f"{metric},{START}500000,5,,,,a.B/C,0,," for metric in metrics]
    samples = tmp_path / "samples.csv"
    named = "samples of these metrics are left out: grpc_req_duration (2), ws_session_duration (1)"
    samples.write_text("\n".join([HEADER, *rows, f"http_req_duration,{START}500000,5,,true,GET,x,200,,", ""]))
    assert main(["k6", str(samples)]) == 0
    assert named in capsys.readouterr().out
    samples.write_text("\n".join([HEADER, *rows, ""]))
    assert main(["k6", str(samples)]) == 1
    assert f"no operation ended in the measured time; {named}" in capsys.readouterr().err


def test_names_that_are_not_utf_8_stay_apart(tmp_path: Path) -> None:
    samples = tmp_path / "samples.csv"
    rows = [f"http_req_duration,{START}500000,5,,true,GET,Gr{letter}ße,200,," for letter in "öü"]
    samples.write_bytes("\n".join([HEADER, *rows, ""]).encode("cp1252"))
    assert len(k6.read(samples, Window(START, START + 10), Problems()).operations) == 2


def test_damaged_quote_is_a_problem_and_other_lines_count() -> None:
    row = f"http_req_duration,{START}000000,5,,true,GET,a,200,,\n"
    quoted = "".join(row.replace(",a,", f',{name}"a,') for name in "bc")
    text = f"{HEADER}\n{row}{quoted}{row}"
    operations, problems = read(text)
    assert operations["a"].times.count == 2
    (problem,) = problems
    assert problem.startswith("a.csv:3: new-line character seen in unquoted field")
