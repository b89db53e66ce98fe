"""Gives instances a reachable address.

moto assigns an address of the subnet, at which nothing listens. Here the private address is that of the instance's
process. So addresses from DescribeInstances can be connected to, as on AWS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.models.instances import Instance

from ._wrap import wrap


def apply(address_for: Callable[[Any], str]) -> None:
    @wrap(Instance, "prep_nics")
    def prep_nics(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        primary = self.nics[0]
        primary.private_ip_address = address_for(self)
        for entry in primary.private_ip_addresses:
            if entry.get("Primary"):
                entry["PrivateIpAddress"] = primary.private_ip_address
