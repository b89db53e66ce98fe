"""Defines which instances may have a lasting fault: their owners consent, and Systems Manager can reach them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from troop.chaos.groups import Group
from troop.chaos.injection import Injection
from troop.shared.choice import Choice
from troop.shared.tags import CONSENT_TO_INSTALL, CONSENTS, INSIDE_TAG


@dataclass(frozen=True, slots=True)
class Inside:
    """What is known of instances for lasting faults. Nothing known means that none may have one.

    Attributes:
        consents: the values of the tag ``troop:inside`` of running instances, by id; only values that consent.
        hits: the events of the lasting faults that instances have had, by id.
        reachable: ids of instances with Linux that are online in Systems Manager; None if not read yet.
        unread: why Systems Manager could not be asked; "" if it was, or was not tried.
    """

    consents: Mapping[str, str] = field(default_factory=dict)
    hits: Mapping[str, str] = field(default_factory=dict)
    reachable: frozenset[str] | None = None
    unread: str = ""

    def allows(self, instance_id: str) -> bool:
        """Checks whether the instance may have a lasting fault, as far as is known."""
        known = self.reachable is None or instance_id in self.reachable
        return known and instance_id in self.consents and instance_id not in self.hits


def consent_of(group: Group) -> str:
    """Returns the value of a group's tag ``troop:inside`` if it consents and reaches new instances, otherwise ""."""
    value = group.tags.get(INSIDE_TAG, "")
    return value if value in CONSENTS and INSIDE_TAG in group.propagated else ""


def no_consent(group: Group) -> str:
    """Returns why a group does not consent, in words that follow its name; "" if it does."""
    if consent_of(group):
        return ""
    if INSIDE_TAG in group.tags:
        return f"does not propagate its tag {INSIDE_TAG} to its instances"
    return f"has no tag {INSIDE_TAG}: its owner has not consented to faults inside its instances"


def none_fit(inside: Inside, instance_ids: Iterable[str]) -> str:
    """Returns why none of the instances that may be hit may have a lasting fault, in words that follow their group's
    name; "" if one may.
    """
    left = list(instance_ids)
    if any(map(inside.allows, left)):
        return ""
    steps: tuple[tuple[Callable[[str], bool], str], ...] = (
        (
            inside.consents.__contains__,
            f"has no instance with the tag {INSIDE_TAG}: the group's tag reaches new instances only",
        ),
        (lambda one: one not in inside.hits, "has only instances that have had a fault inside before"),
    )
    for fits, words in steps:
        left = list(filter(fits, left))
        if not left:
            return words
    return "has no instance with Linux that is online in Systems Manager"


@dataclass(frozen=True, slots=True)
class Fitness:
    """Whether lasting faults can hit a group, for people.

    Attributes:
        consent: as :func:`consent_of`.
        fit: how many of its instances may have one; None if that could not be read.
        why: why none may, in words that follow the group's name; "" if one may, and if that could not be read.
    """

    consent: str
    fit: int | None
    why: str


def fitness(group: Group, instance_ids: Sequence[str], inside: Inside | None) -> Fitness:
    """Returns the fitness of a group.

    Args:
        instance_ids: of those that may be hit.
        inside: what is known of them; None if that could not be read.
    """
    if why := no_consent(group):
        return Fitness("", 0, why)
    if inside is None:
        return Fitness(consent_of(group), None, "")
    return Fitness(consent_of(group), sum(map(inside.allows, instance_ids)), none_fit(inside, instance_ids))


def injection_of(choice: Choice, group: Group, instance_id: str, inside: Inside) -> Injection | None:
    """Returns what the claim of a choice records of a lasting fault; None for a termination."""
    fault = choice.lasting
    if fault is None:
        return None
    installs = consent_of(group) == inside.consents.get(instance_id) == CONSENT_TO_INSTALL
    return Injection(fault.complete(dict(choice.parameters)), installs)
