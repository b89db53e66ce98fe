"""Checks a file's targets against the deployment's setting and its network, and derives the security groups' rules.

Only what a role's targets name is added to the rules of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Network
from typing import Any

from troop.bench.definition.definition import Benchmark, Target
from troop.bench.definition.limits import setting
from troop.bench.definition.problems import Place, Problem
from troop.shared.targets import AllowedTarget, Ports, parse_allowed, parse_ports

MOST_RULES = 60
"""Rules that a security group may have in one direction, unless AWS has raised the account's quota."""

FORMAT = "troop.targets/1"

_TCP = "tcp"


@dataclass(frozen=True)
class Balancer:
    """A load balancer.

    Attributes:
        host: its DNS name.
        vpc: id of its network.
        kind: ``application``, ``network`` or ``gateway``.
        scheme: ``internal`` or ``internet-facing``.
        security_groups: their ids; without any, ``addresses`` contains the addresses of its network interfaces.
    """

    host: str
    vpc: str
    kind: str = "application"
    scheme: str = "internal"
    security_groups: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Route:
    """An active route of a subnet.

    Attributes:
        to: its destination; None for a prefix list, whose addresses are not looked up.
        gateway: id of the gateway or the like that it leads to.
    """

    to: IPv4Network | None
    gateway: str


@dataclass(frozen=True)
class Surroundings:
    """What the targets of a run find.

    Attributes:
        vpc: id of the nodes' network.
        routes: of each of its subnets.
        balancers: by name; None for one that does not exist.
        security_groups: the network of each security group by its id; None for one that does not exist.
    """

    vpc: str
    routes: Mapping[str, Sequence[Route]] = field(default_factory=dict)
    balancers: Mapping[str, Balancer | None] = field(default_factory=dict)
    security_groups: Mapping[str, str | None] = field(default_factory=dict)


def forbidden_targets(benchmark: Benchmark, allowed: Sequence[str]) -> list[Problem]:
    """Lists the targets, and their ports, that the deployment does not allow.

    Args:
        allowed: entries of the setting.
    """
    entries = [parse_allowed(entry) for entry in allowed]
    return [
        Problem(
            place,
            f"is {subject} with the port{'s' if '-' in ports else ''} {ports}",
            "a target that the deployment allows: "
            + setting("allowed_targets", ", ".join(allowed) or "empty", ",".join([*allowed, f"{subject}:{ports}"])),
        )
        for target in benchmark.targets
        for place, subject, part in _parts(target)
        for ports in target.ports
        if not any(_covers(entry, part, parse_ports(ports)) for entry in entries)
    ]


def without_endpoint(vpc: str, subnets: Sequence[str]) -> list[Problem]:
    """Lists a problem if the credentials of nodes would be refused, because S3 does not see their network.

    Args:
        subnets: ids of the subnets whose traffic to S3 does not go through a gateway endpoint.
    """
    if not subnets:
        return []
    allowed = (
        f"in a network with a gateway endpoint of S3: associate one of {vpc} with the route tables of these subnets "
        "(`aws ec2 create-vpc-endpoint --vpc-id ... --service-name com.amazonaws.REGION.s3 --route-table-ids ...`). S3 "
        "accepts nodes only through such an endpoint"
    )
    return [Problem(("fleets",), f"have no way to S3 from {', '.join(sorted(subnets))}", allowed)]


def _parts(target: Target) -> Iterator[tuple[Place, str, str | IPv4Network]]:
    """Yields the place of each part of a target, its text, and what an entry of the setting must cover."""
    place: Place = ("targets", target.name)
    if target.load_balancer:
        yield (*place, "load_balancer"), target.load_balancer, target.load_balancer
    if target.security_group:
        yield (*place, "security_group"), target.security_group, target.security_group
    for n, addresses in enumerate(target.addresses):
        yield (*place, "addresses", n), addresses.removesuffix("/32"), IPv4Network(addresses)


