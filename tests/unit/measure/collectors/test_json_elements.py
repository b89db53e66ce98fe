"""The elements of a list in a JSON document, one by one."""

from __future__ import annotations

import json
from typing import Any

from troop.measure.collectors.common import Problems
from troop.measure.collectors.json_elements import elements


class Counted(str):
    """A text that knows how much of it was looked through for line ends."""

    looked = 0

    def count(self, *bounds: Any) -> int:
        begin, end = bounds[1:] if len(bounds) > 1 else (0, len(self))
        Counted.looked += end - begin
        return super().count(*bounds)


def test_lines_of_many_elements_are_counted_once() -> None:
    """A day of sysstat's is a hundred megabytes."""
    text = Counted(json.dumps({"a": [{"n": n} for n in range(200)], "b": [1], "c": {"a": [7]}}, indent=1))
    pairs = list(elements(text, "a", "x", Problems()))
    assert [element for _, element in pairs] == [*({"n": n} for n in range(200)), 7]
    assert [line for line, _ in pairs[:3]] == [3, 6, 9]
    assert pairs[-1][0] == text[: text.rindex("7")].count("\n") + 1
    assert Counted.looked <= len(text)


def test_deeply_nested_element_is_a_problem_and_earlier_elements_count() -> None:
    problems = Problems()
    assert list(elements('{"a": [1, ' + "[" * 100_000, "a", "x", problems)) == [(1, 1)]
    (sentence,) = problems.lines()
    assert sentence.startswith("x:1: the JSON is cut off or damaged")
