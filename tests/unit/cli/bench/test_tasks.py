"""Tasks from lines of text: their ids, what is refused, and requests that are not too large."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.bench import tasks
from cli.bench.tasks import RefusedTask, Task
from troop.bench.fleets.queue_requests import LONGEST_TASK, LONGEST_TASKS, MOST_TASKS


def read(content: bytes | str) -> list[Task | RefusedTask]:
    return list(tasks.read(io.BytesIO(content.encode() if isinstance(content, str) else content), "k"))


@pytest.mark.parametrize(
    ("line", "id", "body"),
    [
        ("s3://b/one", "k-000001", "s3://b/one"),
        ("  a b \t", "k-000001", "  a b \t"),
        ('{"id": "a.1", "body": "x"}', "a.1", "x"),
        ('{"body": "x"}', "k-000001", "x"),
        ('{"id": null, "body": "x"}', "k-000001", "x"),
        ('{"body": {"n": 1}}', "k-000001", '{"n": 1}'),
        ('{"body": null}', "k-000001", "null"),
        ('{"n": 1}', "k-000001", '{"n": 1}'),
        ('{"body": "x", "n": 1}', "k-000001", '{"body": "x", "n": 1}'),
        ('{"body": ', "k-000001", '{"body": '),
        ("[1]", "k-000001", "[1]"),
        ('"x"', "k-000001", '"x"'),
        ("{" * 100_000, "k-000001", "{" * 100_000),
        ("ä\N{SNOWMAN}", "k-000001", "ä\N{SNOWMAN}"),
    ],
)
def test_a_line_is_a_body_or_a_task_in_json(line: str, id: str, body: str) -> None:
    assert read(line + "\r\n") == read(line) == [Task(1, id, body)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"\xff", "it is not UTF-8 text (byte 1)"),
        (b'{"id": "a/b", "body": "x"}', "the id 'a/b' is not allowed: use 1 to 128 letters"),
        (b'{"id": 7, "body": "x"}', "the id 7 is not allowed"),
        (b'{"id": "", "body": "x"}', "the id '' is not allowed"),
        (b'{"id": "' + b"a" * 129 + b'", "body": "x"}', "is not allowed"),
        ("ä".encode() * 100_001, "its body has 200,002 bytes, and at most 200,000 are allowed"),
        (b'{"body": "\\ud800"}', "half of a character"),
        (b"x" * 5_000_000, "it has more than 2,097,152 bytes"),
    ],
)
def test_a_line_that_is_no_task_is_refused_and_the_next_one_is_read(line: bytes, words: str) -> None:
    refused, following = read(line + b"\nnext\n")
    assert isinstance(refused, RefusedTask)
    assert words in str(refused)
    assert str(refused).startswith("line 1")
    assert following == Task(2, "k-000002", "next")


def test_an_id_of_an_earlier_line_is_refused() -> None:
    one, two, three = read('{"id": "a", "body": "x"}\n{"id": "b", "body": "x"}\n{"id": "a", "body": "y"}')
    assert (one, two) == (Task(1, "a", "x"), Task(2, "b", "x"))
    assert str(three) == "line 3 (a): line 1 has the same id, and only one of their results would stand"
    assert isinstance(read('{"id": "k-000002", "body": "x"}\ny')[1], RefusedTask)
    assert isinstance(read('y\n{"id": "k-000001", "body": "x"}')[1], RefusedTask)
    assert read('{"id": "k-000001", "body": "x"}') == [Task(1, "k-000001", "x")]


def test_ids_follow_the_lines_so_that_blank_lines_move_none() -> None:
    assert read("a\n\n \nb") == [Task(1, "k-000001", "a"), Task(4, "k-000004", "b")]
    assert read("") == []
    assert read(b"x" * LONGEST_TASK) == [Task(1, "k-000001", "x" * LONGEST_TASK)]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=30), max_size=20))
def test_every_line_of_text_is_one_task(lines: list[str]) -> None:
    result = read("\n".join(lines))
    assert [(one.line, one.id) for one in result] == [(n, f"k-{n:06}") for n, one in enumerate(lines, 1) if one.strip()]


SIZES = st.lists(st.integers(0, LONGEST_TASK), max_size=60)


@given(SIZES, st.sampled_from(["x", "\N{SNOWMAN}", '"']))
def test_requests_have_all_tasks_in_order_and_are_small_enough(sizes: list[int], letter: str) -> None:
    bodies = [letter * (size // len(letter.encode())) for size in sizes]
    whole = [Task(n, f"k-{n}", body) for n, body in enumerate(bodies)]
    groups = list(tasks.requests(whole))
    assert [task for group in groups for task in group] == whole
    for group in groups:
        assert len(json.dumps([task.to_document() for task in group])) <= LONGEST_TASKS
    for group, after in pairwise(groups):
        assert len(json.dumps([task.to_document() for task in [*group, after[0]]])) > LONGEST_TASKS - 2


def test_a_request_is_sent_before_the_next_is_read() -> None:
    """A pipe may be endless."""
    position = 0

    def endless() -> Iterator[Task]:
        nonlocal position
        while True:
            position += 1
            yield Task(position, f"k-{position}", "x")

    groups = tasks.requests(endless())
    assert len(next(groups)) == MOST_TASKS
    assert position == MOST_TASKS + 1
