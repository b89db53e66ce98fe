"""Instances find the AWS CLI, the account, and through the metadata service their role: IAM is enforced on nodes."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

from .helpers import Fleet, World, allow, unique

SCRIPT = """#!/bin/sh
env > environment
aws s3 cp --only-show-errors s3://BUCKET/given given
aws s3 cp --only-show-errors s3://BUCKET/hidden hidden 2> refused
aws s3 cp --only-show-errors s3://BUCKET/inside inside
aws s3 cp --only-show-errors s3://BUCKET/outside outside 2>> refused
aws s3 cp --only-show-errors environment "s3://BUCKET/nodes/ROLE_ID:$INSTANCE_ID.json" && touch own
aws s3 cp --only-show-errors environment s3://BUCKET/nodes/ROLE_ID:i-0123456789abcdef0.json && touch foreign
aws s3 presign s3://BUCKET/given --expires-in 600 > presigned
touch "$READY_FILE"
"""


class Node:
    """An instance with a role, and its metadata service as the instance itself would ask it."""

    def __init__(
        self,
        world: World,
        fleet: Fleet,
        launched: Callable[[str], dict[str, Any]] | None = None,
        script: str = SCRIPT,
    ) -> None:
        """``launched``: what a group says of its launch template, on demand unless told otherwise."""
        self.world = world
        s3, self.bucket = world.account.client("s3"), unique("bucket")
        s3.create_bucket(Bucket=self.bucket)
        for key in ("given", "hidden", "inside", "outside", "others"):
            s3.put_object(Bucket=self.bucket, Key=key, Body=key.encode())
        objects = f"arn:aws:s3:::{self.bucket}/"
        vpc = fleet.ec2.describe_subnets(SubnetIds=fleet.subnets[:1])["Subnets"][0]["VpcId"]
        conditions = {"inside": vpc, "outside": "vpc-0123456789abcdef0"}
        self.role = world.role(
            allow("s3:GetObject", f"{objects}given"),
            allow("s3:PutObject", f"{objects}*/${{aws:userid}}.json"),
            *(
                allow("s3:GetObject", f"{objects}{key}", Condition={"StringEquals": {"aws:SourceVpc": network}})
                for key, network in conditions.items()
            ),
        )
        template = fleet.template(
            script.replace("BUCKET", self.bucket).replace("ROLE_ID", self.role_id()),
            IamInstanceProfile={"Arn": world.profile(self.role)},
            MetadataOptions={"HttpTokens": "required"},
        )
        on_demand = {"LaunchTemplate": {"LaunchTemplateId": template, "Version": "1"}}
        group = fleet.group(1, **(launched(template) if launched else on_demand))
        (self.id,) = fleet.in_service(group, 1)
        self.fleet = fleet
        self.home: Path = fleet.directory(self.id)
        lines = (self.home / "environment").read_text().splitlines()
        self.environment = dict(line.split("=", 1) for line in lines)

    def ask(self, path: str, method: str = "GET", **headers: str) -> str:
        """The answer's text, or the error's status as text."""
        url = f"{self.environment['AWS_EC2_METADATA_SERVICE_ENDPOINT']}/latest/{path}"
        sent = {f"X-aws-ec2-metadata-{name.replace('_', '-')}": value for name, value in headers.items()}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, method=method, headers=sent), timeout=PATIENCE
            ) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return str(error.code)

    def role_id(self) -> str:
        role = self.world.account.client("iam").get_role(RoleName=self.role.rsplit("/", 1)[-1])["Role"]
        return str(role["RoleId"])

    def token(self) -> str:
        return self.ask("api/token", "PUT", token_ttl_seconds="600")


@pytest.fixture(scope="module")
def node(world: World, fleet: Fleet) -> Node:
    return Node(world, fleet)


def test_the_cli_does_what_the_nodes_role_may_and_nothing_else(node: Node) -> None:
    assert (node.home / "given").read_text() == "given"
    assert not (node.home / "hidden").exists()
    assert "403" in (node.home / "refused").read_text()
    assert not [name for name in node.environment if "KEY" in name or "TOKEN" in name]
    assert {(one["action"], one["resource"], one["decision"]) for one in node.fleet.account.decisions()} >= {
        ("s3:GetObject", f"arn:aws:s3:::{node.bucket}/hidden", "ImplicitDeny")
    }


def test_requests_of_an_instance_come_from_its_network(node: Node) -> None:
    assert (node.home / "inside").read_text() == "inside"
    assert not (node.home / "outside").exists()


def test_an_instance_writes_only_under_its_own_id(node: Node) -> None:
    assert (node.home / "own").exists()
    assert not (node.home / "foreign").exists()


def test_presigned_urls_are_signed_as_on_amazon_linux(node: Node) -> None:
    url = (node.home / "presigned").read_text().strip()
    assert "X-Amz-Algorithm=AWS4-HMAC-SHA256" in url
    context = ssl.create_default_context(cafile=node.environment["AWS_CA_BUNDLE"])
    with urllib.request.urlopen(url, context=context, timeout=PATIENCE) as answer:
        assert answer.read() == b"given"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url.replace("/given", "/hidden"), context=context, timeout=PATIENCE)


def test_an_address_is_known_to_its_instance_alone(node: Node) -> None:
    """The id is on every command line of the instance's processes, where each user of the machine can read it."""
    assert node.ask("meta-data/instance-id", token=node.token()) == node.id
    address = node.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
    assert node.id not in address
    for guess in (node.id, "", "guess"):
        url = f"{address.rpartition('/')[0]}/{guess}/latest/api/token"
        sent = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=sent), timeout=5)


