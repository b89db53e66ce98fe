"""Asks what lasting faults need of AWS, and runs AWS's documents on an instance of its own; returns JSON."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import boto3
from botocore.exceptions import ClientError

from cli.prove.ledger import PREFIX, tags
from cli.prove.permission_probes import GROUP_NAME_TAG, PermissionProbes, policy
from cli.prove.probe import error_code
from cli.shared import aws
from troop import faults
from troop.bench.fleets.fleet_requests import IMAGE_PARAMETER
from troop.chaos.probe import Reading, parse
from troop.faults.lasting_fault import LastingFault
from troop.shared.tags import CONSENTS, INSIDE_TAG

TRIED: Mapping[str, Mapping[str, str]] = {
    "cpu": {},
    "disk": {"percent": "95"},
    "latency": {},
    "blackhole": {"port": "9"},
}
"""The faults that are run and cancelled, with their parameters."""

_MINUTE = 60
_FAULT_SECONDS = 600
"""Longer than it takes to see the fault: only the cancel ends it."""

_START_TRIES, _TRIES, _PAUSE, _QUIET = 30, 40, 3.0, 30.0
"""Looks at a command, or probes, with seconds between them; and seconds before the next fault, for what is queued."""

_FINAL = frozenset({"Success", "Cancelled", "TimedOut", "Failed"})
_AGENT = (
    *("ssm:UpdateInstanceInformation", "ssm:ListAssociations", "ssm:ListInstanceAssociations", "ssm:GetDocument"),
    *("ssm:PutInventory", "ssm:PutComplianceItems", "ssm:UpdateInstanceAssociationStatus"),
    *("ssm:GetDeployablePatchSnapshotForInstance", "ssmmessages:*", "ec2messages:*"),
)
"""What AWS's agent calls, as in the managed policy of instances."""

_SCRIPT = "#!/bin/sh\nshutdown -h +50\n"
"""Ends the instance, should this command be killed: EC2 terminates it when it shuts down."""


