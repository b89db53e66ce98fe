"""Interface endpoints of SQS, and the only way on which instances reach it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from tests.patience import PATIENCE, eventually

from .helpers import Fleet, World, allow, code, unique

SERVICE = "com.amazonaws.us-east-1.sqs"
EC2 = "arn:aws:ec2:us-east-1:000000000000:"
SCRIPT = "#!/bin/sh\nenv > environment\ntouch $READY_FILE\nexec sleep 600\n"
LOST = "no answer"


class Endpoints:
    """Endpoints and security groups in the network of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.ec2, self.subnets = fleet.ec2, fleet.subnets
        self.vpc = str(self.ec2.describe_subnets(SubnetIds=self.subnets[:1])["Subnets"][0]["VpcId"])
        self._created: list[str] = []

    def group(self) -> str:
        """A security group whose members reach each other, and nothing else."""
        answer = self.ec2.create_security_group(GroupName=unique("cell"), Description="members", VpcId=self.vpc)
        group = str(answer["GroupId"])
        rules = {"GroupId": group, "IpPermissions": [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]}
        self.ec2.authorize_security_group_ingress(**rules)
        self.ec2.authorize_security_group_egress(**rules)
        everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
        self.ec2.revoke_security_group_egress(GroupId=group, IpPermissions=everything)
        return group

    def create(self, group: str, policy: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """An endpoint, at once after its creation."""
        arguments = {
            **{"VpcEndpointType": "Interface", "VpcId": self.vpc, "ServiceName": SERVICE},
            **{"SubnetIds": self.subnets[:2], "SecurityGroupIds": [group], "PrivateDnsEnabled": False},
            **({"PolicyDocument": json.dumps(policy)} if policy else {}),
        }
        created: dict[str, Any] = self.ec2.create_vpc_endpoint(**arguments | more)["VpcEndpoint"]
        self._created.append(created["VpcEndpointId"])
        return created

    def describe(self, endpoint: str) -> dict[str, Any]:
        (described,) = self.ec2.describe_vpc_endpoints(VpcEndpointIds=[endpoint])["VpcEndpoints"]
        return dict(described)

    def available(self, group: str, policy: dict[str, Any] | None = None) -> str:
        endpoint = str(self.create(group, policy)["VpcEndpointId"])
        eventually(lambda: self.describe(endpoint)["State"] == "available")
        return endpoint

    def delete(self, endpoint: str) -> None:
        """Deletes an endpoint, and waits until it is gone."""
        self.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
        eventually(lambda: not self._left(endpoint))

    def _left(self, endpoint: str) -> list[Any]:
        filters = [{"Name": "vpc-endpoint-id", "Values": [endpoint]}]
        return list(self.ec2.describe_vpc_endpoints(Filters=filters)["VpcEndpoints"])

    def clear(self) -> None:
        for endpoint in self._created:
            if self._left(endpoint):
                self.delete(endpoint)


@pytest.fixture
def endpoints(fleet: Fleet) -> Iterator[Endpoints]:
    endpoints = Endpoints(fleet)
    yield endpoints
    endpoints.clear()


class Node:
    """An instance whose role may receive messages if they come from its network, and a queue."""

    def __init__(self, world: World, fleet: Fleet) -> None:
        self.world, self.endpoints = world, Endpoints(fleet)
        self.group = self.endpoints.group()
        self.people = world.account.client("sqs")
        self.url = self.people.create_queue(QueueName=unique("tasks"))["QueueUrl"]
        attributes = self.people.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])["Attributes"]
        self.queue = str(attributes["QueueArn"])
        inside = {"StringEquals": {"aws:SourceVpc": self.endpoints.vpc}}
        self.role = world.role(
            allow("sqs:ReceiveMessage", self.queue, Condition=inside), allow("sqs:DeleteMessage", self.queue)
        )
        profile = {"Arn": world.profile(self.role)}
        template = fleet.template(SCRIPT, IamInstanceProfile=profile, SecurityGroupIds=[self.group])
        group = fleet.group(1, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"})
        (self.id,) = fleet.in_service(group, 1)
        lines = (fleet.directory(self.id) / "environment").read_text().splitlines()
        self._metadata = dict(line.split("=", 1) for line in lines)["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
        self._sqs = world.account.client("sqs", self._session(), retries={"max_attempts": 0})

    def _session(self) -> Any:
        name = self.role.rsplit("/", 1)[-1]
        url = f"{self._metadata}/latest/meta-data/iam/security-credentials/{name}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            issued = json.load(answer)
        return self.world.account.session(
            aws_access_key_id=issued["AccessKeyId"],
            aws_secret_access_key=issued["SecretAccessKey"],
            aws_session_token=issued["Token"],
        )

    def receive(self) -> str:
        """ "allowed", the error's message, or :data:`LOST`."""
        try:
            self._sqs.receive_message(QueueUrl=self.url)
        except ClientError as error:
            return str(error.response["Error"]["Message"])
        except BotoCoreError:
            return LOST
        return "allowed"

    def protect(self, *statements: dict[str, Any]) -> None:
        """Gives the queue a policy; none without statements."""
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements}) if statements else ""
        self.people.set_queue_attributes(QueueUrl=self.url, Attributes={"Policy": policy})


