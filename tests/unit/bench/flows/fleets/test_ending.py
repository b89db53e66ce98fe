"""How standing fleets end: removed, by themselves, or before they began."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from handlers.fleet import UnknownFleetStepError
from tests.unit.account.account import calls, refusing
from tests.unit.account.asking import ANNA, BERT, ask, get
from tests.unit.account.standing import MACHINES, Stand
from troop.bench.records.record import CellStatus, RunStatus
from troop.shared.aws.clients import client
from troop.shared.errors import RunClosedError


def test_a_removed_fleet_is_closed_its_workflow_ended_and_its_teardown_started(stand: Stand) -> None:
    run = stand.ready()
    status, fleet = ask("DELETE", f"/fleets/{run}", caller=BERT)
    assert (status, fleet["status"], fleet["reason"]) == (202, "STOPPING", f"stopped by {BERT}")
    arn = f"{MACHINES.replace('stateMachine', 'execution')}fleet:{run}"
    assert client("stepfunctions").describe_execution(executionArn=arn)["status"] == "ABORTED"
    (work,) = stand.started("teardown").values()
    assert work == {"run": run, "status": "STOPPED", "reason": f"stopped by {BERT}"}
    stand.tear_down(run)
    document = stand.get_fleet(run)
    assert (document["fleet"]["status"], document["nodes"], document["refusals"]) == ("STOPPED", [], [])
    assert document["fleet"]["roles"][0]["in_service"] == 0
    assert all(resource["gone_at"] for resource in document["resources"])
    assert stand.bench.cell().status is CellStatus.STOPPED
    assert ask("DELETE", f"/fleets/{run}")[0] == 200


def test_fleet_has_an_estimate_and_then_a_cost(stand: Stand) -> None:
    run = stand.ready()
    (listed,) = get("/fleets")["fleets"]
    fleet = stand.get_fleet(run)["fleet"]
    assert fleet["estimate"] == listed["estimate"]
    assert (fleet["estimate"]["expected"] > 0, fleet["cost"]) == (True, None)
    stand.account.clock.forward(hours=2)
    stand.tear_down(run)
    cost = stand.get_fleet(run)["fleet"]["cost"]
    assert 0 < cost["amount"] < fleet["estimate"]["expected"]
    assert "c7g.large" in str(cost["items"])


def test_standing_fleet_ends_when_it_expires(stand: Stand) -> None:
    run = stand.ready()
    stand.account.clock.forward(hours=7, minutes=59, seconds=30)
    assert stand.step(run, "keep")["wait_seconds"] == 31
    stand.account.clock.forward(seconds=30)
    assert stand.scale(run, 5)[0] == 409
    assert stand.keep(run) == "done"
    settled = stand.step(run, "settle", error="", cause="")
    assert (settled["status"], settled["reason"]) == ("STOPPED", "its time has expired: expires_after")


def test_a_launch_that_fails_is_the_reason(stand: Stand) -> None:
    run = stand.up()
    settled = stand.step(run, "settle", error="LaunchImpossibleError", cause='{"errorMessage": "no zones"}')
    assert (settled["status"], settled["reason"]) == ("FAILED", "LaunchImpossibleError: no zones")


def test_a_fleet_that_was_closed_before_it_began(stand: Stand) -> None:
    run = stand.up()
    stand.runs.close(run, RunStatus.STOPPED, f"stopped by {ANNA}", stand.account.clock())
    with pytest.raises(RunClosedError):
        stand.step(run, "open", execution="arn")
    assert stand.step(run, "settle", error="RunClosedError", cause="")["status"] == "STOPPED"


def test_a_refusal_of_aws_is_the_steps_failure(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.ready()
    stand.scale(run, 5)

    refused = refusing("UpdateAutoScalingGroup", "ScalingActivityInProgress")
    with calls(monkeypatch, refused), pytest.raises(ClientError):
        stand.keep(run)
    assert stand.runs.launches.get_all(run) == [], "the right is given back"
    assert stand.keep(run) == "waiting"


def test_a_step_that_there_is_not(stand: Stand) -> None:
    with pytest.raises(UnknownFleetStepError):
        stand.step("r", "wait")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
def test_a_fleet_that_there_is_not(stand: Stand, method: str) -> None:
    status, body = ask(method, "/fleets/20261120-224600-00000000", {"count": 1} if method == "PATCH" else None)
    assert status == 404
    assert "GET /fleets lists" in body["message"]
