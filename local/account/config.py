"""What the launcher tells the account process, as one JSON document in the environment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path

VARIABLE = "TROOP_LOCAL_ACCOUNT"
ACCOUNT_ID = "000000000000"
REGION = "us-east-1"


@dataclass(frozen=True)
class Config:
    """`run`: a private, existing directory for everything the account writes.
    `processes`: whether instances are processes (switch off for fleets of hundreds that only have to exist).
    `notice_seconds`: how long an Auto Scaling group takes to notice that an instance is gone, and how long an instance
    is shutting down. `aws`: the AWS CLI that instances find in their PATH.
    `wait_scale`: what the Wait states of state machines are multiplied by; instances boot in seconds here, not minutes.
    `secret`: what CloudFormation generates where a template wants a secret; a random one if empty.
    """

    run: Path
    aws: Path
    processes: bool = True
    notice_seconds: float = 1.5
    wait_scale: float = 0.05
    secret: str = ""

    @classmethod
    def from_environment(cls) -> Config:
        """Reads the variable TROOP_LOCAL_ACCOUNT; KeyError without it, ValueError for an unknown setting."""
        settings = json.loads(os.environ[VARIABLE])
        unknown = settings.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"{VARIABLE}: unknown settings {sorted(unknown)}")
        return cls(**{**settings, "run": Path(settings["run"]), "aws": Path(settings["aws"])})
