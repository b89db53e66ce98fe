"""Where fleets run: nothing gets in, nothing gets out but to named buckets, whichever network it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_s3 as s3

from infra.network import Network
from infra.settings import read_settings
from tests.infra.cfn import permissions, resources_of, text
from tests.infra.conftest import CONTEXT
from tests.infra.roles import WIDGETS

Template = Mapping[str, Any]

NETWORK = {"vpc": "vpc-0123456789abcdef0", "subnets": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]}


Synthesise = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def in_network(synthesised: Synthesise) -> dict[str, Any]:
    return synthesised(network=json.dumps(NETWORK))


def kinds_of_ec2(template: Template) -> set[str]:
    return {r["Type"] for r in template["Resources"].values() if r["Type"].startswith("AWS::EC2::")}


def test_there_is_no_way_in_and_none_out_but_s3s(template: Template) -> None:
    assert kinds_of_ec2(template) == {
        *("AWS::EC2::VPC", "AWS::EC2::Subnet"),
        *("AWS::EC2::RouteTable", "AWS::EC2::SubnetRouteTableAssociation", "AWS::EC2::VPCEndpoint"),
    }
    (endpoint,) = resources_of(template, "AWS::EC2::VPCEndpoint").values()
    properties = text(endpoint["Properties"])
    assert properties["ServiceName"] == "com.amazonaws.<AWS::Region>.s3"
    assert properties["VpcEndpointType"] == "Gateway"
    assert set(properties["RouteTableIds"]) == {f"<{name}>" for name in resources_of(template, "AWS::EC2::RouteTable")}


@pytest.mark.parametrize(("name", "zones"), [("template", 3), ("blue", 2)])
def test_a_subnet_in_each_zone_of_wherever_it_is_deployed(
    request: pytest.FixtureRequest, name: str, zones: int
) -> None:
    subnets = [s["Properties"] for s in resources_of(request.getfixturevalue(name), "AWS::EC2::Subnet").values()]
    placements = [subnet["AvailabilityZone"] for subnet in subnets]
    assert placements == [{"Fn::Select": [zone, {"Fn::GetAZs": ""}]} for zone in range(zones)]
    assert not any(subnet["MapPublicIpOnLaunch"] for subnet in subnets)
    # A zone more leaves the subnets that are there as they are.
    assert [s["CidrBlock"] for s in subnets] == ["10.0.0.0/19", "10.0.32.0/19", "10.0.64.0/19"][:zones]


def test_named_zones_stay_whatever_the_region_answers_at_an_update() -> None:
    scope = cdk.Stack(cdk.App(context=CONTEXT))
    settings = read_settings(CONTEXT | {"troop:zones": "eu-west-1c,eu-west-1a"})
    Network(scope, "Network", settings=settings, results=s3.Bucket(scope, "Results"))
    subnets = resources_of(assertions.Template.from_stack(scope).to_json(), "AWS::EC2::Subnet").values()
    placements = [(s["Properties"]["AvailabilityZone"], s["Properties"]["CidrBlock"]) for s in subnets]
    assert placements == [("eu-west-1c", "10.0.0.0/19"), ("eu-west-1a", "10.0.32.0/19")]


def test_names_are_resolved_as_s3s_endpoint_needs_it(template: Template) -> None:
    (vpc,) = resources_of(template, "AWS::EC2::VPC").values()
    assert vpc["Properties"]["EnableDnsHostnames"] is vpc["Properties"]["EnableDnsSupport"] is True


def reachable(template: Template) -> set[tuple[str, str]]:
    (endpoint,) = resources_of(template, "AWS::EC2::VPCEndpoint").values()
    rights = set()
    for statement in endpoint["Properties"]["PolicyDocument"]["Statement"]:
        assert (statement["Effect"], statement["Principal"]) == ("Allow", {"AWS": "*"})
        actions, resources = statement["Action"], statement["Resource"]
        rights |= {
            (action, text(resource))
            for action in ([actions] if isinstance(actions, str) else actions)
            for resource in (resources if isinstance(resources, list) else [resources])
        }
    return rights


OURS = {("s3:GetObject", "<Results.Arn>/*"), ("s3:PutObject", "<Results.Arn>/*")}
PACKAGES = {("s3:GetObject", "arn:<AWS::Partition>:s3:::al2023-repos-<AWS::Region>-de612dc2/*")}


def test_only_named_buckets_can_be_reached(template: Template, blue: Template) -> None:
    assert reachable(template) == OURS | PACKAGES
    allowed = {
        grant
        for bucket in ("my-data", "logs.example.com")
        for grant in (
            ("s3:GetObject", f"arn:<AWS::Partition>:s3:::{bucket}/*"),
            ("s3:ListBucket", f"arn:<AWS::Partition>:s3:::{bucket}"),
        )
    }
    own = {("s3:DeleteObject", "<Results.Arn>/data/*")}
    assert reachable(blue) == OURS | PACKAGES | allowed | own


def test_a_dns_firewall_resolves_only_names_of_aws_and_of_the_network(
    synthesised: Synthesise, template: Template, refused: Callable[..., str]
) -> None:
    firewall = synthesised(dns_firewall=True)
    lists = {
        name: [text(domain) for domain in one["Properties"]["Domains"]]
        for name, one in resources_of(firewall, "AWS::Route53Resolver::FirewallDomainList").items()
    }
    (group,) = resources_of(firewall, "AWS::Route53Resolver::FirewallRuleGroup").values()
    rules = {
        (rule["Priority"], rule["Action"], *lists[text(rule["FirewallDomainListId"]).strip("<>").removesuffix(".Id")])
        for rule in group["Properties"]["FirewallRules"]
    }
    assert rules == {
        (100, "ALLOW", "*.<AWS::URLSuffix>", "*.compute.internal", "*.ec2.internal"),
        (200, "BLOCK", "*"),
    }
    (association,) = resources_of(firewall, "AWS::Route53Resolver::FirewallRuleGroupAssociation").values()
    assert text(association["Properties"]["VpcId"]) == "<BenchmarksNetworkVpc>"
    assert not [one for one in template["Resources"].values() if "Firewall" in one["Type"]]
    assert "troop:dns_firewall is True" in refused(dns_firewall=True, network=NETWORK)


def test_existing_network_needs_no_new_resources(in_network: Template) -> None:
    assert kinds_of_ec2(in_network) == set()
    environment = resources_of(in_network, "AWS::Lambda::Function")["Launch"]["Properties"]["Environment"]["Variables"]
    assert environment["TROOP_NETWORK_VPC"] == NETWORK["vpc"]
    assert environment["TROOP_NETWORK_IS_OWN"] == "false"
    assert environment["TROOP_NETWORK_SUBNETS"] == ",".join(NETWORK["subnets"])


def test_nodes_credentials_are_of_no_use_outside_their_network(template: Template, in_network: Template) -> None:
    """A statement without the condition would hold anywhere."""
    for stack, vpc in ((template, "<BenchmarksNetworkVpc>"), (in_network, NETWORK["vpc"])):
        grants = permissions(stack, "BenchmarksNodesRole")
        assert {condition for *_, condition in grants} == {repr({"StringEquals": {"aws:SourceVpc": vpc}})}


def test_fleets_are_launched_only_into_the_existing_network(in_network: Template) -> None:
    (policy,) = resources_of(in_network, "AWS::IAM::Role")["LaunchRole"]["Properties"]["Policies"]
    resources = json.dumps(text(policy["PolicyDocument"]))
    assert f"vpc/{NETWORK['vpc']}" in resources
    assert all(f"subnet/{subnet}" in resources for subnet in NETWORK["subnets"])
    assert "subnet/*" not in resources


@pytest.mark.parametrize(
    ("globs", "allowed"), [(["*"], None), (["c7g.*", "m7g.large"], ["c7g.*", "m7g.large"]), ("c7g.*", ["c7g.*"])]
)
def test_iam_lets_launch_run_the_types_that_the_operator_allows(
    synthesised: Synthesise, globs: Any, allowed: list[str] | None
) -> None:
    template = synthesised(network=json.dumps(NETWORK), instance_types=globs)
    (policy,) = resources_of(template, "AWS::IAM::Role")["LaunchRole"]["Properties"]["Policies"]
    running = [
        one
        for one in policy["PolicyDocument"]["Statement"]
        if one["Action"] == "ec2:RunInstances" and ":instance/*" in json.dumps(text(one["Resource"]))
    ]
    (statement,) = running
    conditions = statement["Condition"]
    assert conditions.get("StringLike", {}).get("ec2:InstanceType") == allowed
    assert "aws:RequestTag/troop:deployment" in conditions["StringEquals"]
    assert allowed is None or "volume/*" not in json.dumps(text(statement["Resource"])), "volumes have no type"


def test_benchmarks_can_be_left_out(synthesised: Synthesise) -> None:
    without = synthesised(benchmarks=False)
    assert kinds_of_ec2(without) == set()
    text_of_it = json.dumps(without)
    for trace in ("Benchmark", "Reaper", "TROOP_RUNS_TABLE", "autoscaling:Create", "ec2:RunInstances", '"benchmarks"'):
        assert trace not in text_of_it, trace
    assert not set(resources_of(without, "AWS::Lambda::Function")) & {"Launch", "Cell", "Teardown", "Reaper"}
    assert "RunsTable" not in without["Outputs"]
    queries = resources_of(without, "AWS::Logs::QueryDefinition").values()
    assert queries
    assert all(query["Properties"]["LogGroupNames"] for query in queries)
    assert permissions(without, "WidgetsRole") == WIDGETS
