"""Bodies that no route looks into: too large, not JSON, or nothing that can be written again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cli.web import proxy_guard
from handlers import api
from tests.unit.account.account import Account
from tests.unit.account.asking import ask
from tests.unit.visited import Visits
from troop.shared.api import requests
from troop.shared.values import MOST_VALUES

ROUTES = sorted(
    (route.method, route.path.replace("<unit>", "web").replace("<fleet>", "20261120-150312-1f0c9b2e"))
    for route in (*api.app._static_routes, *api.app._dynamic_routes)
    if route.method in ("POST", "PATCH") and not route.path.endswith("/report")
)
"""The routes with a body."""

MALFORMED = {
    "half of a pair as a key": '{"\\ud800": 1}',
    "half of a pair as a value": '{"reason": "\\udfff"}',
    "half of a pair below": '{"definition": {"name": [{"a\\uDC00": 1}]}}',
    "halves in the wrong order": '{"\\ude00\\ud83d": 1}',
    "half of a pair, unescaped": '{"\ud800": 1}',
    "NaN": '{"probability": NaN}',
    "infinity": '{"definition": {"budget": -Infinity}}',
    "a number without an end": '{"probability": ' + "9" * 5000 + "}",
    "an exponent": '{"probability": 1e999}',
    "levels": '{"a": ' + "[" * 500 + "]" * 500 + "}",
    "levels without an end": "[" * 30_000,
    "many values": json.dumps({"stop_alarms": [0] * 20_001}, separators=(",", ":")),
    "many keys": json.dumps({f"{n}": 1 for n in range(5000)}),
    "no end": '{"a": 1',
    "text": "x",
}


def test_every_route_that_takes_files_has_room_for_them() -> None:
    with_files = {path for path in proxy_guard.TAKE_FILES if not path.startswith("/ui/")}
    assert with_files == requests.LARGEST_BODIES.keys()


def test_there_are_routes_with_a_body() -> None:
    assert len(ROUTES) == 13
    assert ("PATCH", "/groups/web") in ROUTES


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_malformed_body_is_a_400_on_every_route(account: Account, method: str, path: str) -> None:
    for name, body in MALFORMED.items():
        status, answer = ask(method, path, body)
        assert (status, bool(answer["message"])) == (400, True), name


def test_both_halves_of_a_pair_are_a_character() -> None:
    for body in ('{"\\ud83d\\ude00": "\\uD83D\\uDE00"}', '{"\U0001f600": "\U0001f600"}', '{"\\\\ud800": 1}'):
        assert requests.parsed_body(body) == json.loads(body)


@pytest.mark.parametrize(
    "document",
    [
        lambda visits: {"definition": {"phases": visits.list([{}] * 300_000)}},
        lambda visits: {"definition": {"fleets": visits.mapping({f"f{n}": {} for n in range(90_000)})}},
        lambda visits: {"files": visits.mapping({f"f{n}": 1 for n in range(90_000)})},
        lambda visits: visits.list([0] * 900_000),
        lambda visits: {"stop_alarms": visits.list([visits.list([0] * 300) for _ in range(300)])},
    ],
)
def test_a_refusal_visits_no_more_values_than_a_body_may_have(
    account: Account, monkeypatch: pytest.MonkeyPatch, document: Callable[[Visits], Any]
) -> None:
    visits = Visits()
    large = document(visits)
    monkeypatch.setattr(requests, "json_in", lambda body: large)
    monkeypatch.setattr(api.app, "resolve", lambda *_: pytest.fail("a route looked into the body"))
    visits.number = 0
    status, answer = ask("POST", "/benchmarks/estimate", "{}")
    assert (status, "has more than 20,000 values" in answer["message"]) == (400, True)
    assert visits.number <= MOST_VALUES


def test_a_refusal_lists_the_first_problems_only(account: Account) -> None:
    files = {f"f{n}": n for n in range(15_000)}
    status, answer = ask("POST", "/benchmarks/estimate", {"definition": {}, "files": files})
    assert (status, len(answer["problems"])) == (400, 50)
    assert answer["message"].endswith("more")
    assert len(answer["message"]) < 10_000
