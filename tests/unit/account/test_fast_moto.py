"""What makes tests on moto faster changes no answer: copies of accounts, and names that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from moto.core.responses import method_names_from_class
from moto.core.serialize import AttributePickerContext, XFormedAttributePicker
from moto.core.utils import get_service_model
from moto.ec2.responses import EC2Response

from tests.unit.account.account import OVERDUE, Account, calls
from tests.unit.account.benches import Bench
from tests.unit.account.fast_moto import once
from tests.unit.account.market import Market
from troop.shared.aws.clients import client
from troop.shared.tables import CHAOS_TABLES

makers: list[str] = []
"""The accounts that were really changed, by what was in them before."""
flows: list[Any] = []


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_account_has_nothing_of_the_one_before_it(account: Account, turn: int) -> None:
    """Each turn finds what is deployed, complete and empty, and then changes it."""
    s3, events = client("s3"), client("events")
    account.unsettle()
    assert account.dynamodb.list_tables()["TableNames"] == [table.name for table in CHAOS_TABLES]
    assert account.dynamodb.scan(TableName="State")["Items"] == []
    account.put("State", {"key": {"S": "k"}})
    account.dynamodb.delete_table(TableName="Changes")
    assert "Contents" not in s3.list_objects_v2(Bucket="work-bucket")
    s3.put_object(Bucket="work-bucket", Key="object", Body=b"body")
    assert [bus["Name"] for bus in events.list_event_buses()["EventBuses"]] == ["default", "chaos"]
    events.create_event_bus(Name="second")
    assert account.states() == {}
    account.group("web", size=1)


@pytest.mark.parametrize("before", ["one", "two"])
@pytest.mark.parametrize("turn", [1, 2])
def test_account_is_changed_once_and_copied_for_each_like_it(
    account: Account, market: Market, turn: int, before: str
) -> None:
    def make() -> str:
        makers.append(before)
        account.put("State", {"key": {"S": "after"}, "of": {"S": before}})
        account.clock.forward(minutes=1)
        market.quotas["L-1"] = 5.0
        return "answer"

    account.put("State", {"key": {"S": before}})
    assert once("made in a test", make) == "answer"
    assert makers.count(before) == 1
    assert (account.state("after")["of"], market.quotas["L-1"]) == (before, 5.0)
    assert account.clock() == OVERDUE + timedelta(minutes=1)
    account.put("State", {"key": {"S": "after"}, "of": {"S": "nobody"}})
    market.quotas.clear()


def test_test_that_intercepts_calls_gets_no_copy(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    with calls(monkeypatch):
        for number in range(2):
            once("answered by a test", lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == [0, 1]


@pytest.mark.parametrize("turn", [1, 2])
def test_copied_cell_equals_the_first_one(bench: Bench, turn: int) -> None:
    bench.measuring()
    flows.append((bench.groups(), bench.templates(), bench.account.states(), bench.objects(), bench.cell()))
    assert flows[-1] == flows[0]
    bench.lose(bench.nodes("drivers")[0])
    bench.put("one/more", {})
    bench.drop()


def test_names_computed_once_equal_those_of_moto() -> None:
    model: Any = get_service_model("ec2").operation_model("DescribeLaunchTemplates")
    shape, picker = model.output_shape.members["LaunchTemplates"].member, XFormedAttributePicker()
    alone: Callable[..., Any] = XFormedAttributePicker.get_possible_keys.__wrapped__
    aliased = type("Launch", (), {"Meta": SimpleNamespace(serialization_aliases={"CreatedBy": "author"})})
    things: tuple[Any, ...] = ({}, None, aliased(), type("LaunchTemplate", (), {})())
    for parent in (shape, shape, model.output_shape):  # computed, remembered, and those of another parent
        for key, member in shape.members.items():
            member.parent = parent
            for thing in things:
                context = AttributePickerContext(thing, key, member)
                assert [*picker.get_possible_keys(context)] == [*dict.fromkeys(alone(picker, context))], (thing, key)
    for _ in range(2):
        assert {"describe_instances", "create_launch_template"} <= set(method_names_from_class(EC2Response))
