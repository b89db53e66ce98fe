"""Which requests are repeated after which answers, how often, and after what pauses."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from cli.client import retries
from cli.client.api import Answer, UnreachableError
from tests.unit.cli.web.proxying import Running

STARVED = Answer(500, {"message": "Internal server error"})
REJECTED = Answer(503, {"message": "Lambda did not start the API's function"})
THROTTLED = Answer(429, {"message": "Too Many Requests"})
DEFECT = Answer(500, {"statusCode": 500, "message": "the request failed"})
LATE = Answer(504, {"message": "Endpoint request timed out"})
DIED = Answer(502, {"message": "Internal server error"})
UNREACHABLE = UnreachableError("connection refused")
FINE = Answer(200, {"halted": True})

HALT, LEASH = {"halted": True, "reason": "incident"}, {"leashed": True}
ID = {"halt_id": "20261120-224600-0a1b2c3d"}
RESUME, UNLEASH, BOTH = {"halted": False}, {"leashed": False}, {"halted": True, "leashed": False}


class Api:
    """Answers one by one, the last for ever."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers, self.calls = list(answers), 0

    def request(self, *_: Any) -> Answer:
        self.calls += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def tries(answer: Answer | Exception, method: str, path: str, body: dict[str, Any] | None = None) -> int:
    """How often a request is made that always has the same answer."""
    api = Api(answer)
    with contextlib.suppress(UnreachableError):
        retries.request(api, method, path, None, body, sleep=lambda _: None)
    return api.calls


@pytest.mark.parametrize(
    ("method", "path", "body", "repeated"),
    [
        ("GET", "events", None, {"STARVED": 4, "REJECTED": 4, "THROTTLED": 4, "LATE": 4, "DIED": 4}),
        *[
            ("PATCH", "switch", body, dict.fromkeys(("STARVED", "REJECTED", "THROTTLED", "LATE", "DIED"), 6)
             | {"UNREACHABLE": 6})
            for body in (HALT, LEASH, HALT | ID, RESUME | ID)
        ],
        *[
            ("PATCH", "switch", body, {"THROTTLED": 6})
            for body in (RESUME, UNLEASH, BOTH, {"reason": "x"})
        ],
        ("PATCH", "groups/web", {"halted": True}, {"THROTTLED": 4}),
        ("POST", "terminations", {}, {"THROTTLED": 4}),
    ],
)  # fmt: skip
def test_repeated_requests_depend_on_method_and_failure(
    method: str, path: str, body: dict[str, Any] | None, repeated: dict[str, int]
) -> None:
    names = ("STARVED", "REJECTED", "THROTTLED", "DEFECT", "LATE", "DIED", "UNREACHABLE")
    counts = {name: tries(globals()[name], method, path, body) for name in names}
    assert {name: count for name, count in counts.items() if count > 1} == repeated


def test_a_halt_comes_through_when_lambda_starts_again() -> None:
    api, pauses = Api(STARVED, UNREACHABLE, THROTTLED, FINE), list[float]()
    answer = retries.request(api, "PATCH", "switch", None, HALT, sleep=pauses.append, spread=lambda _, most: most)
    assert (answer, api.calls, pauses) == (FINE, 4, [1.0, 2.0, 4.0])


def test_pauses_grow_to_a_limit_and_differ_from_caller_to_caller() -> None:
    for _ in range(20):
        pauses: list[float] = []
        retries.request(Api(STARVED), "PATCH", "switch", None, HALT, sleep=pauses.append)
        assert all(most / 2 <= pause <= most for pause, most in zip(pauses, (1, 2, 4, 8, 8), strict=True))
    assert sum((1, 2, 4, 8, 8)) < 25


def test_the_proxy_repeats_as_the_commands_do(running: Running) -> None:
    running.api.answer, pauses = STARVED, list[float]()
    running.proxy.sleep = pauses.append
    body = b'{"halted": true}'
    assert running.ask("PATCH", "/switch", body, Content_Type="application/json").status == 500
    assert (len(running.api.calls), len(pauses)) == (6, 5)


def test_a_halt_that_nobody_answers_gives_up_in_time() -> None:
    """Six tries at 35 seconds each would keep the runbook's command from whoever needs it now."""
    api, clock = Api(UNREACHABLE), iter(range(0, 10_000, 20))
    with pytest.raises(UnreachableError):
        retries.request(api, "PATCH", "switch", None, HALT, sleep=lambda _: None, clock=lambda: next(clock))
    assert api.calls == 2
