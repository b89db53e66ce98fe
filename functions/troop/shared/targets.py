"""Parses targets: what nodes can reach besides S3 and each other, and through which TCP ports.

A target is a load balancer, by its name; IPv4 addresses; or a security group, by its id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError

from troop.shared.values import BadValue

LOAD_BALANCER = r"(?!internal-)[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
"""The name of an Application or Network Load Balancer, as a regular expression of a whole text."""
SECURITY_GROUP = r"sg-[0-9a-f]{8}(?:[0-9a-f]{9})?"
"""The id of a security group, likewise."""

ADDRESSES = "IPv4 addresses: one, such as 10.20.0.7, or a network without host bits, such as 10.20.0.0/16"
PORTS = "a port from 1 to 65535, or a range such as 8000-8100"

_NUMBER = r"[1-9][0-9]{0,4}"
_PORTS = re.compile(rf"({_NUMBER})(?:-({_NUMBER}))?", re.ASCII)
_LAST = 65535
_BALANCER, _GROUP = re.compile(LOAD_BALANCER, re.ASCII), re.compile(SECURITY_GROUP, re.ASCII)
_SHORTEST_ADDRESS = re.compile(r"[0-9.]+(/[0-9]{1,2})?", re.ASCII)


@dataclass(frozen=True)
class Ports:
    """A range of TCP ports, both ends included."""

    first: int
    last: int

    def covers(self, other: Ports) -> bool:
        return self.first <= other.first and other.last <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class AllowedTarget:
    """A target that a deployment allows, with its ports. Exactly one of the others is set.

    Attributes:
        load_balancer: the load balancer's name.
        addresses: an IPv4 network.
        security_group: the security group's id.
    """

    ports: Ports
    load_balancer: str | None = None
    addresses: IPv4Network | None = None
    security_group: str | None = None


def parse_ports(text: str) -> Ports:
    """Parses ``443`` or ``8000-8100``.

    Raises:
        BadValue: the text is neither.
    """
    match = _PORTS.fullmatch(text)
    if match is None:
        raise BadValue(PORTS)
    first = int(match[1])
    last = int(match[2] or first)
    if not first <= last <= _LAST:
        raise BadValue(PORTS)
    return Ports(first, last)


def parse_addresses(text: str) -> IPv4Network:
    """Parses one IPv4 address or a network.

    Raises:
        BadValue: the text is neither, or the network has host bits.
    """
    try:
        if _SHORTEST_ADDRESS.fullmatch(text):
            return IPv4Network(text)
    except (AddressValueError, NetmaskValueError, ValueError):
        pass
    raise BadValue(ADDRESSES)


def parse_allowed(text: str) -> AllowedTarget:
    """Parses ``TARGET:PORTS``, an entry of the setting.

    Raises:
        BadValue: the text is no such entry; its message is about the entry alone.
    """
    target, _, ports = text.rpartition(":")
    parsed = parse_ports(ports)
    if _GROUP.fullmatch(target):
        return AllowedTarget(parsed, security_group=target)
    if _SHORTEST_ADDRESS.fullmatch(target):
        return AllowedTarget(parsed, addresses=parse_addresses(target))
    if _BALANCER.fullmatch(target):
        return AllowedTarget(parsed, load_balancer=target)
    raise BadValue("TARGET:PORTS")
