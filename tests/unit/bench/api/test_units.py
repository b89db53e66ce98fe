"""Benchmarks that hit units: only if the deployment and the owners agree, and the caller may terminate."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from handlers import request as request_handler
from tests.unit.account.account import CONTEXT, Call, calls
from tests.unit.account.asking import ANNA, BERT, ask
from tests.unit.account.bench import FILE, Half, changed, post, problems
from tests.unit.bench.api.test_schedules import fire, group, schedule
from troop.shared import moments

__all__ = ["group"]

FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:request"
WHERE = "body.definition.phases.0.faults.0.unit"
MEASURE = FILE["phases"][0] | {"start_together": True}
ALLOWED = pytest.mark.parametrize("settings", [{"under_load": True}], indirect=True)
AGREED = {"troop:under_load": "true"}


def hitting(*units: str) -> dict[str, Any]:
    faults = [{"at": f"{45 * n}s", "unit": unit} for n, unit in enumerate(units, 1)]
    return changed(phases=[MEASURE | {"faults": faults}])


def permit(*units: str, key: str = "k1", caller: str = ANNA, kind: str = "benchmark") -> tuple[int, Any]:
    return ask("POST", "/terminations", {kind: key, "units": list(units)}, caller)


@pytest.fixture(autouse=True)
def function(half: Half, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lambda with the function that knows the units."""

    def invoke(number: int, operation: str, call: Call) -> Any:
        if operation != "Invoke":
            return call()
        payload = call.args[-1]
        assert payload["FunctionName"] == FUNCTION
        answer = request_handler.handler(json.loads(payload["Payload"]), CONTEXT)
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}

    monkeypatch.setenv("TROOP_REQUEST_FUNCTION", FUNCTION)
    with calls(monkeypatch, invoke):
        yield


def test_a_deployment_that_lets_no_benchmark_hit_units_says_so(half: Half) -> None:
    half.account.group("web", tags=AGREED)
    refused = problems(definition=hitting("web"))[WHERE]
    assert refused.startswith(
        "is 'web': must be a unit that benchmarks may hit: the deployment's setting troop:under_load is false"
    )
    assert permit("web") == (
        403,
        {
            "statusCode": 403,
            "message": "this deployment lets no benchmark hit units: its setting troop:under_load is false",
        },
    )


