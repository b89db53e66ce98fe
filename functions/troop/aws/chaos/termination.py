"""Terminates an instance, by one of two methods."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from troop.aws.chaos.groups import GONE_STATES, LEAVING, instance_gone, lifecycle
from troop.chaos.groups import IN_SERVICE

PROTECTED = frozenset({"OperationNotPermitted", "UnsupportedOperation"})
"""EC2's codes for an instance that its owner protects, or that a service operates."""

FORBIDDEN = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
"""The codes of EC2 and Auto Scaling for refusals by IAM: the role, a boundary or the organisation."""


BUSY = frozenset({"ScalingActivityInProgress", "ResourceContention"})
"""Auto Scaling's codes during another change of the group, which ends at an unknown time."""


_PARAMETER = re.compile(r"skip[\s_-]*os[\s_-]*shutdown", re.IGNORECASE)

_REJECTIONS = frozenset(
    {
        "InvalidParameter",
        "InvalidParameterCombination",
        "InvalidParameterValue",
        "InvalidRequest",
        "Unsupported",
        "UnsupportedOperation",
    }
)
"""EC2's codes that reject a parameter if the message names it. ``UnsupportedOperation`` also has another meaning: see
:data:`PROTECTED`.
"""


class SkipRejected(Exception):
    """EC2, or the SDK, does not accept ``SkipOsShutdown`` here. Nothing has been terminated."""


class TerminationRefused(Exception):
    """AWS will not terminate the instance, with or without retries. The text is from AWS.

    Attributes:
        forbidden: IAM refuses; it is not about the instance.
        repeated: botocore has sent the request more than once, and the first response is not known.
    """

    def __init__(self, error: ClientError) -> None:
        self.forbidden = error.response["Error"]["Code"] in FORBIDDEN
        self.repeated = _repeated(error.response)
        super().__init__(str(error))


class Answer(StrEnum):
    """The result of a request: AWS terminates the instance because of it; the instance was already being terminated; or
    it lives, but no longer in service of its group.
    """

    REQUESTED = "asked"
    GONE = "gone"
    LEFT = "left"


@dataclass(frozen=True)
class Terminator:
    """Terminates with clients whose calls have a time limit.

    ``crash`` ends the instance through EC2 without a shutdown of its operating system. ``drain`` uses the group's
    lifecycle hooks and its load balancers; it does not change the desired capacity, so the group replaces the instance.
    """

    ec2: Any
    autoscaling: Any

    def check(self, method: str, instance_id: str) -> Answer | None:
        """Returns the result without a request, if the instance's state already decides it; otherwise None.

        EC2's response contains the previous state. Auto Scaling's does not, and it accepts instances that are already
        being terminated.
        """
        if method == "crash":
            return None
        state = lifecycle(self.autoscaling, instance_id)
        if state == IN_SERVICE:
            return None
        if (state or "").startswith(LEAVING):
            return Answer.GONE
        return Answer.GONE if instance_gone(self.ec2, self.autoscaling, instance_id) else Answer.LEFT

    def terminate(self, method: str, instance_id: str, *, os_shutdown: bool = False) -> Answer:
        """Sends AWS the request to terminate an instance.

        Args:
            method: ``crash`` or ``drain``.
            instance_id: of the instance.
            os_shutdown: let EC2 shut the operating system down first; ``drain`` always does.

        Raises:
            SkipRejected: a ``crash`` without a shutdown is not possible here; one with ``os_shutdown`` is.
            TerminationRefused: AWS refuses permanently.
            ClientError: the request failed for now.
            BotoCoreError: AWS did not answer in time.
        """
        try:
            return self._crash(instance_id, os_shutdown) if method == "crash" else self._drain(instance_id)
        except ClientError as error:
            if error.response["Error"]["Code"] in PROTECTED | FORBIDDEN:
                raise TerminationRefused(error) from error
            raise

    def _crash(self, instance_id: str, os_shutdown: bool) -> Answer:
        # Without the parameter EC2 stops the services of the instance in order, for up to minutes.
        skip = {} if os_shutdown else {"SkipOsShutdown": True}
        try:
            answer = self.ec2.terminate_instances(InstanceIds=[instance_id], **skip)
        except ParamValidationError as error:
            if skip and _PARAMETER.search(str(error)):
                raise SkipRejected(str(error)) from error
            raise
        except ClientError as error:
            if skip and _rejects_skip(error):
                raise SkipRejected(str(error)) from error
            if error.response["Error"]["Code"] == "InvalidInstanceID.NotFound":
                return _gone(error.response)
            raise
        before = answer["TerminatingInstances"][0]["PreviousState"]["Name"]
        return _gone(answer) if before in GONE_STATES else Answer.REQUESTED

    def _drain(self, instance_id: str) -> Answer:
        try:
            self.autoscaling.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=False
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError" and "not found" in str(error).lower():
                return _gone(error.response)
            raise
        return Answer.REQUESTED


def _rejects_skip(error: ClientError) -> bool:
    code = error.response["Error"]["Code"]
    # Of the call's parameters, only this one can be unknown.
    return code == "UnknownParameter" or (code in _REJECTIONS and _PARAMETER.search(str(error)) is not None)


def _gone(answer: Any) -> Answer:
    """Returns the result for an instance that is already gone. If botocore had to retry, the first request terminated
    it, and only its response was lost.
    """
    return Answer.REQUESTED if _repeated(answer) else Answer.GONE


def _repeated(answer: Any) -> bool:
    return bool(answer.get("ResponseMetadata", {}).get("RetryAttempts"))
