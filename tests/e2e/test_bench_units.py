"""Benchmarks that hit units of the account: who may start them, and the hit itself, by the deployed roles."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.client.api import Answer
from cli.client.signed_api import SignedApi
from tests.e2e.benches import LONG, SELDOM, Bench, assert_nothing_left
from tests.e2e.conftest import eventually
from tests.e2e.roles import as_role, role_name
from troop.shared import moments

UNIT = "load-web"
PHASE = {
    **{"name": "measure", "roles": ["drivers"], "script": "measure.sh", "measured": "30s", "timeout": "2m"},
    **{"start_together": True, "faults": [{"at": "11s", "unit": UNIT}]},
}


@pytest.fixture(scope="module")
def unit(bench: Bench) -> str:
    tag = {"Key": "troop:under_load", "Value": "true", "PropagateAtLaunch": False}
    return bench.deployment.group(UNIT, Tags=[tag])


@pytest.fixture
def author(bench: Bench) -> Callable[..., Answer]:
    """Asks the API as a user who may run benchmarks, and as one who may terminate, too, after ``author("allow")``."""
    account, iam = bench.account, bench.account.client("iam")
    iam.create_user(UserName="author")
    key = iam.create_access_key(UserName="author")["AccessKey"]
    session = account.session(aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
    api = SignedApi(bench.deployment.outputs["ApiUrl"], session, account.exports["AWS_CA_BUNDLE"])

    def allow(*resources: str) -> None:
        arns = [f"arn:aws:execute-api:*:*:*/v1/{resource}" for resource in resources]
        statement = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": arns}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName="author", PolicyName="calls", PolicyDocument=document)

    def ask(path: str, body: dict[str, Any] | None = None) -> Answer:
        if path == "allow":
            allow("POST/benchmarks", "POST/benchmarks/*", "POST/terminations")
            return Answer(200, {})
        return api.request("POST", path, body=body)

    allow("POST/benchmarks", "POST/benchmarks/*")
    return ask


def test_only_who_may_terminate_starts_or_schedules_a_benchmark_that_hits_units(
    bench: Bench, unit: str, author: Callable[..., Answer]
) -> None:
    body = bench.body("hits", {"drivers": 1}, phases=[PHASE])
    scheduled = {key: value for key, value in body.items() if key != "key"}
    scheduled |= {"name": "hits", "expression": "rate(1 day)", "time_zone": "UTC"}
    permits = [{"benchmark": "hits", "units": [unit]}]
    before = bench.deployment.view.api.get("benchmarks").body

    for path, request in (("benchmarks", body), ("benchmarks/schedules", scheduled)):
        refused = author(path, request)
        assert (refused.status, refused.code) == (403, "no-permit"), refused
    forbidden = author("terminations", permits[0])
    assert forbidden.status == 403
    assert "statusCode" not in forbidden.body, "IAM refuses it, and not the API"
    assert bench.deployment.view.api.get("benchmarks").body == before
    assert bench.deployment.view.api.get("benchmarks/schedules").body["schedules"] == []

    author("allow")
    assert author("terminations", permits[0]).status == 201
    assert author("benchmarks/schedules", scheduled).status == 201
    assert bench.deployment.view.api.request("DELETE", "benchmarks/schedules/hits").status == 200
    started = author("benchmarks", body)
    assert started.status == 202, started
    bench.stop(started.body["run"])
    bench.ended(started.body["run"])
    assert_nothing_left(bench, started.body["run"])


def test_the_function_that_cells_call_hits_a_unit_by_its_own_role(bench: Bench, unit: str) -> None:
    deployment = bench.deployment
    cell = deployment.account.client("lambda", as_role(deployment, "CellRole"))
    names = [one["FunctionName"] for one in deployment.account.client("lambda").list_functions()["Functions"]]
    (function,) = [name for name in names if name.startswith(deployment.name) and "Request" in name]

    def call(**payload: Any) -> dict[str, Any]:
        answer = cell.invoke(FunctionName=function, Payload=json.dumps(payload))
        document: dict[str, Any] = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, document
        return document

    permit = deployment.view.api.request("POST", "terminations", body={"benchmark": "k1", "units": [unit]})
    assert permit.status == 201, permit
    where = {"run": "20261120-224500-1f0c9b2e", "cell": "c001", "step": "measure", "number": 1}
    now, latest = (moments.iso(datetime.now(UTC) + timedelta(seconds=seconds)) for seconds in (0, 60))
    hit = call(**where, unit=unit, requested_at=now, latest=latest, choice=None)
    assert hit["outcome"] == "DONE", hit
    assert hit["event"]["group"] == unit
    assert hit["event"]["instance_id"] in deployment.ids(unit)
    again = call(**where, unit=unit, requested_at=now, latest=latest, choice=None)
    assert again["event"]["event_id"] == hit["event"]["event_id"]

    def over() -> dict[str, Any] | None:
        event: dict[str, Any] = call(event_id=hit["event"]["event_id"])["event"]
        return event if event["over"] else None

    event = eventually(over, LONG, SELDOM)
    assert (event["status"], event["verdict"]) == ("RECOVERED", "HELD"), event
    assert event["stages"]["in_service"] >= event["terminated_at"]
    shown = deployment.view.api.get("events", {"unit": unit}).body["events"]
    assert [(one["event_id"], one["benchmark"]) for one in shown] == [(event["event_id"], where["run"])]
    role = role_name(deployment, "RequestRole")
    denied = [one for one in deployment.account.decisions() if role in one["caller"] and one["decision"] != "Allow"]
    assert denied == []
