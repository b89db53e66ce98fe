"""Lines of values and counts: their forms, what counts, and what is no distribution."""

from __future__ import annotations

import pytest

from troop.measure.collectors import spectrum
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.operations import Operation


def read(text: str, *after: str, is_cumulative: bool = False) -> tuple[Operation, list[str]]:
    problems = Problems()
    one = spectrum.operation(text, "a", "ms", after, problems, is_cumulative=is_cumulative)
    return one, problems.lines()


@pytest.mark.parametrize(
    ("text", "is_cumulative"),
    [
        ("1.5 2\n3 1\n", False),
        ("1.5,2\n3,1\n", False),
        ("1.5 2\n2 2\n3 3\n", True),
        ("  1.500 |**** 2\n  3.000 |**   1\n", False),
        ("1.5 0.500000 2 2.00\n3.0 1.000000 3 inf\n", False),
        ("50.000% <= 1.5 milliseconds (cumulative count 2)\n100% <= 3 milliseconds (cumulative count 3)\n", False),
    ],
)
def test_all_forms_of_lines_give_the_same(text: str, is_cumulative: bool) -> None:
    one, problems = read(f"a title\n\n{text}\nan end\n", is_cumulative=is_cumulative)
    assert problems == []
    assert (one.times.count, one.times.min, one.times.max, one.times.sum) == (3, 1500, 3000, 6000)


@pytest.mark.parametrize(
    "text",
    [
        "2 1\n1 1\n",
        "1 0.5 3 2.0\n2 1.0 2 inf\n",
        f"{10**16} 1\n",
        pytest.param(f"{10**400} 1\n", id="more than a float can have"),
    ],
)
def test_text_without_a_distribution_is_refused(text: str) -> None:
    with pytest.raises(CollectorError, match=r"a:[12]: "):
        read(text)


@pytest.mark.parametrize("text", ["", "nothing\n", "1 2 3 4\n"])
def test_a_file_without_one_is_refused(text: str) -> None:
    with pytest.raises(CollectorError, match="there is no distribution"):
        read(text)


def test_the_texts_before_it_choose_a_distribution() -> None:
    text = "GET\ntimes\n1 1\n\nSET\ntimes\n2 1\n\nGET again\n"
    assert [read(text, name, "times")[0].times.max for name in ("GET", "SET")] == [1000, 2000]
    assert read(text, "SET", "times")[1] == []
    assert read(text, "times")[1] == ["a:7: there is another distribution: choose one by the texts before it (--after)"]
