"""An account as the commands that deploy and remove see it, and their CDK, both played by the tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from infra.settings_record import metadata
from lifecycle import retained
from lifecycle.project import settings_with
from lifecycle.resources import Resource
from troop.shared.service_roles import SERVICE_ROLES
from troop.shared.tags import DATA_TAG

SESSION = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="eu-west-1")
PARAMETER = "/cdk-bootstrap/hnb659fds/version"
TEMPLATE = {
    "Resources": {
        f"Data{part}": {"Type": "AWS::DynamoDB::Table", "Properties": {"Tags": [{"Key": DATA_TAG, "Value": part}]}}
        for part in ("State", "Events")
    },
}
MANIFEST = {"bootstrapStackVersionSsmParameter": PARAMETER, "requiresBootstrapStackVersion": 6}
TABLES = {f"Data{part}": Resource("AWS::DynamoDB::Table", f"Troop-{part}-1") for part in ("State", "Events")}
DEPLOYED = TABLES | {"Decide": Resource("AWS::Lambda::Function", "decide")}


KEY = "arn:aws:kms:eu-west-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
AWS_KEY = "arn:aws:kms:eu-west-1:111122223333:key/00000000-0000-0000-0000-000000000000"
USABLE = {"KeyState": "Enabled", "KeyUsage": "ENCRYPT_DECRYPT", "KeySpec": "SYMMETRIC_DEFAULT"}


def synthesised(overrides: Sequence[str], deployment: str | None = None) -> dict[str, Any]:
    """The template of a deployment with these settings, as ``KEY=VALUE`` of the command line."""
    template_metadata, bus_metadata = metadata(settings_with(overrides, deployment))
    return {
        "Metadata": template_metadata,
        "Resources": TEMPLATE["Resources"] | {"Bus": {"Type": "B", "Metadata": bus_metadata}},
    }


class World:
    """An account: the version of its bootstrap, the stack's status, what is retained; and what was done."""

    def __init__(self) -> None:
        self.bootstrapped: str | None = "21"
        self.status: str | None = None
        self.retained: list[retained.RetainedTable] = []
        self.policies: set[str] = set()
        self.switch: dict[str, Any] = {}
        self.zones = ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
        self.resources: dict[str, Resource] = {}
        self.vpcs, self.quota, self.concurrency = 1, 5.0, 1000
        self.plan: dict[str, Any] = {"accountPlanType": "PAID"}
        self.sold = {"AWS-Lambda-Duration", "AWS-Lambda-Duration-ARM"}
        self.roles = {role.name for role in SERVICE_ROLES}
        self.keys: dict[str, dict[str, str]] = {KEY: {}}
        self.key_of_tables: str | None = AWS_KEY
        self.definitions: dict[str, str] = {}
        self.running: dict[str, list[str]] = {}
        self.refuses: dict[str, str] = {}
        self.done: list[tuple[str, ...]] = []
        self.typed: str | None = None
        self.template = synthesised([])

    def client(self, *_: Any, **__: Any) -> Any:
        return self

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "111122223333", "Arn": "arn:aws:iam::111122223333:user/ada"}

    def get_parameter(self, Name: str) -> dict[str, Any]:
        assert Name == PARAMETER
        if self.bootstrapped is None:
            raise ClientError({"Error": {"Code": "ParameterNotFound", "Message": ""}}, "GetParameter")
        return {"Parameter": {"Value": self.bootstrapped}}

    def describe_availability_zones(self) -> dict[str, Any]:
        return {"AvailabilityZones": [{"ZoneName": zone, "State": "available"} for zone in self.zones]}

    def describe_subnets(self, Filters: list[dict[str, Any]]) -> dict[str, Any]:
        """Subnets are named for their zones here; there are no default ones."""
        if Filters[0]["Name"] == "default-for-az":
            return {"Subnets": []}
        return {"Subnets": [{"SubnetId": i, "AvailabilityZone": i} for f in Filters for i in f["Values"]]}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "describe_vpcs"
        self._refuse(operation)
        shared = {"OwnerId": "444455556666"}
        pages = [{"Vpcs": [{"OwnerId": "111122223333"}] * self.vpcs}, {"Vpcs": [shared]}]
        return type("Pages", (), {"paginate": lambda _: pages})()

    def get_service_quota(self, **request: str) -> dict[str, Any]:
        assert request == {"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE"}
        self._refuse("get_service_quota")
        return {"Quota": {"Value": self.quota}}

    def get_aws_default_service_quota(self, **_: str) -> dict[str, Any]:
        return {"Quota": {"Value": 5.0}}

    def get_account_settings(self) -> dict[str, Any]:
        self._refuse("get_account_settings")
        limits = {"ConcurrentExecutions": self.concurrency, "UnreservedConcurrentExecutions": self.concurrency}
        return {"AccountLimit": limits}

    def get_account_plan_state(self) -> dict[str, Any]:
        self._refuse("get_account_plan_state")
        return self.plan

    def get_products(self, ServiceCode: str, Filters: list[dict[str, str]], MaxResults: int) -> dict[str, Any]:
        self._refuse("get_products")
        assert (ServiceCode, MaxResults) == ("AWSLambda", 1)
        attributes = {one["Field"]: one["Value"] for one in Filters}
        assert attributes["regionCode"] == "eu-west-1"
        return {"PriceList": ["{}"] if attributes["group"] in self.sold else []}

    def get_role(self, RoleName: str) -> dict[str, Any]:
        self._refuse("get_role")
        if RoleName not in self.roles:
            raise ClientError({"Error": {"Code": "NoSuchEntity", "Message": ""}}, "GetRole")
        return {"Role": {"RoleName": RoleName}}

    def describe_key(self, KeyId: str) -> dict[str, Any]:
        self._refuse("describe_key")
        if KeyId == AWS_KEY:
            return {"KeyMetadata": {"KeyManager": "AWS"}}
        if KeyId not in self.keys:
            raise ClientError({"Error": {"Code": "NotFoundException", "Message": ""}}, "DescribeKey")
        return {"KeyMetadata": {"KeyManager": "CUSTOMER", **USABLE, **self.keys[KeyId]}}

    def describe_table(self, TableName: str) -> dict[str, Any]:
        encryption = {"SSEDescription": {"KMSMasterKeyArn": self.key_of_tables}} if self.key_of_tables else {}
        return {"Table": {"TableName": TableName, **encryption}}

    def describe_state_machine(self, stateMachineArn: str) -> dict[str, str]:
        return {"definition": self.definitions[stateMachineArn]}

    def list_executions(self, stateMachineArn: str, statusFilter: str, maxResults: int) -> dict[str, Any]:
        assert statusFilter == "RUNNING"
        return {"executions": [{"executionArn": arn} for arn in self.running.get(stateMachineArn, [])[:maxResults]]}

    def _refuse(self, operation: str) -> None:
        if operation in self.refuses:
            raise ClientError({"Error": {"Code": self.refuses[operation], "Message": "no"}}, operation)

    def get_resource_policy(self, ResourceArn: str) -> dict[str, Any]:
        if ResourceArn not in self.policies:
            raise ClientError({"Error": {"Code": "PolicyNotFoundException", "Message": ""}}, "GetResourcePolicy")
        return {"Policy": "{}"}

    def tag_resource(self, ResourceArn: str, Tags: list[dict[str, str]]) -> None:
        self.done.append(("tag", ResourceArn, *(tag["Key"] for tag in Tags)))

    def untag_resource(self, ResourceArn: str, TagKeys: list[str]) -> None:
        self.done.append(("untag", ResourceArn, *TagKeys))

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {"Item": self.switch} if self.switch else {}

    def get_template(self, StackName: str) -> dict[str, Any]:
        assert self.resources, StackName
        return {"TemplateBody": self.template}

    def deployed_with(self, *overrides: str, deployment: str | None = None) -> None:
        """Makes the deployment one with these settings, as ``KEY=VALUE`` of the command line."""
        self.status, self.resources = "UPDATE_COMPLETE", DEPLOYED
        self.template = synthesised(overrides, deployment)

    def cdk(self, _session: Any, *arguments: str, quiet: bool = False) -> None:
        self.done.append(arguments)
        if arguments[0] == "synth":
            folder = Path(arguments[arguments.index("--output") + 1])
            overrides = [value for option, value in pairwise(arguments) if option == "-c"]
            (folder / f"{arguments[1]}.template.json").write_text(json.dumps(synthesised(overrides)))
            (folder / "manifest.json").write_text(json.dumps({"artifacts": {arguments[1]: {"properties": MANIFEST}}}))

    def clear_away(self, _session: Any, stack_id: str) -> None:
        assert not self.resources
        self.done.append(("clear", stack_id))

    def adopt_into(self, _session: Any, name: str, assembly: Path, _template: Any, tables: Any) -> None:
        assert (assembly / f"{name}.template.json").exists()
        self.done.append(("adopt into", name, *(table.name for table in tables.values())))

    def adopt(self, _session: Any, name: str, _template: Any, tables: Any) -> None:
        self.done.append(("adopt", name, *(table.name for table in tables.values())))


Run = Callable[..., None]
Printed = pytest.CaptureFixture[str]


STACKS = "arn:aws:cloudformation:eu-west-1:111122223333:stack/"


def old(
    name: str, part: str = "State", stack: str = f"{STACKS}Troop/1", *, empty: bool = False, declined: bool = False
) -> retained.RetainedTable:
    moment = datetime(2026, 11, 20, 10, tzinfo=UTC)
    arn = f"arn:{name}"
    return retained.RetainedTable(
        name, part, moment, 1, {}, empty=empty, stacks=(stack,) if stack else (), declined=declined, arn=arn
    )