class FaultProbes(PermissionProbes):
    """Steps for lasting faults. Only the last one injects any, and only into the instance that it launches."""

    def fault_documents(self) -> dict[str, Any]:
        """Describes AWS's documents, and compares their parameters with those that Troop sends."""
        ssm, documents = self._client("ssm"), dict[str, Any]()
        for fault in faults.LASTING:
            try:
                described = ssm.describe_document(Name=fault.document)["Document"]
            except ClientError as error:
                documents[fault.document] = {"code": str(error.response["Error"]["Code"])}
                continue
            known = {one["Name"]: "DefaultValue" in one for one in described.get("Parameters", [])}
            sent = {*fault.request({one.name: one.default or "1" for one in fault.parameters}), "InstallDependencies"}
            required = {name for name, has_default in known.items() if not has_default}
            documents[fault.document] = {
                "hash": described.get("Hash", ""),
                "unknown": sorted(sent - known.keys()),
                "lacking": sorted(required - sent),
            }
        return documents

    def command_rate(self) -> list[dict[str, Any]]:
        """Lists the quotas of Systems Manager that name SendCommand."""
        pages = self._client("service-quotas").get_paginator("list_service_quotas")
        quotas = [one for page in pages.paginate(ServiceCode="ssm") for one in page["Quotas"]]
        named = [one for one in quotas if "sendcommand" in one["QuotaName"].lower().replace(" ", "")]
        return [{"name": one["QuotaName"], "value": one["Value"]} for one in named]

    def injections(self) -> dict[str, Any]:
        """Reads the lasting faults on record: how each end was proven, and how long its probes took."""
        events = [one["injection"] for one in self.client.events({}, 1000) if one.get("injection")]
        sent = [one for one in events if one["ends_by"]]
        return {
            "sent": len(sent),
            "proofs": dict(Counter(one["proof"]["by"] if one["proof"] else "none yet" for one in sent)),
            "unproven": [one["unproven"] for one in sent if one["unproven"]],
        }

    def command_tag(self) -> dict[str, str]:
        """Has roles of its own send the probe to an instance that consents, with three conditions on its tags."""
        document, instance = self._probe_document(), self._consenting()
        if not (document and instance):
            return {}
        marks = {one["Key"]: one["Value"] for one in instance["Tags"]}
        place = f"arn:{self._partition}:ec2:{self.session.region_name}:{self.deployment.account}:instance/*"
        name = f"arn:{self._partition}:ssm:{self.session.region_name}:{self.deployment.account}:document/{document}"
        conditions = {
            "consented": {f"ssm:resourceTag/{INSIDE_TAG}": marks[INSIDE_TAG]},
            "other_value": {f"ssm:resourceTag/{INSIDE_TAG}": "nobody"},
            "group_name": {f"ssm:resourceTag/{GROUP_NAME_TAG}": marks.get(GROUP_NAME_TAG, "")},
        }
        answers = {}
        for case, condition in conditions.items():
            statements = (
                {"Effect": "Allow", "Action": "ssm:SendCommand", "Resource": name},
                {
                    "Effect": "Allow",
                    "Action": "ssm:SendCommand",
                    "Resource": place,
                    "Condition": {"StringEquals": condition},
                },
            )
            with self._role("command-tag", *statements) as session:
                answers[case] = self._sent(session, document, instance["InstanceId"])
        return answers

    def faults(self) -> dict[str, Any]:
        """Launches an instance, and has AWS's documents run on it, one after the other; cancels each."""
        document = self._probe_document()
        if aws.is_local():
            raise ValueError("local AWS has documents of its own, and no agent outside of groups")
        instance = self._launched() if document else ""
        if not instance:
            return {}
        self._await(lambda: self._is_online(instance), lambda: "the instance is not online in Systems Manager")
        outcomes = []
        for name, parameters in TRIED.items():
            fault = faults.find_lasting(name)
            assert fault, name
            outcomes.append({"fault": name, **self._tried(fault, parameters, document, instance)})
            self.sleep(_QUIET)
        return {"faults": outcomes, "alarm": self._with_alarm(document, instance)}

    def _with_alarm(self, document: str, instance: str) -> str:
        """Returns the code of a request for a probe that an alarm of the stack may stop."""
        names = self._resources("AWS::CloudWatch::Alarm")[:1]
        request = {"DocumentName": document, "InstanceIds": [instance], "Parameters": {"Token": [uuid4().hex]}}
        alarms = {"Alarms": [{"Name": name} for name in names]}
        return error_code(lambda: self._client("ssm").send_command(**request, AlarmConfiguration=alarms))

    def _tried(
        self, fault: LastingFault, parameters: Mapping[str, str], document: str, instance: str
    ) -> dict[str, Any]:
        """Injects a fault with its packages, cancels it when a probe sees it, and probes until it is gone."""
        ssm, before = self._client("ssm"), self._reading(document, instance)
        request = fault.request(fault.complete({**parameters, "seconds": str(_FAULT_SECONDS)}))
        sent = time.monotonic()
        command = ssm.send_command(
            DocumentName=fault.document,
            InstanceIds=[instance],
            TimeoutSeconds=_MINUTE,
            Parameters={**{key: [value] for key, value in request.items()}, "InstallDependencies": ["True"]},
        )["Command"]["CommandId"]
        for _ in range(_START_TRIES):
            status = self._invocation(command, instance).get("Status", "")
            if status in _FINAL:
                return {"status": status, "output": self._output(command, instance)[-500:]}
            if self._is_there(fault, before, self._reading(document, instance)):
                break
            self.sleep(_PAUSE)
        else:
            ssm.cancel_command(CommandId=command)
            return {"status": "no probe saw it"}
        there, cancelled = time.monotonic() - sent, time.monotonic()
        ssm.cancel_command(CommandId=command)
        final = None
        for _ in range(_TRIES):
            status = self._invocation(command, instance).get("Status", "")
            final = final or (time.monotonic() - cancelled if status in _FINAL else None)
            after = self._reading(document, instance)
            if final and after and not self._is_there(fault, before, after):
                gone = time.monotonic() - cancelled
                times = {"there_after": round(there), "final_after": round(final), "gone_after": round(gone)}
                return {"status": status, **times}
            self.sleep(_PAUSE)
        return {"status": "still there", "there_after": round(there)}

    @staticmethod
    def _is_there(fault: LastingFault, before: Reading | None, now: Reading | None) -> bool:
        if before is None or now is None:
            return False
        return any(
            (getattr(now, trace.field) or 0) > (getattr(before, trace.field) or 0) + trace.slack
            for trace in fault.traces
        )

    def _reading(self, document: str, instance: str) -> Reading | None:
        token = uuid4().hex
        command = self._client("ssm").send_command(
            DocumentName=document, InstanceIds=[instance], TimeoutSeconds=_MINUTE, Parameters={"Token": [token]}
        )["Command"]["CommandId"]
        for _ in range(_TRIES):
            if self._invocation(command, instance).get("Status", "") in _FINAL:
                return parse(self._output(command, instance), token)
            self.sleep(1)
        return None

    def _sent(self, session: boto3.Session, document: str, instance: str) -> str:
        """Returns the code of the error of a request, or how AWS says that its command ended."""
        limited, commands = self._client("ssm", session), list[str]()

        def send() -> None:
            request = {"DocumentName": document, "InstanceIds": [instance], "Parameters": {"Token": [uuid4().hex]}}
            commands.append(limited.send_command(**request)["Command"]["CommandId"])

        code = error_code(send)
        if not commands:
            return code
        for _ in range(_TRIES):
            invocation = self._invocation(commands[0], instance)
            if invocation.get("Status", "") in _FINAL:
                return str(invocation["StatusDetails"])
            self.sleep(_PAUSE)
        return "no end"

    def _invocation(self, command: str, instance: str) -> Mapping[str, Any]:
        answer = self._client("ssm").list_command_invocations(CommandId=command, InstanceId=instance, Details=True)
        return next(iter(answer["CommandInvocations"]), {})

    def _output(self, command: str, instance: str) -> str:
        plugins = self._invocation(command, instance).get("CommandPlugins", [])
        return "\n".join(str(one.get("Output", "")) for one in plugins)

    def _probe_document(self) -> str:
        return next(iter(self._resources("AWS::SSM::Document")), "")

    def _consenting(self) -> Mapping[str, Any] | None:
        """Returns a running instance that consents, and is online."""
        consents = [one for one in self._instances("running") if _consent(one) in CONSENTS]
        return next((one for one in consents if self._is_online(one["InstanceId"])), None)

    def _is_online(self, instance: str) -> bool:
        filters = [{"Key": "InstanceIds", "Values": [instance]}]
        known = self._client("ssm").describe_instance_information(Filters=filters)["InstanceInformationList"]
        return any(one["PingStatus"] == "Online" for one in known)

    def _launched(self) -> str:
        """Launches an instance in the account's default network, whose agent may talk to Systems Manager."""
        ec2, iam, name = self._client("ec2"), self._client("iam"), f"{PREFIX}{uuid4().hex[:8]}"
        subnets = ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
        if not subnets:
            return ""
        for kind in ("role", "instance profile", "instance"):
            self.ledger.add(kind, name)
        self._agent_role(name)
        iam.create_instance_profile(InstanceProfileName=name, Tags=tags("faults"))
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
        iam.get_waiter("instance_profile_exists").wait(InstanceProfileName=name)
        self.sleep(_QUIET)  # EC2 does not know a new profile at once
        image = self._client("ssm").get_parameter(Name=f"{IMAGE_PARAMETER}arm64")["Parameter"]["Value"]
        marks = [{"Key": "Name", "Value": name}, *tags("faults")]
        launched = ec2.run_instances(
            ImageId=image,
            InstanceType="t4g.small",
            MinCount=1,
            MaxCount=1,
            IamInstanceProfile={"Name": name},
            InstanceInitiatedShutdownBehavior="terminate",
            MetadataOptions={"HttpTokens": "required"},
            NetworkInterfaces=[
                {"DeviceIndex": 0, "SubnetId": subnets[0]["SubnetId"], "AssociatePublicIpAddress": True}
            ],
            TagSpecifications=[{"ResourceType": "instance", "Tags": marks}],
            UserData=_SCRIPT,
        )
        return str(launched["Instances"][0]["InstanceId"])

    def _agent_role(self, name: str) -> None:
        iam = self._client("iam")
        trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust), Tags=tags("faults"))
        agent = {"Effect": "Allow", "Action": list(_AGENT), "Resource": "*"}
        iam.put_role_policy(RoleName=name, PolicyName="agent", PolicyDocument=policy(agent))


def _consent(instance: Mapping[str, Any]) -> str:
    return next((one["Value"] for one in instance.get("Tags", []) if one["Key"] == INSIDE_TAG), "")