@ALLOWED
class TestAllowed:
    def test_units_without_groups_or_agreement_are_problems_of_the_file(self, half: Half) -> None:
        half.account.group("shop")
        half.account.group("api", tags=AGREED | {"troop:opt_out": "true"})
        half.account.group("db", tags=AGREED | {"troop:protected": "true"})
        half.account.group("web", tags=AGREED)
        place = WHERE.replace("faults.0", "faults.{}")
        assert problems(definition=hitting("none", "shop", "api", "db", "web")) == {
            place.format(n): f"is {unit!r}: must be a unit that benchmarks may hit: {why}"
            for n, (unit, why) in enumerate(
                [
                    ("none", "no Auto Scaling group belongs to it"),
                    ("shop", "its policy does not agree: under_load is false (settings)"),
                    ("api", "opted out by tag of api"),
                    ("db", "db is tagged troop:protected"),
                ]
            )
        }
        estimate = {"definition": hitting("shop"), "files": {}}
        assert ask("POST", "/benchmarks/estimate", estimate)[0] == 400

    def test_caller_without_a_permit_starts_nothing(self, half: Half) -> None:
        half.account.group("web", tags=AGREED)
        status, refused = post(definition=hitting("web"))
        assert (status, refused["code"]) == (403, "no-permit")
        assert 'send POST /terminations with {"benchmark": "k1", "units": ["web"]} first' in refused["message"]
        assert half.started() == half.objects() == {}
        assert half.runs.reservations.read().nodes == {}

    def test_a_permit_starts_the_run_of_its_caller_key_and_units(self, half: Half) -> None:
        half.account.group("web", tags=AGREED)
        half.account.group("api", tags=AGREED)
        until = moments.iso(half.account.clock().replace(microsecond=0)).replace("22:46", "23:46")
        assert permit("web", "web") == (201, {"benchmark": "k1", "schedule": None, "units": ["web"], "until": until})
        assert half.account.gone() == half.account.all_events() == []
        others: list[dict[str, Any]] = [{"caller": BERT}, {"key": "k2"}, {"definition": hitting("web", "api")}]
        for other in others:
            assert post(**{"definition": hitting("web")} | other)[0] == 403, other
        assert half.started() == {}
        status, run = post(definition=hitting("web"))
        assert status == 202, run
        half.account.clock.forward(hours=2)
        assert post(definition=hitting("web")) == (200, run), "a repeated request starts nothing"

    def test_first_permit_of_a_deployment_ends_its_initial_leash(self, half: Half) -> None:
        half.account.unsettle()
        half.account.group("web", tags=AGREED)
        assert half.account.state("earlier-tables") == {}
        permit("web")
        assert half.account.state("earlier-tables")["settled_at"]

    def test_a_permit_holds_for_an_hour(self, half: Half) -> None:
        half.account.group("web", tags=AGREED)
        permit("web")
        half.account.clock.forward(minutes=60)
        assert post(definition=hitting("web"))[0] == 403
        permit("web")
        half.keep_prices()
        assert post(definition=hitting("web"))[0] == 202

    def test_a_benchmark_that_hits_nothing_needs_no_permit(self) -> None:
        assert post()[0] == 202

    def test_schedule_needs_the_permit_and_its_starts_need_none(self, half: Half) -> None:
        half.account.group("web", tags=AGREED)
        status, refused = schedule(definition=hitting("web"))
        assert (status, refused["code"]) == (403, "no-permit")
        assert ask("GET", "/benchmarks/schedules")[1]["schedules"] == []
        permit("web", key="nightly", caller=BERT)
        status, refused = schedule(definition=hitting("web"))
        assert (status, '{"schedule": "nightly", "units": ["web"]}' in refused["message"]) == (403, True), "a run's key"
        assert permit("web", key="nightly", caller=BERT, kind="schedule")[1]["schedule"] == "nightly"
        assert schedule(definition=hitting("web"))[0] == 201
        half.account.clock.forward(hours=2)
        half.keep_prices()
        assert fire("2026-11-21T00:46:00Z")["run"]

    def test_start_is_refused_when_the_owner_no_longer_agrees(self, half: Half) -> None:
        half.account.group("web", tags=AGREED)
        permit("web", key="nightly", caller=BERT, kind="schedule")
        schedule(definition=hitting("web"))
        half.account.policy("web", under_load=False)
        assert "its policy does not agree: under_load is false (item)" in fire()["refusal"]
        assert half.started() == {}

    @pytest.mark.parametrize(
        ("body", "where"),
        [
            ({"benchmark": "k1"}, "body.units"),
            ({"schedule": "k1"}, "body.units"),
            ({"benchmark": "k1", "schedule": "k1", "units": ["web"]}, "body"),
            ({"benchmark": "k 1", "units": ["web"]}, "body.benchmark"),
            ({"benchmark": "k1", "units": []}, "body.units"),
            ({"group": "web"}, "body.idempotency_key"),
        ],
    )
    def test_a_malformed_permit_is_refused_by_the_name_of_its_key(self, body: dict[str, Any], where: str) -> None:
        status, answer = ask("POST", "/terminations", body)
        assert (status, [problem["where"] for problem in answer["problems"]]) == (400, [where])

    def test_a_function_that_fails_is_no_agreement(self, half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
        failure = {"FunctionError": "Unhandled", "Payload": io.BytesIO(b'{"errorMessage": "throttled"}')}
        with calls(monkeypatch, lambda number, operation, call: failure if operation == "Invoke" else call()):
            assert post(definition=hitting("web"))[0] == 500
        assert half.started() == {}
