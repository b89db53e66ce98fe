"""Shows a target as `initial` until its instance serves, and longer if health checks shall take time.

moto shows every registered target as healthy at once, so no recovery would wait for target health.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.elbv2.models import FakeHealthStatus, FakeTargetGroup

from ._wrap import wrap


def apply(is_ready: Callable[[str], bool]) -> None:
    """Applies the patch. `is_ready`: whether an instance serves, and the health checks of targets have found it."""

    @wrap(FakeTargetGroup, "health_for")
    def health_for(original: Callable[..., Any], self: Any, target: dict[str, Any], ec2_backend: Any) -> Any:
        health = original(self, target, ec2_backend)
        if health.status != "healthy" or not target["Id"].startswith("i-") or is_ready(target["Id"]):
            return health
        return FakeHealthStatus(
            health.instance_id,
            health.port,
            health.health_check_port,
            "initial",
            "Elb.InitialHealthChecking",
            "Initial health checks in progress",
        )
