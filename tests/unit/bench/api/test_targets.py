"""What the API makes of targets that a file names: looked up, and checked before anything is launched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.account.bench import Half, changed, post, problems
from troop.shared.aws.clients import client

WHERE = "body.definition.targets.there"
ALLOWED = ["shop:443", "10.0.0.0/8:443", "93.184.216.34:443", "sg-0123456789abcdef0:443"]


def to(**target: Any) -> dict[str, Any]:
    return changed(targets={"there": {"ports": [443], "roles": ["drivers"], **target}})


def balancer(half: Half, kind: str, groups: list[str], scheme: str = "internal") -> dict[str, Any]:
    created = client("elbv2").create_load_balancer(
        Name="shop", Subnets=half.subnets, Type=kind, Scheme=scheme, SecurityGroups=groups
    )
    load_balancer: dict[str, Any] = created["LoadBalancers"][0]
    return load_balancer


def group(half: Half) -> str:
    created = half.account.ec2.create_security_group(GroupName="shop", Description="-", VpcId=half.vpc)
    return str(created["GroupId"])


def stored(half: Half) -> dict[str, Any]:
    (document,) = [json.loads(body) for key, body in half.objects().items() if key.endswith("load-balancers.json")]
    return dict(document)


@pytest.mark.parametrize("settings", [{"allowed_targets": ALLOWED}], indirect=True)
class TestAllowed:
    def test_an_application_load_balancer_is_stored_with_its_groups_and_name(self, half: Half) -> None:
        security = group(half)
        created = balancer(half, "application", [security])
        status, run = post(definition=to(load_balancer="shop"))
        assert status == 202, run
        assert stored(half)["shop"] | {"addresses": []} == {
            "host": created["DNSName"],
            "vpc": half.vpc,
            "kind": "application",
            "scheme": "internal",
            "security_groups": [security],
            "addresses": [],
        }

    def test_a_network_load_balancer_without_groups_has_the_addresses_of_its_interfaces(self, half: Half) -> None:
        created = balancer(half, "network", [])
        ec2, description = half.account.ec2, f"ELB {created['LoadBalancerArn'].partition('loadbalancer/')[2]}"
        ec2.create_network_interface(SubnetId=half.subnets[0], PrivateIpAddress="10.0.0.9", Description=description)
        ec2.create_network_interface(SubnetId=half.subnets[1], PrivateIpAddress="10.0.1.9", Description="another")
        status, run = post(definition=to(load_balancer="shop"))
        assert status == 202, run
        assert stored(half)["shop"]["addresses"] == ["10.0.0.9/32"]

    def test_one_that_does_not_exist_or_is_public_is_refused(self, half: Half) -> None:
        refused = problems(definition=to(load_balancer="shop"))[f"{WHERE}.load_balancer"]
        assert "this account has no such Application or Network Load Balancer here" in refused
        balancer(half, "application", [group(half)], "internet-facing")
        assert "must be internal" in problems(definition=to(load_balancer="shop"))[f"{WHERE}.load_balancer"]

    def test_a_security_group_that_does_not_exist_is_refused(self, half: Half) -> None:
        refused = problems(definition=to(security_group="sg-0123456789abcdef0"))
        assert "no such security group" in refused[f"{WHERE}.security_group"]

    def test_addresses_need_a_route_from_the_subnets(self, half: Half) -> None:
        """Of the main table, or of the table that a subnet has in its place."""
        assert post(definition=to(addresses=["10.0.1.7"]), key="k0")[0] == 202
        outside = to(addresses=["93.184.216.34"])
        assert f"{', '.join(sorted(half.subnets))} have none" in problems(definition=outside)[f"{WHERE}.addresses.0"]
        ec2 = half.account.ec2
        nat = ec2.create_nat_gateway(SubnetId=half.subnets[0])["NatGateway"]["NatGatewayId"]
        table = ec2.create_route_table(VpcId=half.vpc)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
        ec2.associate_route_table(RouteTableId=table, SubnetId=half.subnets[0])
        assert f"{half.subnets[1]} has none" in problems(definition=outside)[f"{WHERE}.addresses.0"]
        ec2.associate_route_table(RouteTableId=table, SubnetId=half.subnets[1])
        status, run = post(definition=outside)
        assert status == 202, run


def test_an_existing_network_needs_an_endpoint_of_s3_on_the_tables_of_all_subnets(
    half: Half, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere S3 would refuse the credentials of nodes."""
    monkeypatch.setenv("TROOP_NETWORK_IS_OWN", "false")
    ec2 = half.account.ec2

    def lacking() -> str:
        return problems()["body.definition.fleets"]

    assert f"have no way to S3 from {', '.join(sorted(half.subnets))}: must be in a network" in lacking()
    own = ec2.create_route_table(VpcId=half.vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=own, SubnetId=half.subnets[0])
    service = {"VpcId": half.vpc, "VpcEndpointType": "Gateway"}
    elsewhere = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    ec2.create_vpc_endpoint(**service | {"VpcId": elsewhere}, ServiceName="com.amazonaws.eu-central-1.s3")
    ec2.create_vpc_endpoint(**service, ServiceName="com.amazonaws.eu-central-1.dynamodb", RouteTableIds=[own])
    ec2.create_vpc_endpoint(**service, ServiceName="com.amazonaws.eu-central-1.s3", RouteTableIds=[own])
    assert f"have no way to S3 from {half.subnets[1]}: must be" in lacking()
    ec2.associate_route_table(RouteTableId=own, SubnetId=half.subnets[1])
    status, run = post()
    assert status == 202, run


def test_without_the_setting_nothing_is_reachable_and_nothing_is_looked_up(half: Half) -> None:
    refused = problems(definition=to(load_balancer="shop"))
    assert "troop:allowed_targets is empty" in refused[f"{WHERE}.load_balancer"]
