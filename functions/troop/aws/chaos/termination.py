"""Terminates an instance, in one of two ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from troop.aws.chaos.groups import GONE_STATES, LEAVING, instance_gone, lifecycle
from troop.chaos.groups import IN_SERVICE

PROTECTED = frozenset({"OperationNotPermitted", "UnsupportedOperation"})
"""EC2's codes for an instance that is not to be terminated: by its owner's protection, or because a service runs it."""

FORBIDDEN = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
"""What EC2 and Auto Scaling answer to whom IAM does not let: the role, a boundary or the organisation."""


BUSY = frozenset({"ScalingActivityInProgress", "ResourceContention"})
"""What Auto Scaling answers while something else is done to the group: it passes, but nobody knows when."""


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
"""EC2's codes that reject a parameter if the message names it. ``UnsupportedOperation`` has a second meaning: see
:data:`PROTECTED`.
"""


class SkipRejected(Exception):
    """EC2, or the SDK, does not take ``SkipOsShutdown`` here. Nothing has been terminated."""


class TerminationRefused(Exception):
    """AWS will not terminate the instance, however often it is asked. The text is AWS's.

    Attributes:
        forbidden: IAM is against it, not the instance.
        repeated: botocore has asked more than once, and of the first time no answer is known.
    """

    def __init__(self, error: ClientError) -> None:
        self.forbidden = error.response["Error"]["Code"] in FORBIDDEN
        self.repeated = _repeated(error.response)
        super().__init__(str(error))


class Answer(StrEnum):
    """What came of asking: AWS terminates the instance because we asked; it was on its way out before; it lives, but
    no longer in service of its group.
    """

    REQUESTED = "asked"
    GONE = "gone"
    LEFT = "left"


@dataclass(frozen=True)
class Terminator:
    """Terminates with clients whose calls end in bounded time.

    ``crash`` ends the instance through EC2 without a shutdown of its operating system. ``drain`` goes through the
    group's lifecycle hooks and its load balancers; it keeps the desired capacity, so that the group replaces the
    instance.
    """

    ec2: Any
    autoscaling: Any

    def check(self, method: str, instance_id: str) -> Answer | None:
        """What already speaks against asking; None when nothing does.

        EC2 tells with its answer what the instance was before; Auto Scaling does not, and also takes instances that
        are on their way out.
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
        """Asks AWS to terminate an instance.

        Args:
            method: ``crash`` or ``drain``.
            instance_id: of the instance.
            os_shutdown: let EC2 shut the operating system down first; ``drain`` always does.

        Raises:
            SkipRejected: a ``crash`` without a shutdown is not possible here; one with ``os_shutdown`` is.
            TerminationRefused: AWS will not, now or later.
            ClientError: it failed for now.
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
    # The call has one parameter that EC2 may not know.
    return code == "UnknownParameter" or (code in _REJECTIONS and _PARAMETER.search(str(error)) is not None)


def _gone(answer: Any) -> Answer:
    """An instance found gone by a call that botocore had to repeat was terminated by that call's first try: only its
    answer was lost.
    """
    return Answer.REQUESTED if _repeated(answer) else Answer.GONE


def _repeated(answer: Any) -> bool:
    return bool(answer.get("ResponseMetadata", {}).get("RetryAttempts"))
