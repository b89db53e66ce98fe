"""Lists the service-linked roles that AWS creates in an account because of a deployment. Pure.

A role that another deployment or person needed before stays, and is used. The names are the same in every partition.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceRole:
    """A service-linked role.

    Attributes:
        service: the principal that assumes it, which IAM needs to create it.
        name: as the service names it.
        at_launch: whether only the first launch of a benchmark or fleet needs it; otherwise the stack does.
    """

    service: str
    name: str
    at_launch: bool

    @property
    def command(self) -> str:
        """The command with which an administrator creates the role."""
        return f"aws iam create-service-linked-role --aws-service-name {self.service}"


API_GATEWAY = ServiceRole("ops.apigateway.amazonaws.com", "AWSServiceRoleForAPIGateway", at_launch=False)
"""The role that is created with the first stage that has active tracing."""

AUTO_SCALING = ServiceRole("autoscaling.amazonaws.com", "AWSServiceRoleForAutoScaling", at_launch=True)
SPOT = ServiceRole("spot.amazonaws.com", "AWSServiceRoleForEC2Spot", at_launch=True)

SERVICE_ROLES = (API_GATEWAY, AUTO_SCALING, SPOT)
"""All service-linked roles that Troop needs."""