@pytest.fixture(scope="module")
def node(world: World, fleet: Fleet) -> Node:
    return Node(world, fleet)


def policy(*actions: str, **more: Any) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{**allow(list(actions)), "Principal": "*", **more}]}


def test_an_endpoint_becomes_available_and_has_names_for_its_zones(endpoints: Endpoints) -> None:
    group = endpoints.group()
    with_tags = [{"ResourceType": "vpc-endpoint", "Tags": [{"Key": "run", "Value": "one"}]}]
    created = endpoints.create(group, TagSpecifications=with_tags)
    endpoint = created["VpcEndpointId"]
    assert created["State"] == "pending"
    described = eventually(lambda: (one := endpoints.describe(endpoint))["State"] == "available" and one)
    names = [one["DnsName"] for one in described["DnsEntries"]]
    assert [name.startswith(f"{endpoint}-") for name in names] == [True] * 3
    assert [name.split(".", 1)[1] for name in names] == ["sqs.us-east-1.vpce.amazonaws.com"] * 3
    assert [name.split(".")[0][-10:] for name in names[1:]] == ["us-east-1a", "us-east-1b"]
    assert (described["Tags"], described["Groups"][0]["GroupId"]) == ([{"Key": "run", "Value": "one"}], group)
    ids = described["NetworkInterfaceIds"]
    interfaces = endpoints.ec2.describe_network_interfaces(NetworkInterfaceIds=ids)["NetworkInterfaces"]
    assert {one["SubnetId"] for one in interfaces} == set(endpoints.subnets[:2])


def test_endpoints_are_listed_by_their_tags_in_pages(endpoints: Endpoints) -> None:
    group, run = endpoints.group(), unique("run")
    with_tags = [{"ResourceType": "vpc-endpoint", "Tags": [{"Key": "run", "Value": run}]}]
    ids = [endpoints.create(group, TagSpecifications=with_tags)["VpcEndpointId"] for _ in range(3)]
    filters = [{"Name": "tag:run", "Values": [run]}, {"Name": "vpc-id", "Values": [endpoints.vpc]}]
    pages = list(
        endpoints.ec2.get_paginator("describe_vpc_endpoints").paginate(
            Filters=filters, PaginationConfig={"PageSize": 2}
        )
    )
    assert [[one["VpcEndpointId"] for one in page["VpcEndpoints"]] for page in pages] == [ids[:2], ids[2:]]
    with pytest.raises(ClientError) as error:
        endpoints.ec2.describe_vpc_endpoints(VpcEndpointIds=["vpce-0123456789abcdef0"])
    assert code(error) == "InvalidVpcEndpointId.NotFound"


