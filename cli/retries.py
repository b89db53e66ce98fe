"""Repeats a request to the API whose answer says that another try may do better, where a repetition is safe."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from cli.api import Answer, Api, UnreachableError

_SWITCH = ("PATCH", "switch")
_LONGEST_PAUSE = 8.0
_LOST = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
"""The function ran, or may have run, and its answer is lost."""


@dataclass(frozen=True)
class Patience:
    """How long a request is repeated, and after which answers.

    Attributes:
        tries: all of them, the first included.
        not_started: repeat when API Gateway could not start the function.
        lost: repeat when the function may have run.
        failed: repeat when the function says that it failed.
        unreachable: repeat when no answer comes at all.
        seconds: begin no further try after this time.
    """

    tries: int = 4
    not_started: bool = True
    lost: bool = True
    failed: bool = False
    unreachable: bool = False
    seconds: float = math.inf

    def repeats(self, answer: Answer) -> bool:
        """Whether another try is safe and may do better. A request that the stage throttles has changed nothing."""
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            return True
        if function_did_not_start(answer):
            return self.not_started
        if answer.status in _LOST:
            return self.lost
        return self.failed and answer.status in (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)


ONCE = Patience(not_started=False, lost=False)
"""For changes that a second request makes twice."""
REPEATABLE = Patience(failed=True)
"""For requests that carry a key, or whose repetition changes nothing."""
_READING = Patience()
_STOPPING = Patience(tries=6, unreachable=True, seconds=30)
"""Nothing is better than to halt, and to halt twice is to halt."""
_STARTING = Patience(tries=6, not_started=False, lost=False)
"""A repetition of a resume that has been carried out could undo somebody's halt in between. API Gateway's answer does
not tell a function that did not start from one whose answer is lost, so only what the stage throttles is repeated.
"""


def patience(method: str, path: str, body: Mapping[str, Any] | None) -> Patience:
    """What is safe for a request, by its method, path (``switch``) and body."""
    if method in ("GET", "HEAD"):
        return _READING
    if (method, path) != _SWITCH:
        return ONCE
    turned = [value for key, value in (body or {}).items() if key != "reason"]
    return _STOPPING if turned and all(value is True for value in turned) else _STARTING


def is_own(answer: Answer) -> bool:
    """Whether the API's function has written the answer: API Gateway's own have no ``statusCode``."""
    return isinstance(answer.body, Mapping) and "statusCode" in answer.body


def function_did_not_start(answer: Answer) -> bool:
    """Whether API Gateway says that Lambda did not run the function. A proxy integration turns Lambda's throttling into
    500 "Internal server error", or into 503 where the stage has a response for it.
    """
    failure = answer.status in (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)
    return failure and not is_own(answer)


def request(
    api: Api,
    method: str,
    path: str,
    query: Mapping[str, str] | None,
    body: Mapping[str, Any] | None,
    *,
    sleep: Callable[[float], None],
    how: Patience | None = None,
    spread: Callable[[float, float], float] = random.uniform,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """The last answer to a request, which is repeated after growing pauses of random length.

    Args:
        how: what :func:`patience` says, if None.
        sleep: waits for so many seconds.
        spread: chooses a number between two, so that many callers do not come back at one moment.
        clock: the seconds of a clock that only goes forward.

    Raises:
        UnreachableError: no answer came.
    """
    how = how or patience(method, path, body)
    began = clock()
    for attempt in range(1, how.tries + 1):
        try:
            answer = api.request(method, path, query, body)
        except UnreachableError:
            if not how.unreachable or attempt == how.tries or clock() - began > how.seconds:
                raise
        else:
            if not how.repeats(answer) or attempt == how.tries or clock() - began > how.seconds:
                return answer
        pause = min(_LONGEST_PAUSE, 2.0 ** (attempt - 1))
        sleep(spread(pause / 2, pause))
    raise AssertionError("the last try returns or raises")
