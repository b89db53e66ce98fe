"""`make deploy` warns of a free plan, a region without arm64 and missing service-linked roles, before it asks."""

from __future__ import annotations

from datetime import UTC, datetime

import boto3
import pytest

from lifecycle import account
from tests.unit.lifecycle.world import DEPLOYED, Printed, Run, World
from troop.shared.service_roles import API_GATEWAY, SPOT

DONE = ["synth", "deploy"]


def warnings(run: Run, world: World, capsys: Printed, *settings: str) -> str:
    """What it prints before it asks; it deploys in any case."""
    world.done.clear()
    run(*settings, typed="y\n")
    before, _ = capsys.readouterr().out.split("[y/N]")
    assert [arguments[0] for arguments in world.done] == DONE
    return before


def test_an_account_that_lacks_nothing_gets_no_warning(run: Run, world: World, capsys: Printed) -> None:
    assert "Warning" not in warnings(run, world, capsys)


def test_the_free_plan_is_named_with_the_command_that_lists_its_types(run: Run, world: World, capsys: Printed) -> None:
    world.plan = {"accountPlanType": "FREE", "accountPlanExpirationDate": datetime(2027, 3, 1, tzinfo=UTC)}
    output = warnings(run, world, capsys)
    assert "on AWS's free plan until 2027-03-01" in output
    assert account.ELIGIBLE in output
    assert "free plan" not in warnings(run, world, capsys, "troop:benchmarks=false"), "nothing is launched"


def test_an_account_without_a_plan_gets_no_warning(run: Run, world: World, capsys: Printed) -> None:
    world.refuses = {"get_account_plan_state": "ResourceNotFoundException"}
    assert "Warning" not in warnings(run, world, capsys)


def test_other_partitions_have_no_plans(
    run: Run, world: World, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.plan = {"accountPlanType": "FREE"}
    monkeypatch.setattr(boto3.Session, "get_partition_for_region", lambda *_: "aws-us-gov")
    assert "free plan" not in warnings(run, world, capsys)


def test_a_region_without_arm64_is_named_while_nothing_is_deployed(run: Run, world: World, capsys: Printed) -> None:
    world.sold = {"AWS-Lambda-Duration"}
    assert "no price for functions on arm64 in eu-west-1" in warnings(run, world, capsys)
    world.sold = set()
    assert "arm64" not in warnings(run, world, capsys), "the list does not have this region at all"
    world.sold, world.status, world.resources = {"AWS-Lambda-Duration"}, "UPDATE_COMPLETE", dict(DEPLOYED)
    assert "arm64" not in warnings(run, world, capsys), "the functions run already"


def test_missing_roles_are_named_with_the_commands_for_an_administrator(
    run: Run, world: World, capsys: Printed
) -> None:
    world.roles -= {API_GATEWAY.name, SPOT.name}
    output = warnings(run, world, capsys)
    assert f"{API_GATEWAY.name} (stack), {SPOT.name} (first launch)" in output
    assert f"\n  {API_GATEWAY.command}\n  {SPOT.command}\n" in output
    assert "AutoScaling" not in output
    without = warnings(run, world, capsys, "troop:benchmarks=false")
    assert API_GATEWAY.name in without
    assert SPOT.name not in without


@pytest.mark.parametrize(
    ("operation", "subject"),
    [
        ("get_account_plan_state", "the plan of this account"),
        ("get_products", "whether Lambda has arm64 in this region"),
        ("get_role", "the service-linked roles of this account"),
    ],
)
def test_failed_check_of_the_account_is_a_warning(
    run: Run, world: World, capsys: Printed, operation: str, subject: str
) -> None:
    world.refuses = {operation: "AccessDeniedException"}
    output = warnings(run, world, capsys)
    assert output.count("Warning") == 1
    assert f"Warning: cannot check {subject} (An error occurred (AccessDeniedException)" in output
