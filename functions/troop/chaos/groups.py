"""Defines the data that chaos uses of Auto Scaling groups and their instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from troop.chaos.replacements import UNKNOWN, Build
from troop.shared.tags import FLEET_TAG, RUN_TAG

IN_SERVICE = "InService"
HEALTHY = "Healthy"


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a group.

    Attributes:
        instance_id: ``i-...``.
        lifecycle: the Auto Scaling lifecycle state, such as ``InService``.
        health: ``Healthy`` or ``Unhealthy``, according to Auto Scaling.
        zone: availability zone.
        weight: its capacity units; 1 in a group without weights.
        scale_in_protected: protected from scale-in.
        build: what it was launched from, without its image, which Auto Scaling does not state.
    """

    instance_id: str
    lifecycle: str = IN_SERVICE
    health: str = HEALTHY
    zone: str = ""
    weight: int = 1
    scale_in_protected: bool = False
    build: Build = UNKNOWN

    @property
    def serving(self) -> bool:
        """Whether it is in service and healthy."""
        return self.lifecycle == IN_SERVICE and self.health == HEALTHY


@dataclass(frozen=True, slots=True)
class Group:
    """An Auto Scaling group at one moment.

    Attributes:
        desired: the desired capacity in the group's capacity units.
        target_groups: ARNs of target groups of load balancers.
        load_balancers: names of Classic Load Balancers.
        lattice_groups: ARNs of target groups of VPC Lattice.
        propagated: the keys of the tags that instances launched from now on receive.
        operator: principal of the AWS service that operates the group, and alone may change it; "" for none.
    """

    name: str
    desired: int
    instances: tuple[Instance, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    suspended_processes: frozenset[str] = frozenset()
    target_groups: tuple[str, ...] = ()
    load_balancers: tuple[str, ...] = ()
    lattice_groups: tuple[str, ...] = ()
    operator: str = ""
    propagated: frozenset[str] = frozenset()

    @property
    def sources(self) -> tuple[str, ...]:
        """All traffic sources: names and ARNs, which differ in form."""
        return self.target_groups + self.load_balancers + self.lattice_groups

    @property
    def is_own_fleet(self) -> bool:
        """Whether a benchmark or a standing fleet of any deployment of Troop created it."""
        return FLEET_TAG in self.tags and RUN_TAG in self.tags

    @property
    def serving(self) -> tuple[Instance, ...]:
        return tuple([i for i in self.instances if i.lifecycle == IN_SERVICE and i.health == HEALTHY])

    def served(self, healthy: Mapping[str, frozenset[str]]) -> tuple[Instance, ...]:
        """Returns the instances in service that are also healthy in all traffic sources (ids by source)."""
        return tuple(i for i in self.serving if all(i.instance_id in healthy[source] for source in self.sources))

    @property
    def capacity_in_service(self) -> int:
        """Capacity units of the instances that are in service and healthy."""
        return sum([i.weight for i in self.serving])
