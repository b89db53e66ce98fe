"""A standing fleet in moto: asked for by the API, launched and kept by the workflow's steps, and torn down."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient

from handlers import fleet as fleet_handler
from handlers import launch as launch_handler
from handlers import teardown as teardown_handler
from tests.unit.account.account import CONTEXT, Account, inputs
from tests.unit.account.asking import ANNA, ask, get
from tests.unit.account.benches import CELL, Bench, deploy_benchmarks
from tests.unit.account.fast_moto import calls_are_usual, once
from troop.bench.definition import names
from troop.bench.records.record import Kind
from troop.shared.aws.clients import client

MACHINES = "arn:aws:states:eu-central-1:123456789012:stateMachine:"
KINDS = ("benchmark", "fleet", "teardown")
TOPICS = {name: f"arn:aws:sns:eu-central-1:123456789012:{name}" for name in ("ACT_NOW", "WARNING")}
FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:fleet"

FILE: dict[str, Any] = {
    "name": "workers",
    "expires_after": "8h",
    "fleets": {"workers": {"count": 2, "instance_type": "c7g.large", "zones": 2}},
    "setup": "setup.sh",
}
TWO = {**FILE, "fleets": {role: {"count": 1, "instance_type": "c7g.large"} for role in ("workers", "queues")}}


@dataclass
class Stand:
    """The account.

    Attributes:
        woken: payloads of the calls of the function that keeps fleets; nobody carries them out.
        refusals: status messages of failed launches, newest first.
    """

    bench: Bench
    woken: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    @property
    def account(self) -> Account:
        return self.bench.account

    @property
    def runs(self) -> Any:
        return self.bench.runs

    # The API

    def ask_up(self, definition: dict[str, Any] | None = None, key: str = "k", **more: Any) -> tuple[int, Any]:
        files = {"setup.sh": base64.b64encode(b"#!/bin/sh\n").decode()}
        return ask("POST", "/fleets", {"definition": definition or FILE, "files": files, "key": key, **more})

    def up(self, **how: Any) -> str:
        """A new fleet's id."""
        status, fleet = self.ask_up(**how)
        assert status == 202, fleet
        self.bench.run = str(fleet["fleet"])
        return self.bench.run

    def scale(self, run: str, count: int, caller: str = ANNA, **role: str) -> tuple[int, Any]:
        return ask("PATCH", f"/fleets/{run}", {"count": count, **role}, caller)

    def get_fleet(self, run: str) -> Any:
        return get(f"/fleets/{run}")

    def roles(self, run: str) -> dict[str, dict[str, int]]:
        """What GET says of each role's nodes, without zeros."""
        return {
            one["role"]: {k: v for k, v in one.items() if k not in ("role", "resizable") and v}
            for one in self.get_fleet(run)["fleet"]["roles"]
        }

    # The workflow

    def step(self, run: str, name: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = fleet_handler.handler({"step": name, "run": run, **more}, CONTEXT)
        return answer

    def keep(self, run: str) -> str:
        return str(self.step(run, "keep")["state"])

    def launched(self, **how: Any) -> str:
        """A fleet whose instances have been launched; none has registered."""
        return once(f"launched {how}", lambda: self._launch(**how), self.bench.holder)

    def _launch(self, **how: Any) -> str:
        run = self.up(**how)
        self.step(run, "open", execution="arn")
        launch_handler.handler({"run": run, "cell": CELL}, CONTEXT)
        return run

    def ready(self, **how: Any) -> str:
        """A fleet that stands."""
        return once(f"ready {how}", lambda: self._stand(**how), self.bench.holder)

    def _stand(self, **how: Any) -> str:
        run = self.launched(**how)
        self.register(run)
        assert self.keep(run) == "waiting"
        return run

    def tear_down(self, run: str) -> None:
        """The whole teardown, as the workflow does it."""
        work = self._teardown("close", {"run": run, "status": "STOPPED", "reason": "enough"})
        while not work["over"]:
            work = self._teardown("remove", work)
            self.account.clock.forward(seconds=work["wait_seconds"])
        self._teardown("conclude", work)

    def _teardown(self, step: str, work: dict[str, Any]) -> dict[str, Any]:
        event = {"step": step, "work": work, "execution": "e"}
        answer: dict[str, Any] = teardown_handler.handler(event, CONTEXT)
        return answer

    # What there is

    def group(self, run: str, role: str = "workers") -> dict[str, Any]:
        group: dict[str, Any] = self.bench.groups()[names.fleet_name(run, CELL, role)]
        return group

    def size(self, run: str, role: str = "workers") -> tuple[int, int, int]:
        """Desired capacity, maximum, and how many instances there are."""
        group = self.group(run, role)
        return group["DesiredCapacity"], group["MaxSize"], len(group["Instances"])

    def nodes(self, run: str, role: str = "workers") -> list[str]:
        return [one["InstanceId"] for one in self.group(run, role)["Instances"]]

    def register(self, run: str, role: str = "workers") -> None:
        self.bench.roles |= dict.fromkeys(self.nodes(run, role), role)
        self.bench.run = run
        self.bench.register(self.nodes(run, role))

    def on_record(self, run: str, *, gone: bool) -> set[str]:
        """Ids of the instances that the record has, gone or not."""
        return {
            r.name
            for r in self.runs.resources.get_all(run)
            if r.kind is Kind.INSTANCE and (r.gone_at is not None) is gone
        }

    def started(self, machine: str) -> dict[str, Any]:
        """Inputs of the executions that were started, by their name."""
        return inputs(MACHINES + machine)


@contextmanager
def deploy_fleets(account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stand]:
    """Adds to an account what a deployment has for standing fleets."""
    stand = Stand(deploy_benchmarks(account, monkeypatch, tmp_path))
    once("deploy fleets", _create)
    for name in KINDS:
        monkeypatch.setenv(f"TROOP_{name.upper()}_MACHINE", MACHINES + name)
    monkeypatch.setenv("TROOP_FLEET_FUNCTION", FUNCTION)
    for name, arn in TOPICS.items():
        monkeypatch.setenv(f"TROOP_{name}_TOPIC", arn)
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation == "DescribeScalingActivities":  # moto has none
            return {"Activities": [{"StatusCode": "Failed", "StatusMessage": refusal} for refusal in stand.refusals]}
        if operation != "Invoke":
            return real(self, operation, parameters)
        assert (parameters["FunctionName"], parameters["InvocationType"]) == (FUNCTION, "Event")
        stand.woken.append(json.loads(parameters["Payload"]))
        return {"StatusCode": 202}

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    calls_are_usual((stand, "woken", "refusals"))
    yield stand


def _create() -> None:
    role = client("iam").create_role(RoleName="machines", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    for name in KINDS:
        client("stepfunctions").create_state_machine(name=name, definition="{}", roleArn=role)
    for name in TOPICS:
        client("sns").create_topic(Name=name)