def _covers(entry: AllowedTarget, part: str | IPv4Network, ports: Ports) -> bool:
    if not entry.ports.covers(ports):
        return False
    if isinstance(part, IPv4Network):
        return entry.addresses is not None and part.subnet_of(entry.addresses)
    return part in (entry.load_balancer, entry.security_group)


def unreachable_targets(benchmark: Benchmark, around: Surroundings) -> list[Problem]:
    """Lists the targets that nodes could not reach, and roles with too many of them."""
    problems = [problem for target in benchmark.targets for problem in _unreachable(target, around)]
    balancers = {name: one for name, one in around.balancers.items() if one is not None}
    if not problems:
        for fleet in benchmark.fleets:
            if (number := len(_rules(benchmark, fleet.role, balancers))) > MOST_RULES:
                allowed = f"fewer: a security group has at most {MOST_RULES}, one for each address or group and port"
                problems.append(Problem(("targets",), f"need {number} rules for {fleet.role}", allowed))
    return problems


def _unreachable(target: Target, around: Surroundings) -> Iterator[Problem]:
    for place, subject, part in _parts(target):
        if isinstance(part, IPv4Network):
            yield from _unroutable(place, subject, part, around.routes)
        elif target.security_group:
            yield from _elsewhere(place, subject, around.security_groups[part], around.vpc, "security group")
        else:
            yield from _unusable(place, subject, around.balancers[part], around.vpc)


def _unusable(place: Place, subject: str, balancer: Balancer | None, vpc: str) -> Iterator[Problem]:
    network = None if balancer is None else balancer.vpc
    yield from _elsewhere(place, subject, network, vpc, "Application or Network Load Balancer")
    if balancer is None or network != vpc:
        return
    if balancer.kind not in ("application", "network"):
        yield Problem(place, f"is {subject!r}, of the type {balancer.kind}", "an Application or Network Load Balancer")
    elif balancer.scheme != "internal":
        allowed = (
            "internal: its name means public addresses, which change. To go there through a NAT gateway, name the "
            "addresses 0.0.0.0/0, if the deployment allows them"
        )
        yield Problem(place, f"is {subject!r}, which is {balancer.scheme}", allowed)
    elif not balancer.security_groups and not balancer.addresses:
        yield Problem(place, f"is {subject!r}, which has no network interfaces yet", "one that is active")


def _elsewhere(place: Place, subject: str, network: str | None, vpc: str, kind: str) -> Iterator[Problem]:
    if network is None:
        allowed = f"the name of an {kind}" if kind[0] == "A" else f"the id of a {kind}"
        yield Problem(place, f"is {subject!r}: this account has no such {kind} here", f"{allowed} of this account")
    elif network != vpc:
        allowed = f"one in the nodes' network {vpc}: for another network, name addresses that it has a route to"
        yield Problem(place, f"is {subject!r}, in the network {network}", allowed)


def _unroutable(
    place: Place, subject: str, part: IPv4Network, routes: Mapping[str, Sequence[Route]]
) -> Iterator[Problem]:
    ways = {subnet: _way(part, its) for subnet, its in sorted(routes.items())}
    lacking = [subnet for subnet, way in ways.items() if way is None]
    if lacking:
        allowed = (
            f"addresses with a route from all subnets of the nodes: {', '.join(lacking)} "
            f"{'has' if len(lacking) == 1 else 'have'} none. Use a network with a route (troop:network), through a "
            "peering connection, a transit gateway or, for the internet, a NAT gateway"
        )
        yield Problem(place, f"is {subject}", allowed)
    direct = [subnet for subnet, way in ways.items() if way is not None and way.startswith("igw-")]
    if direct:
        allowed = "behind a NAT gateway or the like: nodes have no public address, so an internet gateway is no way out"
        yield Problem(place, f"is {subject}, and the route of {', '.join(direct)} leads to {ways[direct[0]]}", allowed)


