"""Who of a group's instances is healthy in what the group gets its traffic from: load balancers, new and old, and VPC
Lattice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.groups import Group

_FOR_ALL = frozenset(
    {
        *("AccessDenied", "AccessDeniedException", "ServiceUnavailable"),
        *("RequestLimitExceeded", "Throttling", "ThrottlingException"),
    }
)
"""Codes of errors that the next call would meet as well."""

_LATTICE = frozenset({"HEALTHY", "UNUSED", "UNAVAILABLE"})
"""Of a target group that no service uses nothing is routed; of one without health checks nothing is known to be ill."""


@dataclass(frozen=True)
class Balancers:
    """Asks them. ``client`` gives a service's client: only those are made that a group needs."""

    client: Callable[[str], Any]

    def healthy(self, group: Group) -> dict[str, frozenset[str]]:
        """Ids of the healthy instances by whom the group gets traffic from, see :attr:`Group.sources`; at least one
        call for each. One that was deleted has none.
        """
        return {
            **{arn: self._targets(arn) for arn in group.target_groups},
            **{name: self._registered(name) for name in group.load_balancers},
            **{arn: self._lattice_targets(arn) for arn in group.lattice_groups},
        }

    def _targets(self, arn: str) -> frozenset[str]:
        elbv2 = self.client("elbv2")
        try:
            described = elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
        except elbv2.exceptions.TargetGroupNotFoundException:
            return frozenset()
        return frozenset(d["Target"]["Id"] for d in described if _serves(d["TargetHealth"]))

    def _registered(self, name: str) -> frozenset[str]:
        elb = self.client("elb")
        try:
            states = elb.describe_instance_health(LoadBalancerName=name)["InstanceStates"]
        except elb.exceptions.AccessPointNotFoundException:
            return frozenset()
        return frozenset(s["InstanceId"] for s in states if s["State"] == "InService")

    def _lattice_targets(self, arn: str) -> frozenset[str]:
        lattice = self.client("vpc-lattice")
        try:
            pages = lattice.get_paginator("list_targets").paginate(targetGroupIdentifier=arn)
            return frozenset(t["id"] for page in pages for t in page["items"] if t["status"] in _LATTICE)
        except lattice.exceptions.ResourceNotFoundException:
            return frozenset()


@dataclass
class BalancersOfATick:
    """Asks them for many units, of which none may cost the others their tick: what cannot be told of one is told as
    such, and once a call has failed that would fail for all, none is made. Each could take its retries' time.
    """

    balancers: Balancers
    out: str = ""
    """Why nobody is asked any more."""

    def healthy(self, groups: Iterable[Group]) -> tuple[dict[str, frozenset[str]], str]:
        """As :meth:`Balancers.healthy` says of each group, and why it could not be told, "" when it could."""
        balanced = [group for group in groups if group.sources]
        if self.out and balanced:
            return {}, self.out
        try:
            return {source: ids for group in balanced for source, ids in self.balancers.healthy(group).items()}, ""
        except BotoCoreError as error:
            self.out = f"{error}"
            return {}, self.out
        except ClientError as error:
            if error.response["Error"]["Code"] in _FOR_ALL:
                self.out = f"{error}"
            return {}, f"{error}"


def _serves(health: dict[str, Any]) -> bool:
    # Of a target group that no listener uses, nothing is routed, so nothing can be unhealthy. Stopped instances are
    # "unused" too, with another reason.
    return health["State"] == "healthy" or (health["State"] == "unused" and health.get("Reason") == "Target.NotInUse")
