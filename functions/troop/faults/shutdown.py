"""Defines ``shutdown``: EC2 shuts the operating system down in order, then ends the instance."""

from __future__ import annotations

from typing import Any

from troop.faults.fault import GONE_STATES, Failure, Fault, Instance, Meaning, Permission

PERMISSIONS = (Permission("ec2:TerminateInstances", "instance/*", grouped=True),)


def terminate(instance: Instance, **parameters: bool) -> Any:
    """Sends EC2 the request to terminate the instance; its group then replaces it."""
    return instance.clients["ec2"].terminate_instances(InstanceIds=[instance.instance_id], **parameters)


def meaning(failure: Failure) -> Meaning | None:
    """Returns what a failure of EC2's call means."""
    return Meaning.GONE if failure.code == "InvalidInstanceID.NotFound" else None


def was_over(response: Any) -> bool:
    """Checks the previous state, which EC2's response contains."""
    return response["TerminatingInstances"][0]["PreviousState"]["Name"] in GONE_STATES


SHUTDOWN = Fault(
    name="shutdown",
    summary="EC2 shuts down the operating system, then ends the instance, without lifecycle hooks",
    services=("ec2",),
    permissions=PERMISSIONS,
    os_shutdown=True,
    strike=terminate,
    meaning=meaning,
    was_over=was_over,
    refused_if_protected=True,
)
