"""Compares the instance that replaces a terminated one with it: template version, type and image. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Build:
    """What an instance was launched from; a part is "" if it is unknown.

    Attributes:
        template: launch template with its version, as ``lt-0abc:3``, or the name of the launch configuration.
        instance_type: such as ``m7g.large``.
        image: id of the AMI.
    """

    template: str = ""
    instance_type: str = ""
    image: str = ""


UNKNOWN = Build()

_PARTS = {"template": "template version", "instance_type": "type", "image": "image"}


@dataclass(frozen=True, slots=True)
class Replacement:
    """The instance that replaces a terminated one."""

    instance_id: str
    build: Build


@dataclass(frozen=True, slots=True)
class Launch:
    """An instance of the group as EC2 describes it. ``at``: when it was last started; EC2 states whole seconds."""

    instance_id: str
    image: str
    at: datetime


def first_since(launches: Iterable[Launch], since: datetime) -> Launch | None:
    """Returns the first launch from the second of ``since`` on; None without one, as after a change of the desired
    capacity.
    """
    later = [launch for launch in launches if launch.at >= since.replace(microsecond=0)]
    return min(later, key=lambda launch: (launch.at, launch.instance_id), default=None)


def differences(before: Build, after: Build) -> tuple[str, ...]:
    """Lists the parts that are known of both builds and differ, by attribute name."""
    return tuple(part for part in _PARTS if _differs(getattr(before, part), getattr(after, part)))


def comparison(before: Build, replacement: Replacement) -> str:
    """Describes a replacement in one sentence.

    >>> comparison(Build("lt-1:3", "c7g.large", ""), Replacement("i-2", Build("lt-1:4", "c7g.large", "ami-1")))
    'i-2 has the same type, another template version (lt-1:4 instead of lt-1:3), and an unknown image before or after'
    """
    after, different = replacement.build, differences(before, replacement.build)
    unknown = [name for part, name in _PARTS.items() if not (getattr(before, part) and getattr(after, part))]
    same = [name for part, name in _PARTS.items() if part not in different and name not in unknown]
    clauses = [f"the same {_listing(same)}"] if same else []
    for part in different:
        clauses.append(f"another {_PARTS[part]} ({getattr(after, part)} instead of {getattr(before, part)})")
    if unknown:
        clauses.append(f"an unknown {_listing(unknown)} before or after")
    return f"{replacement.instance_id} has {_listing(clauses, ', and ')}"


def _differs(before: str, after: str) -> bool:
    return bool(before and after) and before != after


def _listing(words: list[str], last: str = " and ") -> str:
    """Joins words by commas, and the last one by ``last``."""
    *others, final = words
    return last.join([*filter(None, [", ".join(others)]), final])
