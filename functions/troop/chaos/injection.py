"""Defines an injection: what an event records of a lasting fault, from its claim to the proof of its end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from troop.chaos.probe import Probe
from troop.shared.codec import stored


class Way(StrEnum):
    """How the end of a fault is proven: a probe found nothing; Troop had the instance terminated; or the instance ended
    for another reason.
    """

    PROBE = "probe"
    REPLACED = "replaced"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof that a fault is over.

    Attributes:
        by: how.
        at: when the fault was certainly over.
        why: a sentence.
    """

    by: Way
    at: datetime
    why: str


@dataclass(frozen=True, slots=True)
class EndRequest:
    """Troop asked for the end of a fault before its time.

    Attributes:
        at: when.
        why: a sentence: chaos was halted, the unit has opted out, or an alarm went off.
    """

    at: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Injection:
    """A lasting fault, in the order in which its attributes are written.

    Attributes:
        parameters: all of the fault's parameters, by name.
        installs: whether the owner allows AWS's document to install packages.
        before: the probe before the fault; None until it is sent.
        ends_by: the latest moment at which the fault ends by itself; written before the request.
        packages: what the document has installed, which stays; empty if nothing was missing.
        command_id: Run Command's; "" before the request, and while its answer is not known.
        began_at: when its command was seen to be on the instance; None until then.
        end_request: None unless Troop asked for an earlier end.
        status: Run Command's final status of the command, which is no proof; "" until it is seen.
        over_at: when that status was seen; None until then.
        after: the last probe after the fault; None until it is sent.
        unproven: why the end is not proven although its time is up, and why the instance was not terminated: the event
            stays open; "" otherwise.
        repair_at: when Troop was about to have the instance terminated, because the end is not proven; None before, and
            if that was refused, or the instance had ended before.
        repairs: how many calls were about to send that request; 0 without ``repair_at``.
        proof: None until the end is proven. An event with an injection closes only with it, unless nothing was sent.
    """

    parameters: Mapping[str, str]
    installs: bool = field(default=False, metadata=stored(omit=True))
    before: Probe | None = field(default=None, metadata=stored(omit=True))
    ends_by: datetime | None = field(default=None, metadata=stored(omit=True))
    packages: tuple[str, ...] = field(default=(), metadata=stored(omit=True))
    command_id: str = field(default="", metadata=stored(omit=True))
    began_at: datetime | None = field(default=None, metadata=stored(omit=True))
    end_request: EndRequest | None = field(default=None, metadata=stored(omit=True))
    status: str = field(default="", metadata=stored(omit=True))
    over_at: datetime | None = field(default=None, metadata=stored(omit=True))
    after: Probe | None = field(default=None, metadata=stored(omit=True))
    unproven: str = field(default="", metadata=stored(omit=True))
    repair_at: datetime | None = field(default=None, metadata=stored(omit=True))
    repairs: int = field(default=0, metadata=stored(omit=True))
    proof: Proof | None = field(default=None, metadata=stored(omit=True))

    @property
    def seconds(self) -> int:
        """How long the fault lasts."""
        return int(self.parameters["seconds"])
