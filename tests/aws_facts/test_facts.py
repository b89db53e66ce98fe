"""Facts that no call or code shows by itself: each with its source, and what must agree with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from infra import ROOT
from tests.aws_facts.sources import model, text_of
from troop.bench.aws import fleet_reader
from troop.chaos.aws.groups import ALARM_TYPES, LEAVING, REFRESH_ENDED
from troop.chaos.guards import NEEDED_PROCESSES
from troop.chaos.verdict_rules import ALARM, INSUFFICIENT_DATA, OK

HARMS = ("terminates", "deletes", "spends", "hides")
FACTS: dict[str, list[dict[str, str]]] = tomllib.loads(Path(__file__).with_name("facts.toml").read_text())
_ROWS = [row for rows in FACTS.values() for row in rows]


def test_the_worst_comes_first() -> None:
    assert tuple(FACTS) == HARMS


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row["fact"])
def test_a_fact_has_one_source_and_code_that_relies_on_it(row: dict[str, str]) -> None:
    assert (ROOT / row["code"]).is_file()
    assert ("model" in row) != ("page" in row)
    if "model" in row:
        assert row["text"] in text_of(row["model"]).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _values(service: str, shape: str) -> set[str]:
    values: Any = model(service).shape_for(shape)
    return set(values.enum)


def test_processes_that_are_suspended_or_needed_exist() -> None:
    text = text_of("autoscaling ScalingProcessQuery.ScalingProcesses").split()
    assert NEEDED_PROCESSES | set(fleet_reader.FROZEN) <= set(text)


def test_an_instance_that_leaves_its_group_is_known_by_its_state() -> None:
    states = _values("autoscaling", "LifecycleState")
    assert {state for state in states if state.startswith(LEAVING)} == {
        *("Terminating", "Terminating:Wait", "Terminating:Proceed", "Terminating:Retained", "Terminated"),
    }
    assert fleet_reader.SERVING in states


def test_a_refresh_whose_status_is_new_counts_as_under_way() -> None:
    statuses = _values("autoscaling", "InstanceRefreshStatus")
    under_way = {"Pending", "InProgress", "Cancelling", "RollbackInProgress", "Baking"}
    assert statuses - REFRESH_ENDED == under_way


def test_verdicts_know_the_states_and_the_history_of_alarms() -> None:
    assert _values("cloudwatch", "StateValue") == {OK, ALARM, INSUFFICIENT_DATA}
    assert {"StateUpdate", "ConfigurationUpdate"} <= _values("cloudwatch", "HistoryItemType")
    assert set(ALARM_TYPES) == _values("cloudwatch", "AlarmType") - {"LogAlarm"}


def test_a_transaction_has_its_token_from_the_sdk() -> None:
    shape: Any = model("dynamodb").shape_for("TransactWriteItemsInput")
    assert shape.members["ClientRequestToken"].metadata["idempotencyToken"] is True


def test_a_command_has_no_token_and_a_comment_that_finds_it() -> None:
    shape: Any = model("ssm").shape_for("SendCommandRequest")
    invocation: Any = model("ssm").shape_for("CommandInvocation")
    assert not [one for one, member in shape.members.items() if member.metadata.get("idempotencyToken")]
    assert shape.members["Comment"].metadata == {"max": 100}
    assert shape.members["TimeoutSeconds"].metadata["min"] == 30
    assert "Comment" in invocation.members
