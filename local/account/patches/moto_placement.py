"""Spreads the instances of a group over its subnets, with the version of the template that the group names.

moto launches all instances in the first subnet, uses the template's default version for some properties, and cannot
use user data of a later version. AWS launches in the zone with the fewest instances of the group. If a zone lacks
capacity, AWS uses the other zones instead, unless the group is `balanced-only`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from moto.autoscaling.models import ASG_NAME_TAG, FakeAutoScalingGroup, InstanceState
from moto.autoscaling.responses import AutoScalingResponse
from moto.ec2.models.instances import StateReason
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.utils import parse_user_data

from ._wrap import wrap
from .moto_activities import begin_launch, end, fail, granted, lose, refuse, scarcity
from .moto_spot import is_outbid, is_spot

_strategies: dict[str, str] = {}
"""The strategies by which groups spread their instances if a zone lacks capacity; moto ignores this parameter."""


def apply(is_ready: Callable[[str], bool]) -> None:
    """Applies the patch. `is_ready`: whether an instance serves, and is in service."""

    def replace(self: Any, count_needed: int, propagated_tags: dict[str, str]) -> None:
        _launch(self, count_needed, propagated_tags, is_ready)

    FakeAutoScalingGroup.replace_autoscaling_group_instances = replace

    @wrap(AutoScalingResponse, "create_auto_scaling_group")
    def create_group(original: Callable[..., Any], self: Any) -> Any:
        distribution = self._get_params().get("AvailabilityZoneDistribution") or {}
        name = self._get_param("AutoScalingGroupName")
        _strategies[name] = distribution.get("CapacityDistributionStrategy", "balanced-best-effort")
        return original(self)

    @wrap(FakeAutoScalingGroup, "update")
    def update(original: Callable[..., None], self: Any, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        self.set_desired_capacity(self.desired_capacity)  # launches what the former template could not

    @wrap(LaunchTemplate, "create_version")
    def create_version(original: Callable[..., Any], self: Any, data: dict[str, Any], description: str) -> Any:
        if isinstance(data.get("UserData"), str):
            data = {**data, "UserData": parse_user_data(data["UserData"])}
        return original(self, data, description)


def _launch(self: Any, count_needed: int, propagated_tags: dict[str, str], is_ready: Callable[[str], bool]) -> None:
    if "Launch" in self._suspended_processes:
        return
    ec2, template = self.autoscaling_backend.ec2_backend, self.ec2_launch_template
    if template and template.id not in ec2.launch_templates:
        fail(self, f"The specified launch template, with template ID {template.id}, does not exist.")
        return
    tags = {**propagated_tags, **self.instance_tags, ASG_NAME_TAG: self.name}
    market = "spot" if is_spot(self) else ""
    for (zone, subnet), count in _granted(self, count_needed, market).items():
        reservation = ec2.run_instances(
            self.image_id,
            count,
            self.user_data,
            self.security_groups,
            instance_type=_instance_type(self),
            tags={"instance": tags},
            placement=zone,
            launch_config=self.launch_config,
            launch_template=_template(self),
            is_instance_type_default=False,
            associate_public_ip=self.launch_config.associate_public_ip_address if self.launch_config else None,
            subnet_id=subnet,
            instance_market_options=market,
        )
        for instance in reservation.instances:
            begin_launch(self, instance)
            if reason := scarcity.death(_instance_type(self), market):
                _die(self, instance, *reason)
                continue
            instance.autoscaling_group = self
            self.instance_states.append(
                InstanceState(instance, protected_from_scale_in=self.new_instances_protected_from_scale_in)
            )
            if is_ready(instance.id):
                end("Launch", instance.id)


def _granted(group: Any, count: int, market: str) -> Counter[tuple[str, str | None]]:
    """Returns the launches that have capacity. Those of a full zone go to the other zones if the group allows it."""
    kind = _instance_type(group)
    if market and all(is_outbid(group, kind, zone) for zone, _ in _choices(group)):
        refuse(group, "SpotMaxPriceTooLow")
        return Counter()
    capacity = granted(group, kind, _places(group, count), market)
    lacks = count - capacity.total()
    full = {zone for zone, _ in _choices(group) if scarcity.is_short(kind, market, zone)}
    if lacks and full and _strategies.get(group.name) != "balanced-only":
        capacity += granted(group, kind, _places(group, lacks, full, capacity), market)
    return capacity


def _die(group: Any, instance: Any, code: str, words: str) -> None:
    """Terminates an instance before it runs, and cancels the group's activity with the reason."""
    group.autoscaling_backend.ec2_backend.terminate_instances([instance.id])
    instance.state_reason = StateReason(f"{code}: {words}", code)
    lose(instance, f"{code}: {words}")


def _instance_type(group: Any) -> str:
    """Returns the first override of a group: moto's capacity arithmetic assumes it for all instances."""
    overrides = overrides_of(group)
    return str(overrides[0].get("InstanceType") or group.instance_type) if overrides else str(group.instance_type)


def overrides_of(group: Any) -> list[dict[str, Any]]:
    """Returns the overrides of a group's mixed instances policy, if any."""
    template = (group.mixed_instances_policy or {}).get("LaunchTemplate", {})
    return list(template.get("Overrides") or [])


def _template(group: Any) -> dict[str, str] | None:
    if not group.ec2_launch_template:
        return None
    return {"LaunchTemplateId": group.ec2_launch_template.id, "Version": group.launch_template_version}


def _choices(group: Any) -> list[tuple[str, str | None]]:
    """Returns the zones and subnets of a group."""
    if not group.vpc_zone_identifier:
        return [(zone, None) for zone in group.availability_zones]
    ids = [part.strip() for part in group.vpc_zone_identifier.split(",")]
    subnets = group.autoscaling_backend.ec2_backend.describe_subnets(subnet_ids=ids)
    return [(subnet.availability_zone, subnet.id) for subnet in subnets]


def _places(
    group: Any,
    count: int,
    without: Collection[str] = (),
    launched: Counter[tuple[str, str | None]] | None = None,
) -> Counter[tuple[str, str | None]]:
    """Returns the number of launches by (zone, subnet): each goes to the zone, then the subnet, with the fewest.

    `without`: zones that get none. `launched`: launches that are not among the group's instances yet.
    """
    choices = [place for place in _choices(group) if place[0] not in without]
    in_zone = Counter(state.instance.placement.zone for state in group.instance_states)
    in_subnet = Counter(state.instance.subnet_id for state in group.instance_states)
    for (zone, subnet), more in (launched or {}).items():
        in_zone[zone] += more
        in_subnet[subnet] += more
    places: Counter[tuple[str, str | None]] = Counter()
    for _ in range(count if choices else 0):
        zone, subnet = min(choices, key=lambda place: (in_zone[place[0]], in_subnet[place[1]]))
        places[zone, subnet] += 1
        in_zone[zone] += 1
        in_subnet[subnet] += 1
    return places
