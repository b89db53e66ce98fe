"""Runs requests side by side, in threads that do not keep an interrupted command waiting."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from cli.shared.errors import CliError, Exit


def answers(
    requests: Mapping[str, Callable[[], Any]],
    at_once: int | None = None,
    seconds: float | None = None,
    heard: Callable[[str, Any], None] = lambda _name, _answer: None,
) -> dict[str, Any]:
    """Returns the answer to each request, or its :class:`CliError`; raises any other error.

    Args:
        at_once: the most requests that run at one time; None for all.
        seconds: the time for each request, after which its answer is UNREACHABLE, and no longer awaited.
        heard: called with each answer as it comes, in this thread.
    """
    results: dict[str, Any] = {}
    defects: list[BaseException] = []
    ended = SimpleQueue[tuple[str, Any, BaseException | None]]()

    def run(name: str, request: Callable[[], Any]) -> None:
        try:
            ended.put((name, request(), None))
        except CliError as error:
            ended.put((name, error, None))
        except BaseException as error:  # noqa: BLE001 raised below
            ended.put((name, None, error))

    waiting, ends, limit = list(requests.items()), dict[str, float](), math.inf if seconds is None else seconds
    while waiting or ends:
        while waiting and (at_once is None or len(ends) < at_once):
            name, request = waiting.pop(0)
            ends[name] = time.monotonic() + limit
            # A pool would wait for all its threads after Ctrl-C.
            threading.Thread(target=run, args=(name, request), daemon=True).start()
        rest = max(0.0, min(ends.values()) - time.monotonic())
        try:
            name, answer, defect = ended.get(timeout=None if rest == math.inf else rest)
        except Empty:
            now = time.monotonic()
            for late in [name for name, end in ends.items() if end <= now]:
                del ends[late]
                results[late] = CliError(Exit.UNREACHABLE, f"no answer within {seconds:g} seconds")
                heard(late, results[late])
            continue
        if ends.pop(name, None) is not None:  # an answer after its time is dropped
            results[name] = answer
            if defect:
                defects.append(defect)
            else:
                heard(name, answer)
    for error in defects:
        raise error
    return {name: results[name] for name in requests}


def begin(request: Callable[[], Any]) -> Callable[[], Any]:
    """Begins a request, and returns a function that waits for its answer, or raises its error."""
    ended = SimpleQueue[tuple[Any, BaseException | None]]()

    def run() -> None:
        try:
            ended.put((request(), None))
        except BaseException as error:  # noqa: BLE001 raised below
            ended.put((None, error))

    def wait() -> Any:
        answer, error = ended.get()
        if error:
            raise error
        return answer

    threading.Thread(target=run, daemon=True).start()
    return wait
