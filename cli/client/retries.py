"""Retries requests to the API where a retry is safe and may succeed."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from cli.client.api import Answer, Api, UnreachableError
from troop.shared.state_keys import HALT_ID

_SWITCH = ("PATCH", "switch")
_LONGEST_PAUSE = 8.0
_LOST = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
"""Statuses after which the function may have run, and its answer is lost."""


@dataclass(frozen=True)
class Patience:
    """The time for which a request is retried, and the answers after which it is.

    Attributes:
        tries: attempts, the first included.
        not_started: retry if API Gateway could not start the function.
        lost: retry if the function may have run.
        failed: retry if the function reports a failure.
        unreachable: retry if there is no answer.
        seconds: begin no attempt after this time.
    """

    tries: int = 4
    not_started: bool = True
    lost: bool = True
    failed: bool = False
    unreachable: bool = False
    seconds: float = math.inf

    def repeats(self, answer: Answer) -> bool:
        """Checks whether a retry is safe and may succeed. A request that the stage throttles changed nothing."""
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            return True
        if function_did_not_start(answer):
            return self.not_started
        if answer.status in _LOST:
            return self.lost
        return self.failed and answer.status in (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)


ONCE = Patience(not_started=False, lost=False)
"""Patience for changes that a second request would make twice."""
REPEATABLE = Patience(failed=True)
"""Patience for requests with a key, or whose repetition changes nothing."""
_READING = Patience()
_STOPPING = Patience(tries=6, unreachable=True, seconds=30)
"""Patience for a halt, which must succeed and may be repeated; and for the end of a halt with an id, of which a
repetition ends no other one.
"""
_STARTING = Patience(tries=6, not_started=False, lost=False)
"""Patience for a resume. If it succeeded, a repetition could undo a later halt. API Gateway's answer does not tell a
function that did not start from a lost answer, so only requests that the stage throttles are repeated.
"""


def patience(method: str, path: str, body: Mapping[str, Any] | None) -> Patience:
    """Returns the safe patience for a request, by its method, path (``switch``) and body."""
    if method in ("GET", "HEAD"):
        return _READING
    if (method, path) != _SWITCH:
        return ONCE
    turned = {key: value for key, value in (body or {}).items() if key not in ("reason", HALT_ID)}
    stops = turned and all(value is True for value in turned.values())
    return _STOPPING if stops or HALT_ID in (body or {}) else _STARTING


def is_own(answer: Answer) -> bool:
    """Checks whether the API's function wrote the answer: those of API Gateway have no ``statusCode``."""
    return isinstance(answer.body, Mapping) and "statusCode" in answer.body


def function_did_not_start(answer: Answer) -> bool:
    """Checks whether API Gateway answered that Lambda did not run the function.

    A proxy integration turns Lambda's throttling into 500 "Internal server error", or into 503 if the stage has a
    response for it.
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
    """Sends a request, retries it after growing random pauses, and returns the last answer.

    Args:
        how: by default the result of :func:`patience`.
        sleep: waits for a number of seconds.
        spread: chooses a number between two, so that many callers do not retry at one moment.
        clock: a monotonic clock, in seconds.

    Raises:
        UnreachableError: there was no answer.
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