def test_metadata_describe_the_instance(node: Node) -> None:
    shown, token = node.fleet.instance(node.id), node.token()
    expected = {
        "instance-id": node.id,
        "instance-type": "t3.micro",
        "ami-id": "ami-12345678",
        "local-ipv4": shown["PrivateIpAddress"],
        "placement/availability-zone": shown["Placement"]["AvailabilityZone"],
        "placement/region": "us-east-1",
        "iam/security-credentials/": node.role.rsplit("/", 1)[-1],
        "spot/instance-action": "404",
    }
    assert {path: node.ask(f"meta-data/{path}", token=token) for path in expected} == expected
    assert json.loads(node.ask("dynamic/instance-identity/document", token=token))["instanceId"] == node.id


def test_a_token_of_the_instance_is_required_where_it_says_so(node: Node, fleet: Fleet) -> None:
    assert node.ask("meta-data/instance-id") == "401"
    assert node.ask("meta-data/instance-id", token="guessed") == "401"
    assert node.ask("api/token", "PUT") == "400"
    (other,) = fleet.in_service(fleet.group(1, '#!/bin/sh\nenv > environment\ntouch "$READY_FILE"\n'), 1)
    environment = (fleet.directory(other) / "environment").read_text()
    token, own = node.token(), node.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
    (address,) = re.findall(r"^AWS_EC2_METADATA_SERVICE_ENDPOINT=(.*)$", environment, re.MULTILINE)
    node.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = address
    try:
        assert node.ask("meta-data/instance-id") == other, "version 1 is allowed there"
        assert node.ask("meta-data/instance-id", token=token) == "401"
        assert node.ask("meta-data/iam/security-credentials/") == "404", "it has no role"
    finally:
        node.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = own


def test_credentials_are_the_roles_and_end_with_the_instance(world: World, node: Node) -> None:
    path = f"meta-data/iam/security-credentials/{node.role.rsplit('/', 1)[-1]}"
    credentials = json.loads(node.ask(path, token=node.token()))
    assert credentials == json.loads(node.ask(path, token=node.token())), "not new ones for every call"
    session = world.account.session(
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["Token"],
    )
    caller = world.account.client("sts", session).get_caller_identity()["Arn"]
    assert caller == f"arn:aws:sts::000000000000:assumed-role/{node.role.rsplit('/', 1)[-1]}/{node.id}"
    token = node.token()
    node.fleet.ec2.terminate_instances(InstanceIds=[node.id])
    assert node.ask(path, token=token) == "404"
