"""Run Command of local AWS: what time and a silent agent do to a command."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from local.account.run_command import Invocation, Refusal, RunCommand

INSTANCE = "i-0123456789abcdef0"
CPU = {"DocumentName": "AWSFIS-Run-CPU-Stress", "InstanceIds": [INSTANCE], "Parameters": {"DurationSeconds": ["9"]}}
EXECUTION = 2 * 43_200
"""Seconds that the document's two steps may take."""


class Instances:
    """One instance, which is live, and has a network of its own."""

    def __init__(self, home: Path) -> None:
        self.folder = home
        self.is_there = True

    def is_live(self, instance_id: str) -> bool:
        return self.is_there and instance_id == INSTANCE

    def live(self) -> list[str]:
        return [INSTANCE] if self.is_there else []

    def home(self, _instance_id: str) -> Path:
        return self.folder

    def has_network(self, _instance_id: str) -> bool:
        return True


class Bus:
    def __init__(self) -> None:
        self.statuses: list[str] = []

    def send(self, _source: str, kind: str, detail: Mapping[str, Any], _resources: Sequence[str]) -> None:
        if "Invocation" in kind:
            self.statuses.append(detail["status"])


class Case:
    """A command to an instance whose agent does what the test does."""

    def __init__(self, home: Path) -> None:
        self.ssm = home / "ssm"
        for name in ("inbox", "outbox", "cancel"):
            (self.ssm / name).mkdir(parents=True)
        self.ping()
        self.bus, self.instances = Bus(), Instances(home)
        self.service = RunCommand(self.instances, self.bus)

    def ping(self, ago: float = 0) -> None:
        (self.ssm / "ping").write_text(json.dumps(time.time() - ago))

    def send(self, **more: Any) -> str:
        return str(self.service.send_command(CPU | more)["Command"]["CommandId"])

    def later(self, command_id: str, seconds: float) -> tuple[str, str]:
        """Status and details after a step of the service so many seconds after the request."""
        command = self.service._commands[command_id]
        invocation: Invocation = command.invocations[INSTANCE]
        self.service.follow(command, invocation, command.requested + seconds)
        return invocation.status, invocation.details

    def report(self, command_id: str, status: str) -> None:
        """Takes the command as the agent does, and reports."""
        (self.ssm / "inbox" / f"{command_id}.json").unlink(missing_ok=True)
        (self.ssm / "outbox" / f"{command_id}.json").write_text(json.dumps({"status": status, "steps": []}))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_command_that_no_agent_takes_in_time_never_runs(case: Case) -> None:
    command = case.send(TimeoutSeconds=30)
    assert case.later(command, 1) == ("Pending", "Pending")
    assert (case.ssm / "inbox" / f"{command}.json").exists()
    assert case.later(command, 29) == ("Pending", "Pending")
    assert case.later(command, 31) == ("TimedOut", "Delivery Timed Out")
    assert not (case.ssm / "inbox" / f"{command}.json").exists()
    assert case.bus.statuses == ["Pending", "TimedOut"]


def test_a_command_whose_agent_falls_silent_ends_with_its_total_time(case: Case) -> None:
    command = case.send(TimeoutSeconds=30)
    case.later(command, 1)
    case.report(command, "InProgress")
    assert case.later(command, 2) == ("InProgress", "In Progress")
    assert case.later(command, 30 + EXECUTION - 1) == ("InProgress", "In Progress")
    assert case.later(command, 30 + EXECUTION + 1) == ("TimedOut", "Delivery Timed Out")


def test_a_cancelled_command_is_cancelling_until_its_agent_says_more(case: Case) -> None:
    command = case.send()
    case.later(command, 1)
    case.service.cancel_command({"CommandId": command})
    assert (case.ssm / "cancel" / command).exists()
    assert case.later(command, 2) == ("Cancelling", "Cancelling")
    case.report(command, "Cancelled")
    assert case.later(command, 3) == ("Cancelled", "Cancelled")
    case.service.cancel_command({"CommandId": command})
    assert case.bus.statuses == ["Pending", "Cancelling", "Cancelled"]


def test_a_late_command_is_delivered_late_or_never(case: Case) -> None:
    case.service.order(lost_answers=0, late_seconds=20)
    command = case.send(TimeoutSeconds=30)
    assert case.later(command, 19) == ("Pending", "Pending")
    assert not list((case.ssm / "inbox").iterdir())
    case.later(command, 21)
    assert [one.stem for one in (case.ssm / "inbox").iterdir()] == [command]
    case.service.order(lost_answers=0, late_seconds=40)
    assert case.later(case.send(TimeoutSeconds=30), 41) == ("TimedOut", "Delivery Timed Out")


def test_an_agent_that_was_silent_for_five_minutes_has_lost_its_connection(case: Case) -> None:
    def ping_status() -> list[str]:
        return [one["PingStatus"] for one in case.service.describe_instance_information({})["InstanceInformationList"]]

    case.ping(ago=299)
    assert ping_status() == ["Online"]
    case.ping(ago=301)
    assert ping_status() == ["ConnectionLost"]
    assert case.send(), "AWS takes commands for it"
    case.instances.is_there = False
    assert ping_status() == []
    with pytest.raises(Refusal):
        case.send()


def test_commands_are_listed_by_their_document(case: Case) -> None:
    command = case.send()

    def listed(name: str) -> list[str]:
        request = {"InstanceId": INSTANCE, "Filters": [{"key": "DocumentName", "value": name}]}
        return [one["CommandId"] for one in case.service.list_command_invocations(request)["CommandInvocations"]]

    assert listed("AWSFIS-Run-CPU-Stress") == [command]
    assert listed("AWSFIS-Run-Disk-Fill") == []
