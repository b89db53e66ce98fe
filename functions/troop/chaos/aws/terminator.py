"""Carries out a fault: calls AWS, and translates its answers and errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from troop.chaos.aws.groups import LEAVING, instance_gone, lifecycle
from troop.chaos.events import fault_named
from troop.chaos.groups import IN_SERVICE
from troop.faults.fault import INVALID_REQUEST, Answer, Failure, Meaning, Place

PROTECTED = frozenset({"OperationNotPermitted", "UnsupportedOperation"})
"""EC2's codes for an instance that its owner protects, or that a service operates."""

FORBIDDEN = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
"""The codes of EC2 and Auto Scaling for refusals by IAM: the role, a boundary or the organisation."""


BUSY = frozenset({"ScalingActivityInProgress", "ResourceContention"})
"""Auto Scaling's codes during another change of the group, which ends at an unknown time."""


class SkipRejected(Exception):
    """AWS, or the SDK, does not accept the fault without a shutdown here. Nothing has been terminated."""


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


@dataclass(frozen=True)
class _Instance:
    """The access of a fault to its instance."""

    instance_id: str
    clients: Mapping[str, Any]
    os_shutdown: bool = False

    def place(self) -> Place:
        ec2, autoscaling = self.clients["ec2"], self.clients["autoscaling"]
        state = lifecycle(autoscaling, self.instance_id)
        if state == IN_SERVICE:
            return Place.IN_SERVICE
        leaving = (state or "").startswith(LEAVING)
        return Place.GONE if leaving or instance_gone(ec2, autoscaling, self.instance_id) else Place.OUTSIDE


@dataclass(frozen=True)
class Terminator:
    """Carries out faults.

    Attributes:
        clients: the clients by service (:func:`troop.faults.services`); their calls have a time limit.
    """

    clients: Mapping[str, Any]

    def check(self, method: str, instance_id: str) -> Answer | None:
        """Returns the result without a request, if the instance's state already decides it; otherwise None."""
        return fault_named(method).over(_Instance(instance_id, self.clients))

    def terminate(self, method: str, instance_id: str, *, os_shutdown: bool = False) -> Answer:
        """Sends AWS the request to hit an instance.

        Args:
            method: the name of the fault.
            instance_id: the id of the instance.
            os_shutdown: allow a shutdown of the operating system to a fault that has none.

        Raises:
            SkipRejected: without a shutdown the fault is not possible here; with ``os_shutdown`` it is.
            TerminationRefused: AWS refuses permanently.
            ClientError: the request failed for now.
            BotoCoreError: AWS did not answer in time.
        """
        fault = fault_named(method)
        try:
            response = fault.strike(_Instance(instance_id, self.clients, os_shutdown))
        except ParamValidationError as error:
            if fault.meaning(Failure(INVALID_REQUEST, str(error), os_shutdown)) is Meaning.NEEDS_SHUTDOWN:
                raise SkipRejected(str(error)) from error
            raise
        except ClientError as error:
            code = error.response["Error"]["Code"]
            meaning = fault.meaning(Failure(code, str(error), os_shutdown))
            if meaning is Meaning.NEEDS_SHUTDOWN:
                raise SkipRejected(str(error)) from error
            if meaning is Meaning.GONE:
                return _gone(error.response)
            if code in PROTECTED | FORBIDDEN:
                raise TerminationRefused(error) from error
            raise
        return _gone(response) if fault.was_over(response) else Answer.REQUESTED


def _gone(answer: Any) -> Answer:
    """Returns the result for an instance that is already gone. If botocore had to retry, the first request terminated
    it, and only its response was lost.
    """
    return Answer.REQUESTED if _repeated(answer) else Answer.GONE


def _repeated(answer: Any) -> bool:
    return bool(answer.get("ResponseMetadata", {}).get("RetryAttempts"))
