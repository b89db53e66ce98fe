"""Decides through which interface endpoints of a network the request of an instance can go to SQS.

Requests of instances reach SQS in no other way: a network of Troop has no other, and a given one need not have it.
Those of people and functions come from elsewhere, and need no endpoint. All endpoints and SQS itself are one address
here, so nothing shows which endpoint a request was sent to: it goes through the first that lets it pass.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from moto.ec2.models.vpcs import VPCEndPoint

from .config import REGION
from .decisions import log
from .reach import reaches
from .subjects import backend, ec2_arn

SERVICE = "sqs"
"""The service that instances reach only by an interface endpoint, as signatures name it."""
SERVICE_NAME = f"com.amazonaws.{REGION}.{SERVICE}"
INTERFACE, AVAILABLE = "Interface", "available"
UNREACHABLE = "Unreachable"
"""The decision on a request that finds no endpoint."""


@dataclass(frozen=True)
class Way:
    """An endpoint that a request can go through.

    Attributes:
        policy: the endpoint's policy, a JSON document.
        address: that of the instance in its network.
    """

    endpoint: str
    vpc: str
    policy: str
    address: str

    @property
    def arn(self) -> str:
        return ec2_arn("vpc-endpoint", self.endpoint)

    @property
    def keys(self) -> dict[str, str]:
        """Returns the condition keys of the network, with names in lower case."""
        return {"aws:sourcevpc": self.vpc, "aws:sourcevpce": self.endpoint, "aws:vpcsourceip": self.address}


open_ways: ContextVar[tuple[Way, ...]] = ContextVar("open_ways", default=())
"""The endpoints that the current request can go through; none for a request that needs none."""
taken_way: ContextVar[Way | None] = ContextVar("taken_way", default=None)
"""The one that it goes through."""


class Endpoints:
    """The interface endpoints of SQS. `lock` serialises moto."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock

    async def admit(self, caller: str, instance_id: str, action: str) -> bool:
        """Checks whether a request of an instance reaches SQS, and notes the ways that it can go."""
        ways = await asyncio.to_thread(self._ways, instance_id)
        open_ways.set(ways)
        taken_way.set(ways[0] if ways else None)
        if not ways:
            where = f"no available interface endpoint of {SERVICE_NAME} that {instance_id} may reach"
            log.record(caller, action, where, UNREACHABLE, "endpoint")
        return bool(ways)

    def _ways(self, instance_id: str) -> tuple[Way, ...]:
        with self._lock:
            instance: Any = backend("ec2").get_instance_by_id(instance_id)
            if instance is None:
                return ()
            return tuple(
                Way(one.id, one.vpc_id, one.policy_document, str(instance.private_ip))
                for one in interface_endpoints(instance.vpc_id)
                if one.state == AVAILABLE and _reaches(instance, one)
            )


def interface_endpoints(vpc: str) -> list[VPCEndPoint]:
    """Returns the interface endpoints of a network, the oldest first."""
    every = backend("ec2").vpc_end_points.values()
    return [one for one in every if one.vpc_endpoint_type == INTERFACE and one.vpc_id == vpc]


def _reaches(instance: Any, endpoint: VPCEndPoint) -> bool:
    interfaces: Sequence[Any] = [
        one for one in map(backend("ec2").enis.get, endpoint.network_interface_ids) if one is not None
    ]
    subnet = backend("ec2").get_subnet(instance.subnet_id).cidr_block
    return any(reaches(instance, subnet, one.group_set, str(one.private_ip_address)) for one in interfaces)
