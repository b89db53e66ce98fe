"""Lists what the security groups of an instance let it reach.

Differences from EC2: a rule for a network larger than ``MOST_ADDRESSES`` opens nothing, nor do those for IPv6. Of a
rule for another group, the instance reaches those that are members at its own start and have no network of their own.
The metadata service has a port of this machine instead of 169.254.169.254. The endpoint of local AWS is one
address for all services, so only IAM keeps an instance from those that are not S3. Of SQS, :mod:`.endpoints` decides.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .network import Door

MOST_ADDRESSES, MOST_PORTS = 16, 64
"""The limits of a rule: each of its addresses and ports becomes a door."""
_ANYWHERE, _ALL = "0.0.0.0/0", "-1"
_DNS, _HTTPS = 53, 443


@dataclass(frozen=True)
class Reach:
    """The addresses that an instance reaches.

    Attributes:
        group: the id of the security group whose members it reaches; empty for none.
        doors: other addresses.
    """

    group: str
    doors: tuple[Door, ...]


def is_closed(instance: Any) -> bool:
    """Checks whether security groups limit what an instance of moto reaches."""
    return bool(instance.security_groups) and not any(
        rule.ip_protocol == _ALL and rule.ip_range.get("CidrIp") == _ANYWHERE for rule in _rules(instance)
    )


def reach_of(instance: Any, others: Sequence[Any], environment: Mapping[str, str]) -> Reach:
    """Returns the reach of a closed instance.

    Args:
        others: all instances of the account.
        environment: of its processes; it reaches all URLs in it, and name servers.
    """
    own = [group.id for group in instance.security_groups]
    within = [rule.group_id for rule in _rules(instance) if rule.ip_protocol == _ALL and _group(rule) == rule.group_id]
    doors = [*_endpoints(environment), *name_servers()]
    for rule in _rules(instance):
        if rule.ip_protocol == "tcp" and rule.to_port - rule.from_port < MOST_PORTS:
            ports = range(rule.from_port, rule.to_port + 1)
            hosts = _members(others, _group(rule)) if _group(rule) not in ("", *own) else _addresses(rule)
            doors += [("tcp", host, port) for host in hosts for port in ports]
    return Reach(within[0] if within else "", tuple(dict.fromkeys(doors)))


def reaches(instance: Any, subnet: str, groups: Collection[Any], address: str, port: int = _HTTPS) -> bool:
    """Checks whether security groups let an instance connect to a network interface of its network.

    Args:
        subnet: the network of the instance's subnet. An instance has an address of this machine, which is not in it.
        groups: the security groups of the interface.
        address: that of the interface.
    """
    own, theirs = (frozenset(group.id for group in some) for some in (instance.security_groups, groups))
    inbound = (rule for group in groups for rule in group.ingress_rules)
    return any(_allows(rule, port, theirs, address) for rule in _rules(instance)) and any(
        _allows(rule, port, own, subnet) for rule in inbound
    )


def _allows(rule: Any, port: int, groups: frozenset[str], network: str) -> bool:
    """Checks whether a rule allows TCP connections with members of groups, or with a network."""
    if rule.ip_protocol != _ALL and (rule.ip_protocol != "tcp" or not rule.from_port <= port <= rule.to_port):
        return False
    other = ipaddress.ip_network(rule.ip_range.get("CidrIp") or "255.255.255.255/32")
    return _group(rule) in groups or ipaddress.ip_network(network).subnet_of(other)  # type: ignore[arg-type]


def _rules(instance: Any) -> Iterator[Any]:
    for group in instance.security_groups:
        yield from group.egress_rules


def _group(rule: Any) -> str:
    return str(rule.source_group.get("GroupId") or "")


def _members(others: Sequence[Any], group: str) -> list[str]:
    return [str(one.private_ip) for one in others if group in [its.id for its in one.security_groups]]


def _addresses(rule: Any) -> list[str]:
    network = rule.ip_range.get("CidrIp")
    if not network or ipaddress.ip_network(network).num_addresses > MOST_ADDRESSES:
        return []
    return [str(one) for one in ipaddress.ip_network(network)]


def _endpoints(environment: Mapping[str, str]) -> Iterator[Door]:
    for value in environment.values():
        address = urlsplit(value) if value.startswith(("http://", "https://")) else None
        if address and address.hostname and address.port:
            yield "tcp", address.hostname, address.port


def name_servers(file: Path = Path("/etc/resolv.conf")) -> Iterator[Door]:
    """Yields the name servers of the machine, as those of a VPC answer every instance."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for words in map(str.split, lines):
        if words[:1] == ["nameserver"] and "." in words[-1]:
            yield "udp", words[1], _DNS
            yield "tcp", words[1], _DNS
