"""Finds instances that EC2 protects: those with termination protection or stop protection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.facts import Facts
from troop.chaos.guards import Guard, Target, judge
from troop.shared.aws.throttling import is_throttled

ATTRIBUTES = {"disableApiTermination": "DisableApiTermination", "disableApiStop": "DisableApiStop"}
"""The attribute in the request -> the one in the response. With either, EC2 refuses to terminate."""

MOST_TRIES = 8
"""The most instances of a unit that are checked, by two calls each: EC2's lists of instances have neither attribute."""


CALLS_OF_A_TICK = 400
"""The most calls of a tick, so that Decide ends in time even with hundreds of due units and protected instances. For
the same reason there are no more calls after EC2 has throttled or not answered: each would take its retries' time.
"""

_UNKNOWN_HERE = frozenset({"UnsupportedOperation", "InvalidParameterValue"})
"""EC2's codes in a partition without stop protection, where no instance has it."""


class UnknownProtectionError(Exception):
    """The calls of the tick are used up."""


@dataclass
class LimitedEc2:
    """Limits the calls of EC2's client: ``left`` more are possible."""

    ec2: Any
    left: int = CALLS_OF_A_TICK

    def describe_instance_attribute(self, **request: str) -> Any:
        """Calls EC2 while calls are left.

        Raises:
            UnknownProtectionError: no call is left.
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
            if is_throttled(error):
                self.left = 0
            raise


def is_protected(ec2: Any, instance_id: str) -> bool:
    """Checks whether EC2's API refuses to terminate the instance; also True for one that EC2 no longer knows.

    Auto Scaling would terminate such an instance. But its owner wants it to live, so every fault spares it.

    Raises:
        ClientError: the attributes cannot be read, so the instance must not be terminated.
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


def without_protected(ec2: Any, facts: Facts, guards: Sequence[Guard]) -> Facts:
    """Adds instances with EC2's protection to the protected ones, until :func:`judge` selects one without it. After
    MOST_TRIES all other instances of the unit also count as protected.

    Raises:
        ClientError: an instance's attributes cannot be read.
    """
    for _ in range(MOST_TRIES):
        verdict = judge(facts, guards)
        if not isinstance(verdict, Target) or not is_protected(ec2, verdict.instance.instance_id):
            return facts
        facts = _with_protected(facts, {verdict.instance.instance_id})
    return _with_protected(facts, {i.instance_id for group in facts.groups for i in group.instances})


def _with_protected(facts: Facts, instances: set[str]) -> Facts:
    return replace(facts, protected_instances=facts.protected_instances | instances)