def test_a_client_token_creates_one_endpoint(endpoints: Endpoints) -> None:
    group, token = endpoints.group(), unique("token")
    first, second = (endpoints.create(group, ClientToken=token) for _ in range(2))
    assert first["VpcEndpointId"] == second["VpcEndpointId"]
    with pytest.raises(ClientError) as error:
        endpoints.create(group, ClientToken=token, SubnetIds=endpoints.subnets[:1])
    assert code(error) == "IdempotentParameterMismatch"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ServiceName": "com.amazonaws.us-east-1.nothing"}, "InvalidServiceName"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "InvalidSecurityGroupID.NotFound"),
        ({"SubnetIds": ["subnet-0123456789abcdef0"]}, "InvalidSubnetID.NotFound"),
        ({"PrivateDnsEnabled": True}, "UnsupportedOperation"),
        ({"PolicyDocument": json.dumps({"Statement": [allow("sqs:*")]})}, "InvalidPolicyDocument"),
    ],
)
def test_an_endpoint_that_cannot_be(endpoints: Endpoints, change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ClientError) as error:
        endpoints.create(endpoints.group(), **change)
    assert code(error) == expected


def test_an_endpoint_has_one_subnet_in_a_zone(endpoints: Endpoints) -> None:
    with pytest.raises(ClientError) as error:
        endpoints.create(endpoints.group(), SubnetIds=endpoints.subnets[:1] * 2)
    assert code(error) == "DuplicateSubnetsInSameZone"


def test_a_deleted_endpoint_holds_its_security_group_for_a_while(endpoints: Endpoints, world: World) -> None:
    group = endpoints.group()
    endpoint = endpoints.available(group)
    with world.account.transitions_held():
        endpoints.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
        assert endpoints.describe(endpoint)["State"] == "deleting"
        with pytest.raises(ClientError) as error:
            endpoints.ec2.delete_security_group(GroupId=group)
        assert code(error) == "DependencyViolation"
    endpoints.delete(endpoint)
    endpoints.ec2.delete_security_group(GroupId=group)
    (refused,) = endpoints.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])["Unsuccessful"]
    assert (refused["ResourceId"], refused["Error"]["Code"]) == (endpoint, "InvalidVpcEndpoint.NotFound")


def test_the_service_of_an_endpoint_is_described_with_its_zones(endpoints: Endpoints) -> None:
    by_name = [{"Name": "service-name", "Values": [SERVICE, f"cn.{SERVICE}"]}]
    for parameters in ({"ServiceNames": [SERVICE]}, {"Filters": by_name}):
        (service,) = endpoints.ec2.describe_vpc_endpoint_services(**parameters)["ServiceDetails"]
        assert [one["ServiceType"] for one in service["ServiceType"]] == ["Interface"]
        assert service["PrivateDnsName"] == "sqs.us-east-1.amazonaws.com"
        assert {"us-east-1a", "us-east-1b", "us-east-1c"} <= set(service["AvailabilityZones"])


def test_endpoints_are_not_changed_here(endpoints: Endpoints) -> None:
    endpoint = endpoints.create(endpoints.group())["VpcEndpointId"]
    with pytest.raises(ClientError) as error:
        endpoints.ec2.modify_vpc_endpoint(VpcEndpointId=endpoint, AddSubnetIds=endpoints.subnets[2:])
    assert code(error) == "UnsupportedOperation"


def test_creating_an_endpoint_needs_a_permission_for_each_part(endpoints: Endpoints, world: World) -> None:
    group = endpoints.group()
    parts = [f"{EC2}vpc-endpoint/*", f"{EC2}vpc/{endpoints.vpc}", f"{EC2}subnet/*", f"{EC2}security-group/{group}"]
    tags = allow("ec2:CreateTags", parts[0], Condition={"StringEquals": {"ec2:CreateAction": "CreateVpcEndpoint"}})
    service = {"StringEquals": {"ec2:VpceServiceName": SERVICE}}

    def attempt(named: list[str], *more: dict[str, Any]) -> str:
        role = world.role(
            allow("ec2:CreateVpcEndpoint", named[:1], Condition=service),
            allow("ec2:CreateVpcEndpoint", named[1:]),
            *more,
        )
        own, endpoints.ec2 = endpoints.ec2, world.account.client("ec2", world.as_role(role))
        try:
            specification = [{"ResourceType": "vpc-endpoint", "Tags": [{"Key": "run", "Value": "one"}]}]
            return str(endpoints.create(group, TagSpecifications=specification)["State"])
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        finally:
            endpoints.ec2 = own

    for missing in range(1, len(parts)):
        assert attempt(parts[:missing] + parts[missing + 1 :], tags) == "UnauthorizedOperation"
    assert attempt(parts) == "UnauthorizedOperation", "the tags need a permission of their own"
    assert attempt(parts, tags) == "pending"


