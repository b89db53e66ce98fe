"""Ensures the service-linked roles with which Auto Scaling and EC2 Spot launch; a new account does not have them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.fleets.fleet_requests import LaunchImpossibleError
from troop.shared.service_roles import AUTO_SCALING, SPOT, ServiceRole

DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
LOOKS = 10
PAUSE = 2.0
SPREADING = 10.0
"""Seconds until other services usually know a new role. Auto Scaling repeats launches that fail for it even later: see
:mod:`troop.bench.fleets.refusals`.
"""


@dataclass(frozen=True)
class ServiceRoles:
    """Checks for the roles, and creates missing ones."""

    iam: Any
    sleep: Callable[[float], None] = time.sleep

    def ensure(self, *, spot: bool) -> None:
        """Creates the roles that the account lacks, and waits for them for half a minute at most.

        Args:
            spot: whether Spot's role is needed, too.

        Raises:
            LaunchImpossibleError: a role is missing and may not be created.
        """
        needed = (AUTO_SCALING, SPOT) if spot else (AUTO_SCALING,)
        created = [role for role in needed if self._created(role)]
        for role in created:
            for _ in range(LOOKS):
                if self._exists(role):
                    break
                self.sleep(PAUSE)
        if created:
            self.sleep(SPREADING)

    def _created(self, role: ServiceRole) -> bool:
        """Checks for a role and creates it if missing. Returns whether it was missing."""
        if self._exists(role):
            return False
        try:
            self.iam.create_service_linked_role(AWSServiceName=role.service)
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
            if code in DENIED:
                raise LaunchImpossibleError(
                    f"this account has no role {role.name} yet, and Troop may not create it: ask an administrator to "
                    f"run {role.command} ({message})"
                ) from None
            if not (code in ("InvalidInput", "InvalidInputException") and "has been taken" in message):
                raise
        return True  # also if another cell was faster

    def _exists(self, role: ServiceRole) -> bool:
        try:
            self.iam.get_role(RoleName=role.name)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in ("NoSuchEntity", "NoSuchEntityException"):
                return False
            if code not in DENIED:
                raise  # a policy denies the check: Auto Scaling then creates the role itself
        return True
