"""The roles of services that launch: created where an account lacks them, and waited for, but not for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from tests.unit.account.account import Call, before, calls, refusing
from tests.unit.account.benches import Bench
from troop.bench.aws.service_roles import LOOKS, PAUSE, SPREADING, ServiceRoles
from troop.bench.fleets.fleet_requests import LaunchImpossibleError
from troop.shared.aws.clients import client
from troop.shared.service_roles import AUTO_SCALING, SPOT, ServiceRole

TAKEN = "Service role name AWSServiceRoleForAutoScaling has been taken in this account, please try a different suffix."


def roles(slept: list[float]) -> ServiceRoles:
    return ServiceRoles(client("iam"), slept.append)


NAMES = {role.service: role.name for role in (AUTO_SCALING, SPOT)}


def without(*missing: ServiceRole) -> None:
    for role in missing:
        client("iam").delete_role(RoleName=role.name)


def creating(after: int = 0) -> Callable[[int, str, Call], Any]:
    """Creates roles as IAM names them, which is not quite moto's way; each is seen after so many looks."""
    counts: dict[str, int] = {}

    def intercept(number: int, operation: str, call: Call) -> Any:
        if operation == "CreateServiceLinkedRole":
            counts.update(dict.fromkeys(NAMES.values() - counts.keys(), 0))
            return {}
        if operation == "GetRole" and counts:
            counts["looks"] = counts.get("looks", 0) + 1
            if counts["looks"] > after:
                return {}
        return call()

    return intercept


def test_an_account_that_has_them_is_only_looked_at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    with calls(monkeypatch) as operations:
        roles(slept).ensure(spot=True)
    assert (operations, slept) == (["GetRole", "GetRole"], [])


@pytest.mark.parametrize(("spot", "created"), [(False, 1), (True, 2)])
def test_missing_service_role_is_created_once_with_a_wait(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, spot: bool, created: int
) -> None:
    without(AUTO_SCALING, SPOT)
    services: list[str] = []
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation != "CreateServiceLinkedRole":
            return real(self, operation, parameters)
        service = parameters["AWSServiceName"]
        services.append(service)
        return client("iam").create_role(RoleName=NAMES[service], AssumeRolePolicyDocument="{}")

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    slept: list[float] = []
    roles(slept).ensure(spot=spot)
    assert services == [AUTO_SCALING.service, SPOT.service][:created]
    assert slept == [SPREADING]
    roles(slept).ensure(spot=spot)
    assert (len(services), slept) == (created, [SPREADING])


@pytest.mark.parametrize("after", [0, 3, 1000])
def test_the_wait_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    without(AUTO_SCALING)
    slept: list[float] = []
    with calls(monkeypatch, creating(after)):
        roles(slept).ensure(spot=False)
    assert slept == [PAUSE] * min(after, LOOKS) + [SPREADING]
    assert sum(slept) <= 30


def test_another_cell_may_have_been_faster(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    without(AUTO_SCALING)
    slept: list[float] = []

    def create_first() -> None:
        client("iam").create_role(RoleName=AUTO_SCALING.name, AssumeRolePolicyDocument="{}")
        raise ClientError({"Error": {"Code": "InvalidInput", "Message": TAKEN}}, "CreateServiceLinkedRole")

    with calls(monkeypatch, before("CreateServiceLinkedRole", create_first)):
        roles(slept).ensure(spot=False)
    assert slept == [SPREADING]


def test_service_role_that_troop_may_not_create_ends_the_run_with_a_command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything was made: a launch that needs it would fail for minutes, and say less."""
    without(SPOT, AUTO_SCALING)
    bench.open()
    with (
        calls(monkeypatch, refusing("CreateServiceLinkedRole", "AccessDenied")) as operations,
        pytest.raises(LaunchImpossibleError, match=r"--aws-service-name autoscaling\.amazonaws\.com") as refused,
    ):
        bench.launch()
    assert "no role AWSServiceRoleForAutoScaling yet" in str(refused.value)
    assert not {"CreateSecurityGroup", "CreateLaunchTemplate", "CreateAutoScalingGroup"} & set(operations)


def test_unreadable_service_role_is_left_to_auto_scaling(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    with calls(monkeypatch, refusing("GetRole", "AccessDenied")) as operations:
        roles(slept).ensure(spot=False)
    assert (operations, slept) == (["GetRole"], [])


def test_other_failures_are_failures(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    without(AUTO_SCALING)
    with (
        calls(monkeypatch, refusing("CreateServiceLinkedRole", "ServiceFailure")),
        pytest.raises(ClientError, match="ServiceFailure"),
    ):
        roles([]).ensure(spot=False)