def test_only_an_endpoint_with_the_tag_is_deleted(endpoints: Endpoints, world: World) -> None:
    tag = [{"ResourceType": "vpc-endpoint", "Tags": [{"Key": "run", "Value": "one"}]}]
    group = endpoints.group()
    plain = endpoints.create(group)["VpcEndpointId"]
    tagged = endpoints.create(group, TagSpecifications=tag)["VpcEndpointId"]
    condition = {"StringEquals": {"aws:ResourceTag/run": "one"}}
    role = world.role(allow("ec2:DeleteVpcEndpoints", f"{EC2}vpc-endpoint/*", Condition=condition))
    client = world.account.client("ec2", world.as_role(role))
    with pytest.raises(ClientError) as error:
        client.delete_vpc_endpoints(VpcEndpointIds=[plain])
    assert code(error) == "UnauthorizedOperation"
    assert client.delete_vpc_endpoints(VpcEndpointIds=[tagged])["Unsuccessful"] == []


def test_a_node_without_an_endpoint_reaches_no_queue(node: Node, world: World) -> None:
    assert node.receive() == LOST
    node.people.receive_message(QueueUrl=node.url)  # people need none
    (decision,) = [one for one in world.account.decisions() if one["decision"] == "Unreachable" and node.id in str(one)]
    assert (decision["caller"], decision["action"]) == (node.role, "sqs:ReceiveMessage")
    assert (decision["source"], SERVICE in decision["resource"]) == ("endpoint", True)


def test_a_node_needs_an_endpoint_that_its_security_groups_let_it_reach(node: Node, endpoints: Endpoints) -> None:
    foreign = endpoints.available(endpoints.group())
    assert node.receive() == LOST
    endpoints.available(node.group)
    assert node.receive() == "allowed"
    endpoints.delete(foreign)
    assert node.receive() == "allowed"


def test_an_endpoints_policy_decides_about_nodes(node: Node, endpoints: Endpoints) -> None:
    endpoint = endpoints.available(node.group, policy("sqs:DeleteMessage"))
    assert "no VPC endpoint policy allows the sqs:ReceiveMessage action" in node.receive()
    other = endpoints.available(node.group, policy("sqs:ReceiveMessage", Resource=f"{node.queue}x"))
    assert "no VPC endpoint policy" in node.receive()
    endpoints.delete(other)
    endpoints.available(node.group, policy("sqs:ReceiveMessage", Resource=node.queue))
    assert node.receive() == "allowed", "one of the endpoints lets it pass"
    endpoints.delete(endpoint)
    assert node.receive() == "allowed"


def test_an_endpoint_gives_nodes_no_right_that_their_role_lacks(node: Node, endpoints: Endpoints) -> None:
    endpoints.available(node.group)
    with pytest.raises(ClientError) as error:
        node._sqs.send_message(QueueUrl=node.url, MessageBody="x")
    assert code(error).startswith("AccessDenied")


def test_a_queue_knows_by_which_endpoint_a_node_comes(node: Node, endpoints: Endpoints) -> None:
    def only_by(endpoint: str, **principal: Any) -> dict[str, Any]:
        condition = {"StringNotEquals": {"aws:SourceVpce": endpoint}}
        named = {"Effect": "Deny", "Action": "sqs:ReceiveMessage", "Resource": node.queue, "Condition": condition}
        return {**named, **({"Principal": "*"} | principal)}

    mine, nodes = endpoints.available(node.group), {"ArnEquals": {"aws:PrincipalArn": node.role}}
    try:
        node.protect(only_by(mine))
        assert node.receive() == "allowed"
        for denied in (
            only_by("vpce-0123456789abcdef0", Principal={"AWS": node.role}),
            only_by("x") | {"Condition": {"StringNotEquals": {"aws:SourceVpce": "x"}, **nodes}},
        ):
            node.protect(denied)
            assert "explicit deny" in node.receive()
            node.people.receive_message(QueueUrl=node.url)  # is not a node
    finally:
        node.protect()
