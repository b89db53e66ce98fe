"""Decides about the risks of units: one function for each rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from troop.chaos.groups import Group
from troop.chaos.guards import NEEDED_PROCESSES
from troop.chaos.policy import SETTINGS
from troop.risks.facts import Image, Member, Unit
from troop.risks.rule import Hit, Unknown

IDLE_DAYS = 90
"""The days without a hit after which nobody knows whether a unit still recovers."""

LONG_TIMES, LONG_SECONDS = 5, 600.0
"""A grace period is far too long if it is more than so many times the measured boot, and so much longer."""

CHECKS_APART = 30.0
"""The seconds by which a measured boot can be too long: recovery checks look at load balancers now and then."""

Outcome = Hit | Unknown | None


def one_zone(unit: Unit) -> Outcome:
    zones = frozenset().union(*(member.setup.zones for member in unit.members))
    return Hit({"zone": next(iter(zones))}) if len(zones) == 1 else None


def one_instance(unit: Unit) -> Outcome:
    desired = sum(group.desired for group in unit.groups)
    instances = [instance for group in unit.groups for instance in group.instances]
    covers = len(instances) == 1 and instances[0].weight >= desired > 0
    return Hit({"desired": desired}) if desired == 1 or covers else None


def no_balancer_check(unit: Unit) -> Outcome:
    def lacks(member: Member) -> bool:
        group, checks = member.group, member.setup.health_checks
        balanced = bool(group.target_groups or group.load_balancers)
        return (balanced and "ELB" not in checks) or (bool(group.lattice_groups) and "VPC_LATTICE" not in checks)

    return _groups_where(unit, lacks)


def short_grace(unit: Unit) -> Outcome:
    return _grace(unit, lambda grace, boot: grace + CHECKS_APART < boot)


def long_grace(unit: Unit) -> Outcome:
    return _grace(unit, lambda grace, boot: grace > max(LONG_TIMES * boot, boot + LONG_SECONDS))


def _grace(unit: Unit, is_bad: Callable[[float, float], bool]) -> Outcome:
    """Compares the grace periods of the groups whose load balancers decide about health with the measured boot."""
    checked = [m for m in unit.members if m.group.sources and not m.setup.health_checks.isdisjoint(_BALANCERS)]
    if not checked:
        return None
    if unit.history and unit.history.partial:
        return Unknown(_PARTIAL)
    boot = unit.history.boot if unit.history else None
    if boot is None:
        return Unknown("no hit has measured the boot" if unit.history else "the events could not be read")
    bad = {member.group.name: member.setup.grace for member in checked if is_bad(member.setup.grace, boot)}
    return Hit({"grace s": max(bad.values()), "boot s": round(boot, 1), "groups": sorted(bad)}) if bad else None


_BALANCERS = frozenset({"ELB", "VPC_LATTICE"})
_PARTIAL = "earlier events could not be read in time"


def suspended_process(unit: Unit) -> Outcome:
    def suspended(group: Group) -> frozenset[str]:
        needed = NEEDED_PROCESSES if group.sources else NEEDED_PROCESSES - {"AddToLoadBalancer"}
        return group.suspended_processes & needed

    by_group = {group.name: processes for group in unit.groups if (processes := suspended(group))}
    processes = frozenset[str]().union(*by_group.values())
    return Hit({"processes": sorted(processes), "groups": list(by_group)}) if by_group else None


def no_room(unit: Unit) -> Outcome:
    return _groups_where(unit, lambda member: member.group.desired >= member.setup.most > 0)


def latest_template(unit: Unit) -> Outcome:
    return _groups_where(unit, lambda member: any(version == "$Latest" for _, version in member.setup.templates))


def one_spot_type(unit: Unit) -> Outcome:
    def is_alone(member: Member) -> bool | None:
        types = member.setup.types
        launched = {one.build.instance_type for one in member.group.instances if one.build.instance_type}
        if types is None or len(types) > 1 or len(launched) > 1:
            return False
        return member.spot

    return _groups_where(unit, is_alone, "its instances could not be read, or there are none")


def scale_in_protected(unit: Unit) -> Outcome:
    instances = [instance for group in unit.groups for instance in group.instances]
    are_all = bool(instances) and all(instance.scale_in_protected for instance in instances)
    return Hit({"instances": len(instances)}) if are_all else None


def no_alarm(unit: Unit) -> Outcome:
    return _malformed(unit) or (None if unit.policy.hypothesis.alarms else Hit({"alarms": 0}))


def endless_opt_out(unit: Unit) -> Outcome:
    takes_part, until = unit.policy.takes_part, unit.policy.until.value
    if takes_part.value or takes_part.source == SETTINGS or until is not None:
        return _malformed(unit)
    reason = unit.policy.reason.value
    return _malformed(unit) or Hit({"by": takes_part.source, **({"reason": reason} if reason else {})})


def never_hit(unit: Unit) -> Outcome:
    if unit.policy.problems or not unit.policy.takes_part.value:
        return _malformed(unit)
    if unit.idle_days is None:
        return Hit({"hits": 0, "days": unit.open_days}) if unit.open_days >= IDLE_DAYS else None
    return Hit({"days": unit.idle_days}) if unit.idle_days >= IDLE_DAYS else None


def slower_recovery(unit: Unit) -> Outcome:
    if unit.history is None:
        return Unknown("the events could not be read")
    if unit.history.partial:
        return Unknown(_PARTIAL)
    if (slow := unit.history.slow) is None:
        return None
    return Hit({"seconds": round(slow.seconds), "usual seconds": round(slow.usual_seconds), "event": slow.event_id})


def other_zones(unit: Unit) -> Outcome:
    def is_outside(member: Member) -> bool | None:
        if not (member.group.target_groups or member.group.load_balancers):
            return False
        zones = member.balancer_zones
        return None if zones is None else any(member.setup.zones - its for its in zones.values())

    return _groups_where(unit, is_outside, "the load balancers could not be read")


def missing_image(unit: Unit) -> Outcome:
    return _images(unit, lambda image: not image.exists)


def deprecated_image(unit: Unit) -> Outcome:
    return _images(unit, lambda one: bool(one.exists and one.deprecated_at and one.deprecated_at <= unit.now))


def _images(unit: Unit, is_bad: Callable[[Image], bool]) -> Outcome:
    def bad(member: Member) -> list[str]:
        return [image.image_id for image in member.images if image and is_bad(image)]

    def has_bad(member: Member) -> bool | None:
        return True if bad(member) else None if None in member.images else False

    outcome = _groups_where(unit, has_bad, "the image that it launches next is not known")
    if isinstance(outcome, Hit):
        return Hit({"images": sorted({name for member in unit.members for name in bad(member)}), **outcome.evidence})
    return outcome


def _groups_where(unit: Unit, is_bad: Callable[[Member], bool | None], unknown: str = "") -> Outcome:
    """Returns the groups for which something holds; it is unknown if it holds for none, and is None for one."""
    outcomes = {member.group.name: is_bad(member) for member in unit.members}
    if bad := _names(outcomes.items()):
        return Hit({"groups": bad})
    return Unknown(unknown) if None in outcomes.values() else None


def _names(outcomes: Iterable[tuple[str, bool | None]]) -> list[str]:
    return sorted(name for name, holds in outcomes if holds)


def _malformed(unit: Unit) -> Unknown | None:
    return Unknown("the unit's policy is malformed") if unit.policy.problems else None
