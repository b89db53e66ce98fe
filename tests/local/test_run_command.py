"""Run Command of local AWS: documents run inside instances, and end, time out and are refused as on AWS."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra import ROOT
from local.account.fault_documents import fault_documents
from local.account.ssm_documents import parse
from local.launcher import obstacle
from tests.patience import eventually
from troop.faults import LASTING
from troop.faults.lasting_fault import LastingFault

from .helpers import Fleet, Listener, World, allow, code, unique

pytestmark = pytest.mark.skipif(bool(obstacle("inside.room")), reason=obstacle("inside.room"))

AGENT = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
OVER = ("Success", "Failed", "TimedOut", "Cancelled")
READY = '#!/bin/sh\ntouch "$READY_FILE"\nexec sleep infinity\n'
FAULTS = {
    "AWSFIS-Run-CPU-Stress": {"CPU": "1"},
    "AWSFIS-Run-Memory-Stress": {"Percent": "50"},
    "AWSFIS-Run-IO-Stress": {"Workers": "1"},
    "AWSFIS-Run-Disk-Fill": {"Percent": "90"},
}


def content(*lines: str, seconds: int = 60, **parameters: dict[str, Any]) -> dict[str, Any]:
    """A document with one step, and parameters of type String."""
    inputs = {"runCommand": list(lines), "timeoutSeconds": str(seconds)}
    return {
        "schemaVersion": "2.2",
        "parameters": {name: {"type": "String", **more} for name, more in parameters.items()},
        "mainSteps": [{"action": "aws:runShellScript", "name": "OnlyStep", "inputs": inputs}],
    }


class Managed:
    """An instance that Systems Manager manages, and documents of the account."""

    def __init__(self, fleet: Fleet, world: World) -> None:
        self.fleet, self.ssm = fleet, world.account.client("ssm")
        self.stacks = world.account.client("cloudformation")
        role = world.role()
        world.iam.attach_role_policy(RoleName=role.rsplit("/", 1)[-1], PolicyArn=AGENT)
        template = fleet.template(READY, IamInstanceProfile={"Arn": world.profile(role)})
        self.group = fleet.group(
            1, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"}, tags={"inside": "yes"}
        )
        (self.instance,) = fleet.in_service(self.group, 1)
        eventually(lambda: self.information())

    def information(self) -> list[dict[str, Any]]:
        filters = [{"Key": "InstanceIds", "Values": [self.instance]}]
        return list(self.ssm.describe_instance_information(Filters=filters)["InstanceInformationList"])

    def deploy(self, body: dict[str, Any], stack: str = "", **properties: Any) -> str:
        """Name of the document of a stack, which is created or updated."""
        resource = {"DocumentType": "Command", "Content": body, **properties}
        template = json.dumps({"Resources": {"It": {"Type": "AWS::SSM::Document", "Properties": resource}}})
        known = [one["StackName"] for one in self.stacks.describe_stacks()["Stacks"]]
        change = self.stacks.update_stack if stack in known else self.stacks.create_stack
        stack = stack or unique("document")
        change(StackName=stack, TemplateBody=template)

        def settled() -> dict[str, Any] | None:
            seen = self.stacks.describe_stacks(StackName=stack)["Stacks"][0]
            return None if seen["StackStatus"].endswith("IN_PROGRESS") else dict(seen)

        seen = dict(eventually(settled))
        assert seen["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), seen
        return str(self.stacks.describe_stack_resources(StackName=stack)["StackResources"][0]["PhysicalResourceId"])

    def send(self, document: str, **parameters: str) -> str:
        values = {name: [value] for name, value in parameters.items()}
        sent = self.ssm.send_command(DocumentName=document, InstanceIds=[self.instance], Parameters=values)
        return str(sent["Command"]["CommandId"])

    def seen(self, command: str) -> dict[str, Any]:
        return dict(self.ssm.list_command_invocations(CommandId=command, Details=True)["CommandInvocations"][0])

    def reach(self, command: str, *statuses: str) -> dict[str, Any]:
        """The invocation once it has one of the statuses."""

        def probe() -> dict[str, Any] | None:
            seen = self.seen(command)
            return seen if seen["Status"] in statuses else None

        return dict(eventually(probe))

    def ask(self, document: str, **parameters: str) -> str:
        """The output of the only step of a document that succeeds."""
        seen = self.reach(self.send(document, **parameters), *OVER)
        assert seen["Status"] == "Success", seen
        return str(seen["CommandPlugins"][0]["Output"])


@pytest.fixture(scope="module")
def managed(fleet: Fleet, world: World) -> Iterator[Managed]:
    managed = Managed(fleet, world)
    yield managed
    fleet.groups.delete_auto_scaling_group(AutoScalingGroupName=managed.group, ForceDelete=True)


@pytest.fixture(scope="module")
def census(managed: Managed) -> str:
    """A document that prints how many processes of stress-ng there are, and how full the root volume is."""
    return managed.deploy(
        content("grep -ls ^stress-ng /proc/[0-9]*/comm | wc -l", "df -P / | tail -n 1 | awk '{ print int($5) }'")
    )


@pytest.mark.parametrize("document", FAULTS)
def test_a_fault_is_there_until_it_is_cancelled(managed: Managed, census: str, document: str) -> None:
    before = managed.ask(census)
    command = managed.send(document, DurationSeconds="600", **FAULTS[document])
    eventually(lambda: managed.ask(census) != before)
    managed.ssm.cancel_command(CommandId=command)
    seen = managed.reach(command, *OVER)
    assert (seen["Status"], seen["CommandPlugins"][1]["Status"]) == ("Cancelled", "Cancelled")
    eventually(lambda: managed.ask(census) == before)


def test_a_fault_ends_by_itself(managed: Managed) -> None:
    seen = managed.reach(managed.send("AWSFIS-Run-CPU-Stress", DurationSeconds="1"), *OVER)
    assert [(one["Name"], one["Status"], one["ResponseCode"]) for one in seen["CommandPlugins"]] == [
        ("InstallDependencies", "Success", 0),
        ("FaultInjection", "Success", 0),
    ]


def test_a_value_out_of_its_range_fails_the_first_step(managed: Managed) -> None:
    seen = managed.reach(managed.send("AWSFIS-Run-Disk-Fill", DurationSeconds="1", Percent="5"), *OVER)
    assert (seen["Status"], seen["CommandPlugins"][0]["ResponseCode"]) == ("Failed", 1)
    assert "from 10 to 100" in seen["CommandPlugins"][0]["Output"]


def test_only_processes_of_the_instance_are_killed(managed: Managed, world: World) -> None:
    command = managed.reach(managed.send("AWSFIS-Run-Kill-Process", ProcessName="ministack"), *OVER)
    assert command["CommandPlugins"][1]["Status"] == "Failed", "the machine's own processes are not there"
    world.account.check()


def test_a_network_fault_is_refused_where_it_would_harm_the_machine(managed: Managed) -> None:
    command = managed.send("AWSFIS-Run-Network-Blackhole-Port", DurationSeconds="1", Protocol="tcp", Port="7000")
    seen = managed.reach(command, *OVER)
    assert seen["Status"] == "Failed"
    assert "network of its machine" in seen["CommandPlugins"][0]["Output"]


def test_statuses_are_events_of_both_kinds(managed: Managed, world: World) -> None:
    document = managed.deploy(content("true"))
    heard = Listener(world.account, {"source": ["aws.ssm"]})
    command = managed.send(document)
    managed.reach(command, "Success")

    def seen() -> tuple[set[str], set[str]]:
        events = [one for one in heard.events() if one["detail"]["command-id"] == command]
        final = {one["detail-type"] for one in events if one["detail"]["status"] == "Success"}
        return final, {one["detail"]["status"] for one in events}

    eventually(lambda: len(seen()[0]) == 2 and len(seen()[1]) == 3)  # they can arrive in another order
    ours = [one for one in heard.events() if one["detail"]["command-id"] == command]
    assert {one["detail"]["document-name"] for one in ours} == {document}
    invocations = [one for one in ours if "instance-id" in one["detail"]]
    assert {one["detail"]["instance-id"] for one in invocations} == {managed.instance}
    assert {one["detail"]["status"] for one in invocations} == {"Pending", "InProgress", "Success"}


def test_an_output_is_cut_where_aws_cuts_it(managed: Managed) -> None:
    document = managed.deploy(content("head -c 30000 /dev/zero | tr '\\0' x", "echo broken >&2", "exit 3"))
    command = managed.send(document)
    seen = managed.reach(command, *OVER)
    (plugin,) = seen["CommandPlugins"]
    assert (seen["Status"], plugin["ResponseCode"], len(plugin["Output"])) == ("Failed", 3, 2500)
    whole = managed.ssm.get_command_invocation(CommandId=command, InstanceId=managed.instance)
    assert (whole["Status"], len(whole["StandardOutputContent"])) == ("Failed", 24_000)
    assert whole["StandardErrorContent"] == "broken\n"


def test_an_execution_has_a_time(managed: Managed) -> None:
    seen = managed.reach(managed.send(managed.deploy(content("sleep 60", seconds=1))), *OVER)
    assert (seen["Status"], seen["StatusDetails"]) == ("TimedOut", "Execution Timed Out")


def test_a_step_of_several_needs_its_name(managed: Managed) -> None:
    command = managed.send("AWSFIS-Run-CPU-Stress", DurationSeconds="1")
    managed.reach(command, *OVER)
    named = {"CommandId": command, "InstanceId": managed.instance}
    with pytest.raises(ClientError) as refused:
        managed.ssm.get_command_invocation(**named)
    assert code(refused) == "InvalidPluginName"
    assert managed.ssm.get_command_invocation(**named, PluginName="FaultInjection")["Status"] == "Success"


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"DocumentName": "AWSFIS-Run-Nothing"}, "InvalidDocument"),
        ({"DocumentVersion": "7"}, "InvalidDocumentVersion"),
        ({"InstanceIds": ["i-0123456789abcdef0"]}, "InvalidInstanceId"),
        ({"Parameters": {}}, "InvalidParameters"),
        ({"Parameters": {"DurationSeconds": ["1; reboot"]}}, "InvalidParameters"),
        ({"Parameters": {"DurationSeconds": ["1", "2"]}}, "InvalidParameters"),
        ({"Parameters": {"DurationSeconds": ["1"], "InstallDependencies": ["maybe"]}}, "InvalidParameters"),
        ({"Parameters": {"DurationSeconds": ["1"], "Cpu": ["1"]}}, "InvalidParameters"),
        ({"TimeoutSeconds": 29}, "ValidationException"),
        ({"Comment": "x" * 101}, "ValidationException"),
        ({"AlarmConfiguration": {"Alarms": [{"Name": "it"}]}}, "ValidationException"),
    ],
)
def test_a_command_that_aws_refuses(managed: Managed, world: World, wrong: dict[str, Any], expected: str) -> None:
    request = {
        "DocumentName": "AWSFIS-Run-CPU-Stress",
        "InstanceIds": [managed.instance],
        "Parameters": {"DurationSeconds": ["1"]},
    }
    unchecked = world.account.client("ssm", parameter_validation=False)
    with pytest.raises(ClientError) as refused:
        unchecked.send_command(**{**request, **wrong})
    assert code(refused) == expected


def test_an_instance_without_the_permissions_of_the_agent_is_not_managed(fleet: Fleet, managed: Managed) -> None:
    (other,) = fleet.in_service(fleet.group(1, READY), 1)
    listed = managed.ssm.describe_instance_information()["InstanceInformationList"]
    assert managed.instance in {one["InstanceId"] for one in listed}
    assert other not in {one["InstanceId"] for one in listed}
    with pytest.raises(ClientError) as refused:
        managed.ssm.send_command(
            DocumentName="AWSFIS-Run-CPU-Stress", InstanceIds=[other], Parameters={"DurationSeconds": ["1"]}
        )
    assert code(refused) == "InvalidInstanceId"


def test_a_role_needs_the_document_and_the_instances_tag(managed: Managed, world: World) -> None:
    document = managed.deploy(content("true"))
    named = f"arn:aws:ssm:us-east-1:000000000000:document/{document}"
    instances = "arn:aws:ec2:us-east-1:000000000000:instance/*"
    tagged = {"Condition": {"StringEquals": {"ssm:resourceTag/inside": ["yes", "install"]}}}
    other = {"Condition": {"StringEquals": {"ssm:resourceTag/inside": "no"}}}

    def outcome(*statements: dict[str, Any]) -> str:
        ssm = world.account.client("ssm", world.as_role(world.role(*statements)))
        try:
            ssm.send_command(DocumentName=document, InstanceIds=[managed.instance])
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return "sent"

    send = "ssm:SendCommand"
    assert outcome(allow(send, named), allow(send, instances, **tagged)) == "sent"
    for statements in (
        [allow(send, named)],
        [allow(send, instances, **tagged)],
        [allow(send, named), allow(send, instances, **other)],
        [allow(send, "arn:aws:ssm:us-east-1::document/AWSFIS-*"), allow(send, instances, **tagged)],
    ):
        assert outcome(*statements) == "AccessDeniedException"


def test_a_document_of_a_stack_is_replaced_or_gets_a_version(managed: Managed) -> None:
    first = managed.deploy(content("echo {{ Word }}", Word={"default": "one"}), stack="replaced")
    assert managed.ask(first) == "one\n"
    assert managed.ask(first, Word="more") == "more\n"
    second = managed.deploy(content("echo two"), stack="replaced")
    assert (managed.ask(second), second == first) == ("two\n", False)
    named = managed.deploy(content("echo one"), stack="named", Name="it-has-a-name", UpdateMethod="NewVersion")
    assert managed.deploy(content("echo two"), stack="named", Name=named, UpdateMethod="NewVersion") == named
    assert managed.ask(named) == "two\n"
    managed.stacks.delete_stack(StackName="named")
    with pytest.raises(ClientError) as refused:
        eventually(lambda: managed.send(named) is None)
    assert code(refused) == "InvalidDocument"


@pytest.mark.parametrize(
    "body",
    [
        {"schemaVersion": "2.2", "mainSteps": []},
        {**content("true"), "schemaVersion": "1.2"},
        content("echo {{ Unknown }}"),
        {**content("true"), "steps": []},
    ],
)
def test_a_document_that_aws_refuses_fails_the_stack(managed: Managed, body: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="ROLLBACK_COMPLETE"):
        managed.deploy(body)


def test_at_most_five_commands_run_at_a_time(managed: Managed) -> None:
    document = managed.deploy(content("until [ -e $HOME/five ]; do sleep 0.1; done"))
    commands = [managed.send(document) for _ in range(6)]
    eventually(lambda: sorted(managed.seen(one)["Status"] for one in commands) == ["InProgress"] * 5 + ["Pending"])
    waiting = next(one for one in commands if managed.seen(one)["Status"] == "Pending")
    managed.ssm.cancel_command(CommandId=waiting)
    assert managed.reach(waiting, *OVER)["Status"] == "Cancelled"
    (managed.fleet.directory(managed.instance) / "five").touch()
    assert {managed.reach(one, *OVER)["Status"] for one in commands if one != waiting} == {"Success"}


def test_a_command_outlives_its_agent_which_reports_it_later(managed: Managed) -> None:
    folder = managed.fleet.directory(managed.instance)
    command = managed.send(managed.deploy(content("touch $HOME/begun", "sleep 1", "touch $HOME/done")))
    eventually(lambda: (folder / "begun").exists())
    managed.fleet.account.let_run(managed.instance, agent=False)
    eventually(lambda: (folder / "done").exists())
    assert managed.seen(command)["Status"] in ("Pending", "InProgress")
    managed.fleet.account.let_run(managed.instance)
    assert managed.reach(command, *OVER)["Status"] == "Success"


def test_a_killed_shell_fails_its_command(managed: Managed) -> None:
    command = managed.send(managed.deploy(content("sleep 600")))
    managed.reach(command, "InProgress")
    managed.fleet.account.kill_shell(managed.instance, command)
    assert managed.reach(command, *OVER)["Status"] == "Failed"


def test_a_lost_answer_and_a_late_delivery(managed: Managed) -> None:
    document = managed.deploy(content("true"))
    once = managed.fleet.account.client("ssm", retries={"total_max_attempts": 1})
    managed.fleet.account.disturb_commands(lost_answers=1, late_seconds=600)
    try:
        with pytest.raises(ClientError) as lost:
            once.send_command(DocumentName=document, InstanceIds=[managed.instance], Comment="it")
        assert lost.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    finally:
        managed.fleet.account.disturb_commands()
    listed = managed.ssm.list_command_invocations(InstanceId=managed.instance)["CommandInvocations"]
    accepted = listed[0]
    assert (accepted["Comment"], accepted["Status"]) == ("it", "Pending")
    managed.ssm.cancel_command(CommandId=accepted["CommandId"])
    assert managed.seen(accepted["CommandId"])["Status"] == "Cancelled"


def test_jobs_of_at_run_apart_from_who_queued_them(managed: Managed) -> None:
    folder = managed.fleet.directory(managed.instance)
    command = managed.send(
        managed.deploy(content("echo 'sleep 1; touch $HOME/rolled-back' | at now", "touch $HOME/queued", "sleep 600"))
    )
    eventually(lambda: (folder / "queued").exists())
    managed.ssm.cancel_command(CommandId=command)
    eventually(lambda: (folder / "rolled-back").exists())


def test_a_reboot_restarts_the_agent_which_runs_the_command_again(managed: Managed) -> None:
    folder = managed.fleet.directory(managed.instance)
    booted = managed.deploy(content("cat /proc/sys/kernel/random/boot_id"))
    before = managed.ask(booted)
    command = managed.send(managed.deploy(content("echo once >> $HOME/runs", "sleep 2")))
    eventually(lambda: (folder / "runs").exists())
    managed.fleet.ec2.reboot_instances(InstanceIds=[managed.instance])
    assert managed.reach(command, *OVER)["Status"] == "Success"
    assert (folder / "runs").read_text() == "once\nonce\n"
    assert managed.ask(booted) != before


@pytest.mark.parametrize("fault", LASTING, ids=lambda fault: fault.name)
def test_documents_take_what_those_of_aws_take(fault: LastingFault) -> None:
    published = tomllib.loads((ROOT / "tests" / "aws_facts" / "documents.toml").read_text())[fault.document]
    body, _ = fault_documents()[fault.document]
    declared = {name: one for name, one in body["parameters"].items() if name != "InstallDependencies"}
    assert set(declared) == set(published["parameters"])
    assert {name for name, one in declared.items() if "default" not in one} == set(published["required"])
    lists = {name: sorted(one) for name, one in published["parameters"].items() if isinstance(one, list)}
    assert {name: sorted(one["allowedValues"]) for name, one in declared.items() if "allowedValues" in one} == lists
    script = "\n".join(body["mainSteps"][0]["inputs"]["runCommand"])
    programs = {{"atd": "at", "kmod": "modprobe"}.get(name, name) for name in published["needs"]}
    assert f"for tool in {' '.join(sorted(programs))}; do" in script
    for name, form in published["parameters"].items():
        if isinstance(form, dict):
            assert f"{name} must be from {form['from']} to {form['to']}" in script
    parameters = {one.name: one.default or "1" for one in fault.parameters}
    parse(fault.document, body).fill({name: [value] for name, value in fault.request(parameters).items()})
