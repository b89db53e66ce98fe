"""Defines the facts about an account that the rules read. Pure.

Each fact that a call of AWS provides can be None: the call was refused or did not answer. Then it is not known, which
is neither a risk nor its absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from troop.chaos.groups import Group
from troop.chaos.policy import Policy
from troop.risks.price import Price
from troop.shared.records import record


@record
class Setup:
    """How a group launches and checks its instances.

    Attributes:
        zones: the names of its availability zones.
        least, most: its capacity's limits, in the group's capacity units.
        health_checks: ``EC2``, ``EBS``, ``ELB`` or ``VPC_LATTICE``.
        grace: the seconds for which a new instance may fail these checks.
        templates: the ids of its launch templates, each with its version: a number, ``$Latest`` or ``$Default``; or the
            name of its launch configuration, with "".
        images: the images that it launches in place of those of its templates.
        types: the instance types of its mixed instances policy; empty if the template decides, None if attributes do.
        spot: whether the mixed instances policy launches Spot Instances only; None without one.
        created: when it was created.
    """

    created: datetime
    zones: frozenset[str] = frozenset()
    least: int = 0
    most: int = 0
    health_checks: frozenset[str] = frozenset()
    grace: int = 0
    templates: tuple[tuple[str, str], ...] = ()
    images: frozenset[str] = frozenset()
    types: frozenset[str] | None = frozenset()
    spot: bool | None = None


@record
class Version:
    """A version of a launch template.

    Attributes:
        image: an image's id, or the parameter that names it, as ``resolve:ssm:...``; "" for none.
        by_attributes: whether attributes choose among instance types.
    """

    template: str
    number: int
    is_default: bool = False
    image: str = ""
    by_attributes: bool = False


@record
class Image:
    """An image that new instances of a group are launched from.

    Attributes:
        exists: whether the account may launch from it.
        deprecated_at: when its owner deprecates it; None for never.
    """

    image_id: str
    exists: bool = True
    deprecated_at: datetime | None = None


@record
class Member:
    """A group of a unit, with what is known around it.

    Attributes:
        spot: whether it launches Spot Instances only; None if not known.
        images: those that it launches next; None for one that is not known.
        balancer_zones: the zones of each load balancer that sends it requests, by name; None if not known.
    """

    group: Group
    setup: Setup
    spot: bool | None = None
    images: tuple[Image | None, ...] = (None,)
    balancer_zones: Mapping[str, frozenset[str]] | None = field(default=None, hash=False)


@record
class SlowRecovery:
    """A unit's last recovery, if it was slow by :mod:`troop.chaos.slowness`."""

    event_id: str
    seconds: float
    usual_seconds: float


@record
class History:
    """What a unit's events tell.

    Attributes:
        boot: the most seconds that a replacement took from its start of service to health in the load balancers;
            None if none was measured.
        slow: None if its last recovery was not slow.
        partial: whether earlier events are missing that could change this.
    """

    boot: float | None = None
    slow: SlowRecovery | None = None
    partial: bool = False


@record
class Unit:
    """A unit at the moment of a reading.

    Attributes:
        members: its groups, at least one.
        idle_days: the days since its last hit; None if it was never hit.
        open_days: the days for which it could be hit: since it, its policy and the deployment are as they are.
        history: None if the events could not be read.
    """

    name: str
    now: datetime
    policy: Policy
    members: tuple[Member, ...]
    idle_days: int | None = None
    open_days: int = 0
    history: History | None = None

    @property
    def owner(self) -> str:
        return self.policy.owner.value

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(member.group for member in self.members)


@record
class Machine:
    """An instance.

    Attributes:
        launched: when it was last started.
        runs: whether it runs or starts.
        title: its tag ``Name``; "" for none.
        group: its Auto Scaling group; "" for none.
        keeper: the AWS service that operates it, or a tag of what launched it and replaces it; "" for none.
        template: the id of the launch template it was launched from; "" for none.
    """

    name: str
    owner: str
    now: datetime
    launched: datetime
    runs: bool = True
    title: str = ""
    group: str = ""
    keeper: str = ""
    image: str = ""
    kind: str = ""
    zone: str = ""
    spot: bool = False
    template: str = ""


@record
class Leftover:
    """A resource that may be in nobody's use.

    Attributes:
        name: its id.
        used: whether something uses it; None if not known.
        created: None if AWS does not tell.
        kind: what a person needs to recognise it, such as its size or its address.
        monthly: its price for a month; None if not known.
        at_most: whether the price is only a limit.
    """

    name: str
    owner: str
    now: datetime
    used: bool | None
    kind: str = ""
    created: datetime | None = None
    monthly: Price | None = None
    at_most: bool = False
