"""Defines ``drain``: Auto Scaling terminates the instance, with the group's lifecycle hooks and load balancers.

The desired capacity stays, so the group replaces the instance.
"""

from __future__ import annotations

from typing import Any

from troop.faults.fault import Answer, Failure, Fault, Instance, Meaning, Permission, Place

_ANSWERS = {Place.IN_SERVICE: None, Place.OUTSIDE: Answer.LEFT, Place.GONE: Answer.GONE}


def _strike(instance: Instance) -> Any:
    return instance.clients["autoscaling"].terminate_instance_in_auto_scaling_group(
        InstanceId=instance.instance_id, ShouldDecrementDesiredCapacity=False
    )


def _meaning(failure: Failure) -> Meaning | None:
    missing = failure.code == "ValidationError" and "not found" in failure.text.lower()
    return Meaning.GONE if missing else None


def _over(instance: Instance) -> Answer | None:
    # Auto Scaling's response has no previous state, and it accepts instances that are already being terminated.
    return _ANSWERS[instance.place()]


DRAIN = Fault(
    name="drain",
    summary="Auto Scaling terminates the instance, with lifecycle hooks and connection draining",
    services=("autoscaling", "ec2"),
    permissions=(
        Permission("autoscaling:TerminateInstanceInAutoScalingGroup", "autoScalingGroup:*:autoScalingGroupName/*"),
    ),
    os_shutdown=True,
    strike=_strike,
    meaning=_meaning,
    over=_over,
)
