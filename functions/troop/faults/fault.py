"""Defines what a fault is. Pure: a fault calls AWS through the clients that it receives, and imports no SDK.

The adapter :mod:`troop.chaos.aws.terminator` carries faults out. It catches the errors of the SDK, and asks the fault
what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any, Protocol

GONE_STATES = frozenset({"shutting-down", "terminated"})
"""EC2's states of an instance that is terminated, or being terminated."""

INVALID_REQUEST = "ParamValidation"
"""The code of an error by which the SDK itself rejects a request; AWS has not received it."""


class Answer(StrEnum):
    """The result of a request: AWS terminates the instance because of it; the instance was already being terminated; or
    it lives, but no longer in service of its group.
    """

    REQUESTED = "asked"
    GONE = "gone"
    LEFT = "left"


class Place(Enum):
    """The place of an instance: in service of its group; alive, but not in service; terminated or being terminated."""

    IN_SERVICE = auto()
    OUTSIDE = auto()
    GONE = auto()


class Meaning(Enum):
    """What an error means: the instance is already gone; or AWS accepts the fault here only with a shutdown of the
    operating system.
    """

    GONE = auto()
    NEEDS_SHUTDOWN = auto()


@dataclass(frozen=True)
class Failure:
    """A request that failed.

    Attributes:
        code: the code of AWS's error, or :data:`INVALID_REQUEST`.
        text: the whole message.
        os_shutdown: whether the request allowed a shutdown of the operating system.
    """

    code: str
    text: str
    os_shutdown: bool


class Instance(Protocol):
    """The instance that a fault hits."""

    @property
    def instance_id(self) -> str:
        """``i-...``."""

    @property
    def clients(self) -> Mapping[str, Any]:
        """The clients of the fault's services, by service."""

    @property
    def os_shutdown(self) -> bool:
        """Whether a fault that has no shutdown of the operating system may have one."""

    def place(self) -> Place:
        """Reads the place of the instance, in one to three calls."""


@dataclass(frozen=True)
class Permission:
    """An action that IAM allows the function that carries out faults. IAM denies it where a tag protects the resource.

    Attributes:
        action: such as ``ec2:TerminateInstances``.
        resource: the ARN's part after the account, such as ``instance/*``.
        grouped: the resources are instances, and the action is allowed only on those of Auto Scaling groups.
    """

    action: str
    resource: str
    grouped: bool = False


@dataclass(frozen=True)
class Fault:
    """A way to hit an instance.

    Attributes:
        name: the value of ``method`` in policies, settings, requests and events.
        summary: what happens, for documents: the rest of a sentence, without a full stop.
        services: the AWS services whose clients it uses.
        permissions: what its calls need.
        os_shutdown: whether the operating system is shut down before the instance ends.
        strike: sends the request, and returns AWS's response.
        meaning: returns what a failure of the request means; None if it means nothing special.
        over: returns the result without a request, if the instance's state already decides it; otherwise None.
        was_over: checks whether a response shows that the instance was already gone.
        refused_if_protected: AWS itself refuses it for an instance that its owner protects in EC2. Without this Troop
            checks the protection again before it repeats a request.
        irreversible: says, for an event whose alarm has gone off, why what the fault has done is not undone.
        fallback: explains a shutdown of the operating system by a fault that has none; "" if that is not possible.
    """

    name: str
    summary: str
    services: tuple[str, ...]
    permissions: tuple[Permission, ...]
    os_shutdown: bool
    strike: Callable[[Instance], Any]
    meaning: Callable[[Failure], Meaning | None]
    over: Callable[[Instance], Answer | None] = lambda _: None
    was_over: Callable[[Any], bool] = lambda _: False
    refused_if_protected: bool = False
    irreversible: str = "a termination cannot be undone"
    fallback: str = ""