def _way(part: IPv4Network, routes: Sequence[Route]) -> str | None:
    """Returns where the closest route to all of the addresses leads; None without such a route."""
    covering = [(route.to.prefixlen, route.gateway) for route in routes if route.to and part.subnet_of(route.to)]
    # An endpoint's route is for its own service. Others with a prefix list may be for anything, so they may be the way.
    lists = [route.gateway for route in routes if route.to is None and not route.gateway.startswith("vpce-")]
    return max(covering)[1] if covering else (lists[0] if lists else None)


_Rule = tuple[str, str, str]
"""The ports, ``CidrIp`` or ``GroupId``, and its value."""


def _rules(benchmark: Benchmark, role: str, balancers: Mapping[str, Balancer]) -> list[_Rule]:
    """Returns the rules of a role, each once."""
    rules: dict[_Rule, None] = {}
    for target in benchmark.targets:
        if role in target.roles:
            for port in target.ports:
                rules |= dict.fromkeys((port, *one) for one in _destinations(target, balancers))
    return list(rules)


def _destinations(target: Target, balancers: Mapping[str, Balancer]) -> list[tuple[str, str]]:
    if target.load_balancer is not None:
        balancer = balancers[target.load_balancer]
        groups, addresses = balancer.security_groups, () if balancer.security_groups else balancer.addresses
    else:
        groups, addresses = (target.security_group,) if target.security_group else (), target.addresses
    return [*(("GroupId", one) for one in groups), *(("CidrIp", one) for one in addresses)]


def egress_to_targets(benchmark: Benchmark, role: str, balancers: Mapping[str, Balancer]) -> list[dict[str, Any]]:
    """Returns the egress rules for a role's targets as EC2's permissions, one for each range of ports; empty for a role
    without targets.

    Args:
        balancers: those that the targets name.
    """
    by_ports: dict[str, list[_Rule]] = {}
    for rule in _rules(benchmark, role, balancers):
        by_ports.setdefault(rule[0], []).append(rule)
    return [_permission(parse_ports(ports), rules) for ports, rules in by_ports.items()]


def _permission(ports: Ports, rules: Sequence[_Rule]) -> dict[str, Any]:
    ranges = [{"CidrIp": value} for _, key, value in rules if key == "CidrIp"]
    groups = [{"GroupId": value} for _, key, value in rules if key == "GroupId"]
    return {
        "IpProtocol": _TCP,
        "FromPort": ports.first,
        "ToPort": ports.last,
        **({"IpRanges": ranges} if ranges else {}),
        **({"UserIdGroupPairs": groups} if groups else {}),
    }


def targets_document(benchmark: Benchmark, role: str, balancers: Mapping[str, Balancer]) -> dict[str, Any]:
    """Returns what scripts of a role learn of its targets.

    Returns:
        ``{"format", "targets": {NAME: {"host", "port", "ports", "addresses"}}}``. ``host`` is the DNS name of a load
        balancer or a single address, otherwise None; ``port`` is the first port.
    """
    targets = {}
    for target in benchmark.targets:
        if role in target.roles:
            only = target.addresses[0] if len(target.addresses) == 1 else ""
            host = only.removesuffix("/32") if only.endswith("/32") else None
            if target.load_balancer is not None:
                host = balancers[target.load_balancer].host
            targets[target.name] = {
                "host": host,
                "port": parse_ports(target.ports[0]).first,
                "ports": list(target.ports),
                "addresses": list(target.addresses),
            }
    return {"format": FORMAT, "targets": targets}


def balancers_document(balancers: Mapping[str, Balancer]) -> dict[str, Any]:
    """Converts to JSON-like values; the reverse of :func:`balancers_of`."""
    return {name: asdict(one) for name, one in balancers.items()}


def balancers_of(document: Mapping[str, Any]) -> dict[str, Balancer]:
    """Reads a document that :func:`balancers_document` has built."""
    lists = ("security_groups", "addresses")
    return {name: Balancer(**{**one, **{key: tuple(one[key]) for key in lists}}) for name, one in document.items()}
