"""The roles with which Auto Scaling and EC2 Spot launch by themselves: an account that never used them has none yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.fleet_requests import LaunchImpossibleError
from troop.bench.names import AUTO_SCALING_ROLE, SPOT_ROLE

DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
LOOKS = 10
PAUSE = 2.0
SPREADING = 10.0
"""Seconds from a role being seen until other services know it, mostly. Auto Scaling repeats launches that fail for it
even after that: see :mod:`troop.bench.refusals`.
"""


@dataclass(frozen=True)
class ServiceRoles:
    """Looks for the roles, and creates what is missing."""

    iam: Any
    sleep: Callable[[float], None] = time.sleep

    def ensure(self, *, spot: bool) -> None:
        """Creates the roles that the account lacks, and waits for them for half a minute at most.

        Args:
            spot: Spot's is needed, too.

        Raises:
            LaunchImpossibleError: one is missing, and may not be created.
        """
        created = [
            name
            for service, name in (AUTO_SCALING_ROLE, *([SPOT_ROLE] if spot else []))
            if self._created(service, name)
        ]
        for name in created:
            for _ in range(LOOKS):
                if self._exists(name):
                    break
                self.sleep(PAUSE)
        if created:
            self.sleep(SPREADING)

    def _created(self, service: str, name: str) -> bool:
        """Whether the role was missing, and is on its way."""
        if self._exists(name):
            return False
        try:
            self.iam.create_service_linked_role(AWSServiceName=service)
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
            if code in DENIED:
                raise LaunchImpossibleError(
                    f"this account has no role {name} yet, and Troop may not create it: have an administrator run "
                    f"aws iam create-service-linked-role --aws-service-name {service} ({message})"
                ) from None
            if not (code in ("InvalidInput", "InvalidInputException") and "has been taken" in message):
                raise
        return True  # also where another cell was faster

    def _exists(self, name: str) -> bool:
        try:
            self.iam.get_role(RoleName=name)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in ("NoSuchEntity", "NoSuchEntityException"):
                return False
            if code not in DENIED:
                raise  # somebody else's policy keeps it from looking: Auto Scaling creates the role itself then
        return True
