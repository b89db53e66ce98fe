"""A new deployment is leashed; what the switch says takes effect at the next tick."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.launcher import LocalAccount
from tests.e2e.conftest import Deployment

UNIT = "leashed-web"


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Iterator[Deployment]:
    deployment = Deployment(account, "Leashed", leashed=True)
    deployment.group(UNIT)
    yield deployment
    deployment.groups.delete(UNIT)


def test_it_decides_and_records_and_terminates_nothing(deployment: Deployment) -> None:
    before = deployment.ids(UNIT)
    for _ in range(2):
        assert deployment.tick()["status"] == "SUCCEEDED"
    event = deployment.event(UNIT)
    assert event is not None
    assert (event["status"], event["group"]) == ("LEASHED", UNIT)
    assert event["instance_id"] in before
    decision = deployment.view.decisions(UNIT)[0]
    assert (decision["reason"], decision["instance_id"]) == ("leashed", event["instance_id"])
    assert deployment.ids(UNIT) == before


def test_halted_comes_first(deployment: Deployment) -> None:
    before = deployment.ids(UNIT)
    deployment.switch(halted=True, leashed=False)
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert deployment.view.decisions(UNIT)[0]["reason"] == "halted"
    assert deployment.ids(UNIT) == before


def test_once_unleashed_the_day_gets_its_termination(deployment: Deployment) -> None:
    leashed = deployment.event(UNIT)
    assert leashed is not None
    deployment.switch(halted=False, leashed=False)
    assert deployment.tick()["status"] == "SUCCEEDED"
    event = deployment.event(UNIT)
    assert event is not None
    assert event["status"] == "RECOVERED"
    assert event["recovery_seconds"] > 0
    assert event["instance_id"] == leashed["instance_id"]  # the day's order of instances is what it was
    assert event["instance_id"] not in deployment.ids(UNIT)
    assert deployment.view.api.get(f"events/{event['id']}").body == event


def test_a_second_tick_terminates_nothing_more(deployment: Deployment) -> None:
    before = deployment.ids(UNIT)
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert deployment.view.decisions(UNIT)[0]["reason"] == "already-today"
    assert deployment.ids(UNIT) == before


def test_the_api_answers_only_signed_requests(deployment: Deployment) -> None:
    answers = {path: deployment.view.api.get(path).status for path in ("events", "events/2026-01-01~nobody")}
    assert answers == {"events": 200, "events/2026-01-01~nobody": 404}
    assert deployment.view.api.unsigned("events").status == 403


def test_bad_parameters_are_refused_with_what_is_allowed(deployment: Deployment) -> None:
    answer = deployment.view.api.get("events", {"limit": "1000", "status": "DEAD"})
    assert answer.status == 400
    assert "limit" in answer.body["message"]
    assert "UNRECOVERED" in answer.body["message"]
