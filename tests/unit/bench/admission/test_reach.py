"""What nodes may reach: which targets a deployment allows, which have a way, and the rules that follow."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator

from tests.unit.bench.build import BENCHMARK
from troop.bench.admission.reach import (
    MOST_RULES,
    Balancer,
    Route,
    Surroundings,
    balancers_document,
    balancers_of,
    egress_to_targets,
    forbidden_targets,
    targets_document,
    unreachable_targets,
)
from troop.bench.definition.definition import Benchmark, Target, from_document, to_document
from troop.bench.definition.problems import Problem

SHOP = Target("shop", ("443",), ("drivers",), load_balancer="shop")
RANGE = Target("range", ("8000-8100", "22"), ("drivers", "servers"), addresses=("10.20.0.0/16", "10.30.0.7/32"))
STORE = Target("store", ("5432",), ("servers",), security_group="sg-0123456789abcdef0")
BALANCER = Balancer("internal-shop-1.elb.amazonaws.com", "vpc-1", security_groups=("sg-11111111", "sg-22222222"))
LOCAL = Route(IPv4Network("10.0.0.0/16"), "local")
PEERING = Route(IPv4Network("10.9.0.0/16"), "pcx-1")
NAT = Route(IPv4Network("0.0.0.0/0"), "nat-1")


def with_targets(*targets: Target) -> Benchmark:
    return replace(BENCHMARK, targets=targets)


def says_only(problems: list[Problem], words: str | None) -> bool:
    """Whether exactly one problem says so; without words, whether there is none."""
    return not problems if words is None else [words in str(one) for one in problems] == [True]


def to(*addresses: str, ports: str = "443") -> Benchmark:
    return with_targets(Target("there", (ports,), ("drivers",), addresses=addresses))


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        (SHOP, ["shop:443"]),
        (SHOP, ["web:80", "shop:1-65535"]),
        (RANGE, ["10.0.0.0/8:1-9000"]),
        (RANGE, ["0.0.0.0/0:8000-8100", "10.0.0.0/8:22"]),
        (STORE, ["sg-0123456789abcdef0:5432"]),
    ],
)
def test_target_that_the_setting_covers_is_allowed(target: Target, allowed: list[str]) -> None:
    assert forbidden_targets(with_targets(target), allowed) == []


@pytest.mark.parametrize(
    ("target", "allowed", "entry"),
    [
        (SHOP, [], "shop:443"),
        (SHOP, ["shop:80", "shop:444-500", "shops:443"], "shop:443"),
        (SHOP, ["0.0.0.0/0:1-65535", "sg-0123456789abcdef0:443"], "shop:443"),
        (replace(RANGE, ports=("22",)), ["10.20.0.0/17:22", "10.20.128.0/17:22", "10.30.0.7:22"], "10.20.0.0/16:22"),
        (replace(RANGE, ports=("22",)), ["10.20.0.0/16:22"], "10.30.0.7:22"),
        (replace(RANGE, ports=("8000-8100",)), ["10.0.0.0/8:8000-8050", "10.0.0.0/8:8051-8100"], "10.20.0.0/16:8000"),
        (STORE, ["sg-0123456789abcdef1:5432"], "sg-0123456789abcdef0:5432"),
    ],
)
def test_anything_else_is_refused_with_the_setting_that_would_allow_it(
    target: Target, allowed: list[str], entry: str
) -> None:
    first = forbidden_targets(with_targets(target), allowed)[0]
    assert first.where.startswith(f"targets.{target.name}")
    assert f"-c 'troop:allowed_targets={','.join([*allowed, entry])}" in first.allowed


@pytest.mark.parametrize(
    ("address", "routes", "problem"),
    [
        ("10.0.3.0/24", [LOCAL], None),
        ("10.9.0.1/32", [LOCAL], "s-1 has none"),
        ("10.0.0.0/8", [LOCAL], "s-1 has none"),
        ("93.184.216.34/32", [LOCAL, NAT], None),
        ("93.184.216.34/32", [LOCAL, Route(IPv4Network("0.0.0.0/0"), "igw-1")], "nodes have no public address"),
        ("93.184.216.34/32", [NAT, Route(IPv4Network("93.184.0.0/16"), "igw-1")], "nodes have no public address"),
        ("10.9.0.1/32", [LOCAL, Route(IPv4Network("0.0.0.0/0"), "igw-1"), PEERING], None),
        ("10.9.0.1/32", [LOCAL, Route(None, "vpce-1")], "s-1 has none"),
        ("10.9.0.1/32", [LOCAL, Route(None, "tgw-1")], None),
    ],
)  # fmt: skip
def test_addresses_need_a_route_that_nodes_can_use(address: str, routes: list[Route], problem: str | None) -> None:
    around = Surroundings("vpc-1", {"s-1": routes, "s-2": [NAT, LOCAL]})
    problems = unreachable_targets(to(address), around)
    assert says_only(problems, problem)


@pytest.mark.parametrize(
    ("balancer", "problem"),
    [
        (BALANCER, None),
        (Balancer("h", "vpc-1", "network", addresses=("10.0.0.9/32",)), None),
        (None, "no such Application or Network Load Balancer"),
        (replace(BALANCER, vpc="vpc-2"), "one in the nodes' network vpc-1"),
        (replace(BALANCER, scheme="internet-facing"), "must be internal"),
        (replace(BALANCER, kind="gateway"), "an Application or Network Load Balancer"),
        (Balancer("h", "vpc-1", "network"), "no network interfaces yet"),
    ],
)
def test_a_load_balancer_is_internal_and_in_the_network_of_the_nodes(
    balancer: Balancer | None, problem: str | None
) -> None:
    problems = unreachable_targets(with_targets(SHOP), Surroundings("vpc-1", balancers={"shop": balancer}))
    assert says_only(problems, problem)


@pytest.mark.parametrize(
    ("network", "problem"), [("vpc-1", None), (None, "no such security group"), ("vpc-2", "vpc-1")]
)
def test_a_security_group_is_in_the_network_of_the_nodes(network: str | None, problem: str | None) -> None:
    around = Surroundings("vpc-1", security_groups={"sg-0123456789abcdef0": network})
    problems = unreachable_targets(with_targets(STORE), around)
    assert says_only(problems, problem)


@pytest.mark.parametrize(("number", "refused"), [(MOST_RULES, False), (MOST_RULES + 1, True)])
def test_the_rules_of_a_role_fit_into_a_security_group(number: int, refused: bool) -> None:
    addresses = [f"10.0.0.{n}/32" for n in range(number)]
    parts = [
        Target(f"t{n}", ("443",), ("drivers",), addresses=tuple(addresses[n : n + 20])) for n in range(0, number, 20)
    ]
    elsewhere = Target("more", ("443",), ("servers",), addresses=("10.0.1.0/24",))
    problems = unreachable_targets(with_targets(*parts, elsewhere), Surroundings("vpc-1", {"s-1": [LOCAL]}))
    assert [str(one) for one in problems if f"need {number} rules for drivers" in str(one)] == [
        str(one) for one in problems
    ]
    assert bool(problems) == refused


def test_the_rules_of_a_role_are_exactly_its_targets() -> None:
    benchmark = with_targets(SHOP, RANGE, STORE, replace(RANGE, name="again", ports=("22",), roles=("drivers",)))
    balancers = {"shop": BALANCER}
    there = [{"CidrIp": "10.20.0.0/16"}, {"CidrIp": "10.30.0.7/32"}]
    tcp = {"IpProtocol": "tcp"}
    drivers = egress_to_targets(benchmark, "drivers", balancers)
    assert drivers == [
        tcp | {"FromPort": 443, "ToPort": 443, "UserIdGroupPairs": [{"GroupId": g} for g in BALANCER.security_groups]},
        tcp | {"FromPort": 8000, "ToPort": 8100, "IpRanges": there},
        tcp | {"FromPort": 22, "ToPort": 22, "IpRanges": there},
    ]
    (*_, store) = egress_to_targets(benchmark, "servers", balancers)
    assert store == tcp | {
        "FromPort": 5432,
        "ToPort": 5432,
        "UserIdGroupPairs": [{"GroupId": "sg-0123456789abcdef0"}],
    }
    assert egress_to_targets(benchmark, "others", balancers) == []
    shape = Session().get_service_model("ec2").operation_model("AuthorizeSecurityGroupEgress").input_shape
    assert shape is not None
    report = ParamValidator().validate({"GroupId": "sg-1", "IpPermissions": drivers}, shape)
    assert not report.has_errors(), report.generate_report()


def test_scripts_learn_names_and_ports() -> None:
    benchmark = with_targets(SHOP, RANGE, replace(RANGE, name="one", addresses=("10.30.0.7/32",)))
    targets = targets_document(benchmark, "drivers", {"shop": BALANCER})["targets"]
    assert {name: (one["host"], one["port"]) for name, one in targets.items()} == {
        "shop": (BALANCER.host, 443),
        "range": (None, 8000),
        "one": ("10.30.0.7", 8000),
    }
    assert targets["range"]["addresses"] == ["10.20.0.0/16", "10.30.0.7/32"]
    assert targets_document(benchmark, "servers", {"shop": BALANCER})["targets"].keys() == {"range", "one"}


def test_targets_and_load_balancers_survive_storage() -> None:
    benchmark = with_targets(SHOP, RANGE, STORE)
    assert from_document(to_document(benchmark)) == benchmark
    assert "targets" not in to_document(BENCHMARK)
    balancers = {"shop": BALANCER, "n": Balancer("h", "vpc-1", "network", addresses=("10.0.0.9/32",))}
    assert balancers_of(balancers_document(balancers)) == balancers
