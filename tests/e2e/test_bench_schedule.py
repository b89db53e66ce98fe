"""A run that a schedule starts: EventBridge Scheduler, the start function and the workflow as they are deployed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.benches import LONG, SELDOM, Bench, assert_nothing_left
from tests.e2e.conftest import eventually


def test_a_schedule_starts_a_run_and_a_second_delivery_starts_no_other(bench: Bench) -> None:
    api, body = bench.deployment.view.api, bench.body("scheduled", {"drivers": 1})
    soon = datetime.now(UTC) + timedelta(seconds=20)
    del body["key"]
    body |= {"name": "soon", "expression": f"at({soon:%Y-%m-%dT%H:%M:%S})", "time_zone": "UTC"}
    answer = api.request("POST", "benchmarks/schedules", body=body)
    assert answer.status == 201, answer

    def started() -> dict[str, Any] | None:
        (one,) = api.get("benchmarks/schedules").body["schedules"]
        assert one["last_refusal"] is None, one
        return one if one["last_run"] else None

    first = eventually(started, LONG, SELDOM)
    (schedule,) = [one for one in bench.deployment.schedules() if one["Name"] == "soon"]
    target = bench.deployment.scheduler.get_schedule(Name="soon", GroupName=schedule["GroupName"])["Target"]
    again = json.loads(target["Input"]) | {"scheduled": first["last_at"]}
    bench.account.client("lambda").invoke(FunctionName=target["Arn"], Payload=json.dumps(again))
    assert started() == first
    detail = bench.ended(first["last_run"])
    assert (detail["run"]["status"], detail["run"]["name"]) == ("SUCCEEDED", "simulated")
    assert detail["run"]["requested_by"].endswith(" (schedule soon)")
    assert_nothing_left(bench, first["last_run"])

    assert api.request("DELETE", "benchmarks/schedules/soon").status == 200
    assert "soon" not in [one["Name"] for one in bench.deployment.schedules()]
