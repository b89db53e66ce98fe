"""Benchmarks that hit units of the account: who may start them, and the hit while real processes load."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.client.api import Answer
from cli.client.signed_api import SignedApi
from cli.shared.errors import Exit
from local.launcher import LocalAccount
from tests.e2e.conftest import Deployment
from tests.e2e.roles import role_name, role_of
from troop.bench.definition import names

UNIT = "load-web"
LOSS = Path(__file__).parent / "loss"
PHASE = {
    **{"name": "measure", "roles": ["drivers"], "script": "measure.sh", "measured": "30s", "timeout": "2m"},
    **{"start_together": True, "faults": [{"at": "11s", "unit": UNIT}]},
}
FILE = {
    **{"name": "hits", "expires_after": "1h", "phases": [PHASE]},
    "fleets": {"drivers": {"count": 1, "instance_type": "c7g.large"}},
}
REQUEST = {"definition": FILE, "files": {"measure.sh": base64.b64encode(b"#!/bin/sh\n").decode()}}


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Iterator[Deployment]:
    deployment = Deployment(account, "Units")
    deployment.group(UNIT, Tags=[{"Key": "troop:under_load", "Value": "true", "PropagateAtLaunch": False}])
    yield deployment
    deployment.groups.delete(UNIT)


@pytest.fixture
def author(deployment: Deployment) -> Callable[..., Answer]:
    """Asks the API as a user who may run benchmarks, and as one who may terminate, too, after ``author("allow")``."""
    account, iam = deployment.account, deployment.account.client("iam")
    iam.create_user(UserName="author")
    key = iam.create_access_key(UserName="author")["AccessKey"]
    session = account.session(aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
    api = SignedApi(deployment.outputs["ApiUrl"], session, account.exports["AWS_CA_BUNDLE"])

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
    deployment: Deployment, author: Callable[..., Answer]
) -> None:
    api = deployment.view.api
    scheduled = {**REQUEST, "name": "hits", "expression": "rate(1 day)", "time_zone": "UTC"}
    permit = {"benchmark": "hits", "units": [UNIT]}
    for path, request in (("benchmarks", {**REQUEST, "key": "hits"}), ("benchmarks/schedules", scheduled)):
        refused = author(path, request)
        assert (refused.status, refused.code) == (403, "no-permit"), refused
    forbidden = author("terminations", permit)
    assert forbidden.status == 403
    assert "statusCode" not in forbidden.body, "IAM refuses it, and not the API"
    assert api.get("benchmarks").body["runs"] == api.get("benchmarks/schedules").body["schedules"] == []

    author("allow")
    assert author("terminations", permit).status == 201
    assert author("benchmarks/schedules", scheduled).code == "no-permit", "the permit is that of a run"
    assert author("terminations", {"schedule": "hits", "units": [UNIT]}).status == 201
    assert author("benchmarks/schedules", scheduled).status == 201
    assert api.request("DELETE", "benchmarks/schedules/hits").status == 200
    started = author("benchmarks", {**REQUEST, "key": "hits"})
    assert started.status == 202, started
    assert api.request("DELETE", f"benchmarks/{started.body['run']}").status in (200, 202)


def test_run_hits_a_unit_and_shows_its_recovery_beside_the_figures(deployment: Deployment) -> None:
    faults = f"phases.measure.faults=[{{at: 12s, unit: {UNIT}}}]"
    done = deployment.command(
        *("bench", "run", str(LOSS), "--json", "--set", faults, "--set", "phases.measure.measured=30s")
    )
    assert done.returncode in (Exit.OK, Exit.UNKNOWN), (done.stdout, done.stderr)  # a busy machine is unsteady
    run = json.loads(done.stdout)["run"]["run"]
    (event,) = deployment.view.api.get("events", {"unit": UNIT}).body["events"]
    assert (event["benchmark"], event["status"], event["verdict"]["value"]) == (run, "RECOVERED", "HELD")

    body = deployment.account.client("s3").get_object(
        Bucket=deployment.outputs["ResultsBucket"], Key=names.results_key(run, names.cell_id(1))
    )["Body"]
    (fault,) = (fault for phase in json.loads(body.read())["phases"] for fault in phase.get("faults", ()))
    assert (fault["unit"], fault["outcome"], fault["event"]["event_id"]) == (UNIT, "DONE", event["event_id"])
    assert fault["event"]["recovery_seconds"] == pytest.approx(event["recovery_seconds"], abs=0.001)
    assert fault["event"]["stages"]["in_service"] > fault["began_at"]
    for part in ("RequestRole", "CellRole", "ApiRole"):
        role = role_name(deployment, part)
        its = [one for one in deployment.account.decisions() if role_of(one["caller"]) == role]
        assert its
        assert [one for one in its if one["decision"] != "Allow"] == []
