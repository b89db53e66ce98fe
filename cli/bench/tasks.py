"""Reads tasks from lines of text, and groups them into requests. Pure, apart from reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from troop.bench.fleets.queue_requests import LONGEST_TASK, LONGEST_TASKS, MOST_TASKS, TASK_ID, TASK_KEY, batches

_ID, KEY = re.compile(TASK_ID), re.compile(TASK_KEY)

ALLOWED_ID = "1 to 128 letters, digits, dots, underscores and hyphens"

_LONGEST_LINE = 2 * 1024 * 1024
"""Bytes of a line: a body can take six in JSON for each of its own."""


@dataclass(frozen=True)
class Task:
    """A task. ``line``: of its file, from 1."""

    line: int
    id: str
    body: str

    def to_document(self) -> dict[str, str]:
        """Returns the task as the API has it."""
        return {"id": self.id, "body": self.body}


@dataclass(frozen=True)
class RefusedTask:
    """A task that was not submitted. ``id``: None if its line has none that is allowed."""

    line: int
    id: str | None
    problem: str

    def __str__(self) -> str:
        return f"line {self.line}{f' ({self.id})' if self.id else ''}: {self.problem}"


def read(file: IO[bytes], key: str) -> Iterator[Task | RefusedTask]:
    """Yields the task of each line that is not blank.

    A line is the body of its task; or a JSON object with ``body`` and perhaps ``id``, and nothing else. A body that is
    no text becomes JSON. Without an id, the key and the number of the line make one, so that a repetition has the
    same ids. An id that an earlier line has is refused: only one of their results would stand.
    """
    own: dict[str, int] = {}
    for line, raw in enumerate(_lines(file), 1):
        if raw is None:
            yield RefusedTask(
                line, None, f"it has more than {_LONGEST_LINE:,} bytes: a body has at most {LONGEST_TASK:,}"
            )
            continue
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            yield RefusedTask(line, None, f"it is not UTF-8 text (byte {error.start + 1})")
            continue
        if text.strip():
            yield _unique(_task(line, text, f"{key}-{line:06}"), key, own)


def _unique(task: Task | RefusedTask, key: str, own: dict[str, int]) -> Task | RefusedTask:
    """Refuses a task whose id an earlier line has.

    Args:
        own: the lines of the ids that stand in the file: the others follow from their lines, and need no memory.
    """
    if isinstance(task, RefusedTask):
        return task
    before = own.get(task.id)
    number = task.id.removeprefix(f"{key}-")
    if number != task.id and number.isdecimal() and f"{int(number):06}" == number and 0 < int(number) < task.line:
        before = int(number)
    elif task.id != f"{key}-{task.line:06}":
        before = own.setdefault(task.id, task.line)
    if before is None or before == task.line:
        return task
    return RefusedTask(task.line, task.id, f"line {before} has the same id, and only one of their results would stand")


def _lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """Yields lines without their ends; None for one that is too long to hold."""
    while part := file.readline(_LONGEST_LINE):
        is_whole = part.endswith(b"\n") or len(part) < _LONGEST_LINE
        while part and not part.endswith(b"\n") and not is_whole:
            part = file.readline(_LONGEST_LINE)
        yield part.rstrip(b"\r\n") if is_whole else None


def _task(line: int, text: str, default: str) -> Task | RefusedTask:
    id, body = default, text
    if document := _document(text):
        body = document["body"] if isinstance(document["body"], str) else json.dumps(document["body"])
        id = default if (own := document.get("id")) is None else own
        if not isinstance(id, str) or not _ID.fullmatch(id):
            return RefusedTask(line, None, f"the id {id!r:.150} is not allowed: use {ALLOWED_ID}")
    try:
        size = len(body.encode())
    except UnicodeEncodeError:
        return RefusedTask(line, id, "its body has half of a character (a surrogate), which no text may have")
    if size > LONGEST_TASK:
        return RefusedTask(line, id, f"its body has {size:,} bytes, and at most {LONGEST_TASK:,} are allowed")
    return Task(line, id, body)


def _document(text: str) -> dict[str, Any] | None:
    """Returns the object of a line that is a task in JSON; None for any other text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and "body" in document and document.keys() <= {"id", "body"} else None


def requests(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Groups tasks into requests that are not too large; reads no further than the next request needs."""
    return batches(tasks, lambda task: len(json.dumps(task.to_document())) + 2, MOST_TASKS, LONGEST_TASKS)
