"""Steps for faults inside instances, with an account in moto and a Run Command of its own."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cli.prove import judgements
from cli.prove.fault_probes import TRIED
from cli.prove.ledger import PREFIX
from cli.prove.model import Verdict
from cli.prove.probes import Probes
from infra import ROOT
from troop import faults

DOCUMENTS: dict[str, Any] = tomllib.loads((ROOT / "tests" / "aws_facts" / "documents.toml").read_text())
PROBE = "Troop-Probe"
TRACES = {"cpu": "stress", "disk": "used", "latency": "qdiscs", "blackhole": "drops"}
"""By fault one of the probe's fields that shows it."""


class RunCommand:
    """AWS's documents and commands: a fault is there until some probes after its cancel.

    Attributes:
        sent: (document, instance) of each command.
        left: how many probes still see a cancelled fault.
    """

    def __init__(self, left: int = 2) -> None:
        self.sent: list[tuple[str, str]] = []
        self.left = left
        self._running = ""
        self._seen = 0
        self._commands: dict[str, dict[str, Any]] = {}

    def describe_document(self, Name: str) -> dict[str, Any]:
        document = DOCUMENTS[Name]
        names = [*document["parameters"], "InstallDependencies"]
        known = [{"Name": one} | ({} if one in document["required"] else {"DefaultValue": ""}) for one in names]
        return {"Document": {"Hash": "0", "Parameters": known}}

    def get_parameter(self, **_: Any) -> dict[str, Any]:
        return {"Parameter": {"Value": "ami-12c6146b"}}

    def describe_instance_information(self, **_: Any) -> dict[str, Any]:
        return {"InstanceInformationList": [{"PingStatus": "Online"}]}

    def send_command(self, **request: Any) -> dict[str, Any]:
        document, (instance,) = request["DocumentName"], request["InstanceIds"]
        self.sent.append((document, instance))
        command = f"c{len(self.sent)}"
        if document == PROBE:
            output = json.dumps({**self._reading(), "token": request["Parameters"]["Token"][0]})
            self._commands[command] = {"Status": "Success", "StatusDetails": "Success", "output": output}
        else:
            self._running, self._seen = next(one.name for one in faults.LASTING if one.document == document), self.left
            self._commands[command] = {"Status": "InProgress", "StatusDetails": "InProgress", "output": ""}
        return {"Command": {"CommandId": command}}

    def cancel_command(self, CommandId: str) -> None:
        self._commands[CommandId]["Status"] = "Cancelled"

    def list_command_invocations(self, **request: Any) -> dict[str, Any]:
        one = self._commands[request["CommandId"]]
        return {"CommandInvocations": [{**one, "CommandPlugins": [{"Output": one["output"]}]}]}

    def _reading(self) -> Mapping[str, Any]:
        clean = {
            "boot": "b",
            "missing": [],
            "qdiscs": 0,
            "drops": 0,
            "stress": 0,
            "rollbacks": 0,
            "hosts": 0,
            "used": 9,
        }
        if not self._running:
            return clean
        there, cancelled = self._running, any(one["Status"] == "Cancelled" for one in self._commands.values())
        if cancelled:
            self._seen -= 1
        if self._seen < 0:
            self._running = ""
            self._commands = {key: one for key, one in self._commands.items() if one["Status"] != "Cancelled"}
            return clean
        return {**clean, TRACES[there]: 90}


@pytest.fixture
def run_command(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> RunCommand:
    fake, client = RunCommand(), Probes._client
    monkeypatch.setattr(
        Probes, "_client", lambda self, name, session=None: fake if name == "ssm" else client(self, name, session)
    )
    kinds = {"AWS::SSM::Document": [PROBE], "AWS::CloudWatch::Alarm": ["Troop-TicksMissing"]}
    monkeypatch.setattr(Probes, "_resources", lambda _, kind: kinds[kind])
    return fake


def test_documents_that_accept_what_troop_sends_are_a_yes(
    probes: Probes, run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judgements.fault_documents(probes.fault_documents())[0] is Verdict.YES

    def renamed(Name: str) -> dict[str, Any]:
        answer = RunCommand().describe_document(Name)
        known = answer["Document"]["Parameters"]
        known[0] = {"Name": "Renamed"}
        return answer

    monkeypatch.setattr(run_command, "describe_document", renamed)
    verdict, detail = judgements.fault_documents(probes.fault_documents())
    assert verdict is Verdict.NO
    assert "AWSFIS-Run-CPU-Stress (CPU, Renamed)" in detail

    def absent(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "InvalidDocument"}}, "DescribeDocument")

    monkeypatch.setattr(run_command, "describe_document", absent)
    assert judgements.fault_documents(probes.fault_documents())[0] is Verdict.NO


def test_faults_run_on_an_instance_of_their_own_of_which_nothing_is_left(
    probes: Probes, run_command: RunCommand, account: boto3.Session
) -> None:
    ec2, iam = account.client("ec2"), account.client("iam")
    evidence = probes.faults()
    assert [one["fault"] for one in evidence["faults"]] == list(TRIED)
    assert all(one["status"] == "Cancelled" for one in evidence["faults"])
    assert judgements.faults(evidence)[0] is Verdict.YES
    (instance,) = {instance for _, instance in run_command.sent}
    (described,) = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    name = next(one["Value"] for one in described["Tags"] if one["Key"] == "Name")
    assert name.startswith(PREFIX)
    documents = {document for document, _ in run_command.sent}
    assert documents == {PROBE, *(one.document for one in faults.LASTING if one.name in TRIED)}
    assert probes.ledger.remove_all()
    assert ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["State"]["Code"] >= 32
    assert iam.list_instance_profiles()["InstanceProfiles"] == []
    assert [one for one in iam.list_roles()["Roles"] if one["RoleName"].startswith(PREFIX)] == []


def test_a_fault_that_outlives_its_cancel_is_a_no(probes: Probes, run_command: RunCommand) -> None:
    run_command.left = 1000
    verdict, detail = judgements.faults(probes.faults())
    assert verdict is Verdict.NO
    assert "cpu: still there" in detail


def test_only_the_probe_is_sent_to_an_instance_that_consents(
    probes: Probes, run_command: RunCommand, account: boto3.Session
) -> None:
    ec2, iam = account.client("ec2"), account.client("iam")
    assert probes.command_tag() == {}
    consenting, _ = (
        one["InstanceId"] for one in ec2.run_instances(ImageId="ami-12c6146b", MinCount=2, MaxCount=2)["Instances"]
    )
    ec2.create_tags(Resources=[consenting], Tags=[{"Key": "troop:inside", "Value": "install"}])
    assert probes.command_tag() == dict.fromkeys(("consented", "other_value", "group_name"), "Success")
    assert set(run_command.sent) == {(PROBE, consenting)}
    roles = [one["RoleName"] for one in iam.list_roles()["Roles"] if one["RoleName"].startswith(PREFIX)]
    policies = [iam.get_role_policy(RoleName=role, PolicyName="probe")["PolicyDocument"] for role in roles]
    conditions = [policy["Statement"][1]["Condition"]["StringEquals"] for policy in policies]
    assert sorted(conditions, key=str) == [
        {"ssm:resourceTag/aws:autoscaling:groupName": ""},
        {"ssm:resourceTag/troop:inside": "install"},
        {"ssm:resourceTag/troop:inside": "nobody"},
    ]
    assert {policy["Statement"][0]["Resource"] for policy in policies} == {
        f"arn:aws:ssm:{account.region_name}:123456789012:document/{PROBE}"
    }
