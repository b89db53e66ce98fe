"""Reads which instances are healthy in a group's traffic sources: load balancers, Classic ones too, and VPC Lattice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.groups import Group
from troop.shared.aws.throttling import is_throttled

_FOR_ALL = frozenset({"AccessDenied", "AccessDeniedException", "ServiceUnavailable"})
"""Codes of errors that the next call would get too, as it would if AWS throttles."""

_LATTICE = frozenset({"HEALTHY", "UNUSED", "UNAVAILABLE"})
"""Statuses that count as healthy. A target group without a service gets no traffic; without health checks it has no
unhealthy targets.
"""


@dataclass(frozen=True)
class Balancers:
    """Reads the traffic sources. ``client`` returns a service's client: only those that a group needs are created."""

    client: Callable[[str], Any]

    def healthy(self, group: Group) -> dict[str, frozenset[str]]:
        """Returns the ids of the healthy instances by traffic source, see :attr:`Group.sources`; at least one call for
        each. A deleted source has none.
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
    """Reads the traffic sources of many units, so that one unit cannot fail the tick. An error is part of the result.
    After an error that affects all units there are no more calls, because each could take its retries' time.
    """

    balancers: Balancers
    out: str = ""
    """Why there are no more calls."""

    def healthy(self, groups: Iterable[Group]) -> tuple[dict[str, frozenset[str]], str]:
        """Returns the same as :meth:`Balancers.healthy` for all groups, and why it could not be read, "" if it was."""
        balanced = [group for group in groups if group.sources]
        if self.out and balanced:
            return {}, self.out
        try:
            return {source: ids for group in balanced for source, ids in self.balancers.healthy(group).items()}, ""
        except BotoCoreError as error:
            self.out = f"{error}"
            return {}, self.out
        except ClientError as error:
            if error.response["Error"]["Code"] in _FOR_ALL or is_throttled(error):
                self.out = f"{error}"
            return {}, f"{error}"


def _serves(health: dict[str, Any]) -> bool:
    # A target group without a listener gets no traffic, so no target is unhealthy. Stopped instances are "unused" too,
    # with another reason.
    return health["State"] == "healthy" or (health["State"] == "unused" and health.get("Reason") == "Target.NotInUse")
