"""Whatever a tool's output was cut off at, or damaged by, is told by file and line, and nothing else happens."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troop.measure import operations, separate, summary
from troop.measure.collectors import cassandra_stress, fio, iozone, jtl, sysstat, wrk
from troop.measure.collectors.common import MOST_PROBLEMS, CollectorError, Problems
from troop.measure.collectors.window import Window

DATA = Path(__file__).with_name("data")
EVER = Window(1_795_299_080, 1_795_299_100)


def read_jtl(text: str, problems: Problems) -> Any:
    return jtl.counted(io.StringIO(text, newline=""), "a", EVER, problems).operations


def read_cassandra_stress(text: str, problems: Problems) -> Any:
    return cassandra_stress.rows(cassandra_stress.runs(text, "a", problems), "a", problems)


COLLECTORS: dict[str, Callable[[str, Problems], Any]] = {
    "jmeter-5.6.3-transactions.jtl": read_jtl,
    "fio-3.33.json": lambda text, problems: fio.operations(text, "a", 2.0, problems),
    "wrk-4.1.0-timeouts.txt": lambda text, problems: wrk.rows(text, "a", "get", problems),
    "iozone-3.489-ops.txt": lambda text, problems: iozone.operations(text, "a", problems),
    "cassandra-stress-mixed.txt": read_cassandra_stress,
    "cassandra-stress-newer.txt": read_cassandra_stress,
    "sadf-12.6.json": lambda text, problems: sysstat.samples(text, "a", problems),
    "iostat-12.6.json": lambda text, problems: sysstat.samples(text, "a", problems),
}
AFTER = {"fio": "\n  ],", "cassandra": "\n\nEND", "sadf": "\n\t\t\t]", "iostat": "\n\t\t\t]", "wrk": "B", "iozone": "."}
"""How what is told ends, by tool: from there on nothing is lost. A log of JMeter's ends with any line."""


def problems_of(name: str, text: str) -> list[str]:
    problems = Problems()
    try:
        COLLECTORS[name](text, problems)
    except CollectorError as error:
        return [str(error)]
    return problems.lines()


@pytest.mark.parametrize("name", COLLECTORS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_truncation_is_a_problem_with_file_and_line(name: str, data: st.DataObject) -> None:
    text = (DATA / name).read_text().rstrip()
    length = data.draw(st.integers(0, len(text) - 1))
    sentences = problems_of(name, text[:length])
    if text[:length][-1:] != "\n" if name.endswith("jtl") else length <= text.rindex(AFTER[name.split("-")[0]]):
        assert sentences, f"nothing is said of {text[:length][-40:]!r}"
    for sentence in sentences[:MOST_PROBLEMS]:
        file, line, _ = sentence.split(":", 2)
        assert file == "a"
        assert 1 <= int(line) <= text.count("\n") + 1


@pytest.mark.parametrize("name", COLLECTORS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_damage_of_any_kind_ends_in_sentences(name: str, data: st.DataObject) -> None:
    text = (DATA / name).read_text()
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(at + 40, len(text))))
    instead = data.draw(
        st.text(st.sampled_from('\0\n",:{}[]-.0123456789abcnulKMs %='), max_size=8)
        | st.sampled_from(["NaN", "-", "9" * 400, "9" * 5000, "1e308", "Infinity", "[" * 100_000])
    )
    for sentence in problems_of(name, text[:at] + instead + text[until:]):
        assert sentence.startswith(("a:", "and "))


@pytest.mark.parametrize("name", COLLECTORS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_numbers_of_any_length_leave_what_the_agent_takes(name: str, data: st.DataObject) -> None:
    text = (DATA / name).read_text()
    number = data.draw(st.sampled_from(list(re.finditer("[0-9]+", text))))
    digits = data.draw(st.sampled_from([20, 310, 400, 5000]))
    problems = Problems()
    try:
        output = COLLECTORS[name](text[: number.start()] + "9" * digits + text[number.end() :], problems)
    except CollectorError:
        return
    assert max(map(len, problems.lines()), default=0) < 1000
    if isinstance(output, dict):
        operations.parse(operations.document_of(output))
    elif isinstance(output, list):
        separate.parse_file(separate.file_of("a", output))
    else:
        summary.parse_samples(summary.samples_document(output))


@pytest.mark.parametrize("name", COLLECTORS)
def test_whole_output_says_nothing(name: str) -> None:
    assert problems_of(name, (DATA / name).read_text()) == []
