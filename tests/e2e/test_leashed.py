"""A new deployment is leashed; what the switch says takes effect at the next tick."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from local.launcher import LocalAccount
from local.project import NODE_AWS
from tests.e2e.conftest import BUSY, Deployment, eventually
from tests.runbook import script_of_halt

UNIT = "leashed-web"


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Iterator[Deployment]:
    deployment = Deployment(account, "Leashed")
    deployment.group(UNIT)
    yield deployment
    deployment.groups.delete(UNIT)


def test_leashed_tick_decides_and_records_but_terminates_nothing(deployment: Deployment) -> None:
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


def test_halted_by_hand_comes_first(deployment: Deployment) -> None:
    """The runbook's command, typed as it stands there."""
    before = deployment.ids(UNIT)
    deployment.switch(halted=False, leashed=False)
    environment = os.environ | deployment.account.exports | {"PATH": f"{NODE_AWS.parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", script_of_halt(deployment.name)], env=environment, check=True)
    switch = deployment.view.api.get("switch").body
    assert switch == {**switch, "halted": True, "changed_by": "", "changed_at": None, "reason": "halted by hand"}
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


def test_on_demand_it_terminates_once_for_each_key(deployment: Deployment) -> None:
    ask = deployment.view.api.request
    before = deployment.ids(UNIT)
    body = {"group": UNIT, "idempotency_key": "first"}
    claimed = ask("POST", "terminations", body=body)
    assert (claimed.status, claimed.body["status"]) == (202, "CLAIMED")
    event = _over(deployment, claimed.body["id"])
    assert (event["status"], event["instance_id"]) == ("RECOVERED", claimed.body["instance_id"])
    after = deployment.ids(UNIT)
    assert before - after == {event["instance_id"]}
    repeated = ask("POST", "terminations", body=body)
    assert (repeated.status, repeated.body) == (200, event)
    assert deployment.ids(UNIT) == after
    assert ask("POST", "terminations", body={"group": "nobody", "idempotency_key": "x"}).status == 404


def test_clients_of_the_original_are_answered(deployment: Deployment) -> None:
    ask, path = deployment.view.api.request, "simianarmy/api/v1/chaos"
    # Without a key two requests are one for four seconds only, and a busy machine may take longer for each.
    body = {"eventType": "CHAOS_TERMINATION", "groupType": "ASG", "groupName": UNIT, "idempotencyKey": "original"}
    claimed = ask("POST", path, body=body)
    assert claimed.status == 200, claimed
    assert ask("POST", path, body=body).body == claimed.body
    newest = deployment.event(UNIT)
    assert newest is not None
    assert newest["instance_id"] == claimed.body["eventId"]
    assert _over(deployment, newest["id"])["status"] == "RECOVERED"
    events = ask("GET", path, {"groupName": UNIT}).body
    assert events[0] == claimed.body
    assert len(events) == 3
    assert ask("GET", path, {"since": "soon"}).status == 400


def _over(deployment: Deployment, id: str) -> dict[str, Any]:
    """An event once it is over."""

    def probe() -> dict[str, Any] | None:
        event: dict[str, Any] = deployment.view.api.get(f"events/{id}").body
        return None if event["status"] in ("CLAIMED", "TERMINATED") else event

    outcome: dict[str, Any] = eventually(probe, BUSY)
    return outcome


def test_the_api_answers_only_signed_requests(deployment: Deployment) -> None:
    answers = {path: deployment.view.api.get(path).status for path in ("events", "events/2026-01-01~nobody")}
    assert answers == {"events": 200, "events/2026-01-01~nobody": 404}
    url, trusted = deployment.outputs["ApiUrl"], deployment.account.exports["AWS_CA_BUNDLE"]
    assert requests.get(f"{url}events", verify=trusted, timeout=BUSY).status_code == 403


def test_bad_parameters_are_refused_with_what_is_allowed(deployment: Deployment) -> None:
    answer = deployment.view.api.get("events", {"limit": "1000", "status": "DEAD"})
    assert answer.status == 400
    assert "limit" in answer.body["message"]
    assert "UNRECOVERED" in answer.body["message"]
