"""Reads from a failed event what went wrong, to confirm the risks that predicted it. Pure.

An event confirms a risk of its unit if all of this holds:

- it has failed: its verdict is BROKEN, or its unit has not recovered;
- it was claimed while the risk was on record: after a reading first saw it, and before one no longer did;
- it shows one of the signs that the risk's rule names.
"""

from __future__ import annotations

import re
from enum import StrEnum

from troop.chaos.events import Event, Status
from troop.chaos.replacements import differences
from troop.chaos.verdict import VerdictValue


class Sign(StrEnum):
    """What an event shows of its failure."""

    NO_CAPACITY = "Auto Scaling failed to launch: EC2 had no capacity"
    NO_IMAGE = "Auto Scaling failed to launch: the image could not be used"
    NOT_REPLACED = "the group did not try to launch a replacement"
    NOT_HEALTHY = "the group launched a replacement, and the unit did not recover"
    TOO_SLOW = "the recovery took longer than recovery_within"
    ALARM = "an alarm of the unit went off"
    OTHER_BUILD = "the replacement was launched from another template version or image"


_NO_CAPACITY = re.compile(r"sufficient \S+ capacity|no Spot capacity|InsufficientInstanceCapacity", re.I)
_NO_IMAGE = re.compile(r"\b(AMI|image id)\b.* (does not exist|cannot be run)|not authorized for images", re.I)
"""What Auto Scaling says of a failed launch, as its guide lists it for capacity and for AMIs."""


def signs(event: Event) -> frozenset[Sign]:
    """Returns the signs of an event; none for one that has not failed."""
    broken = event.verdict is not None and event.verdict.value is VerdictValue.BROKEN
    lost = event.status is Status.UNRECOVERED
    if not (broken or lost):
        return frozenset()
    limit, took = event.hypothesis and event.hypothesis.recovery_within, event.recovery_seconds
    launched = event.stages is not None and event.stages.launched is not None
    different = differences(event.build, event.replacement.build) if event.build and event.replacement else ()
    alarms = event.verdict.alarms if event.verdict else ()
    shown = {
        Sign.NO_CAPACITY: bool(_NO_CAPACITY.search(event.launch_failure)),
        Sign.NO_IMAGE: bool(_NO_IMAGE.search(event.launch_failure)),
        Sign.NOT_REPLACED: lost and event.stages is not None and not launched and not event.launch_failure,
        Sign.NOT_HEALTHY: lost and launched,
        Sign.TOO_SLOW: bool(limit and took is not None and took > limit),
        Sign.ALARM: bool(event.abort) or any(one.state == "ALARM" for alarm in alarms for one in alarm.states),
        Sign.OTHER_BUILD: not {"template", "image"}.isdisjoint(different),
    }
    return frozenset(sign for sign, holds in shown.items() if holds)
