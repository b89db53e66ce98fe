"""What EC2 itself keeps from being terminated: instances with termination protection or stop protection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.facts import Facts
from troop.chaos.guards import Guard, Target, judge

ATTRIBUTES = {"disableApiTermination": "DisableApiTermination", "disableApiStop": "DisableApiStop"}
"""By the name that is asked for, the one in the answer. Either makes EC2 refuse to terminate."""

MOST_TRIES = 8
"""Instances of a unit that are asked about: two calls each, as EC2 tells neither attribute where it lists instances."""


CALLS_OF_A_TICK = 400
"""Where hundreds of units are due whose instances EC2 protects, Decide must end in time all the same. For the same
reason nothing more is asked once EC2 has not answered, or has been asked too often: each further call would take its
retries' time.
"""

_UNKNOWN_HERE = frozenset({"UnsupportedOperation", "InvalidParameterValue"})
"""What EC2 says in a partition that does not know stop protection (yet): then no instance has it."""

_TOO_OFTEN = frozenset({"RequestLimitExceeded", "Throttling", "ThrottlingException"})


class UnknownProtectionError(Exception):
    """Enough has been asked."""


@dataclass
class Asking:
    """EC2's client, for ``left`` calls."""

    ec2: Any
    left: int = CALLS_OF_A_TICK

    def describe_instance_attribute(self, **request: str) -> Any:
        """Raises:
        NotAskedError: no call is left.
        ClientError, BotoCoreError: EC2 has refused, or not answered.
        """
        if self.left <= 0:
            raise UnknownProtectionError
        self.left -= 1
        try:
            return self.ec2.describe_instance_attribute(**request)
        except BotoCoreError:
            self.left = 0
            raise
        except ClientError as error:
            if error.response["Error"]["Code"] in _TOO_OFTEN:
                self.left = 0
            raise


def shielded(ec2: Any, instance_id: str) -> bool:
    """Whether EC2's API refuses to terminate the instance; True, too, of one that EC2 no longer knows.

    Auto Scaling terminates such an instance all the same. But whoever protected it wants it to live, so both methods
    spare it.

    Raises:
        ClientError: it cannot be told, so that the instance must not be terminated.
    """
    return any(_has(ec2, instance_id, attribute, field) for attribute, field in ATTRIBUTES.items())


def _has(ec2: Any, instance_id: str, attribute: str, field: str) -> bool:
    try:
        answer = ec2.describe_instance_attribute(InstanceId=instance_id, Attribute=attribute)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "InvalidInstanceID.NotFound":
            return True
        if attribute == "disableApiStop" and code in _UNKNOWN_HERE:
            return False
        raise
    return bool(answer.get(field, {}).get("Value", False))


def spare_shielded(ec2: Any, facts: Facts, guards: Sequence[Guard]) -> Facts:
    """The facts with shielded instances among the protected ones, as far as it takes for :func:`judge` to choose one
    that is not. Of a unit with many, the rest is taken to be shielded, too: what nobody has asked about is left alone.

    Raises:
        ClientError: it cannot be told of an instance.
    """
    for _ in range(MOST_TRIES):
        verdict = judge(facts, guards)
        if not isinstance(verdict, Target) or not shielded(ec2, verdict.instance.instance_id):
            return facts
        facts = _protecting(facts, {verdict.instance.instance_id})
    return _protecting(facts, {i.instance_id for group in facts.groups for i in group.instances})


def _protecting(facts: Facts, instances: set[str]) -> Facts:
    return replace(facts, protected_instances=facts.protected_instances | instances)
