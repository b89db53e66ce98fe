"""Reads what the rules need of an account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from troop.chaos.aws.groups import to_group
from troop.chaos.aws.state_table import PolicyTable, StateTable
from troop.chaos.facts import Account, Facts, facts_of_units
from troop.chaos.groups import Group
from troop.risks.assessment import Survey
from troop.risks.aws import resource_reads
from troop.risks.aws.leftover_prices import LeftoverPrices
from troop.risks.facts import Image, Machine, Member, Setup, Unit, Version
from troop.risks.histories import Histories
from troop.risks.listing import Listing
from troop.risks.rule import Subject
from troop.shared import moments
from troop.shared.settings import Settings

EKS_TAG = "eks:nodegroup-name"
"""A tag of the groups of EKS. It launches their instances from copies of the templates that people name."""


@dataclass(frozen=True)
class AccountSurvey:
    """Reads groups and the resources around them, with the tables ``GroupTags`` and ``State``.

    Attributes:
        client: returns a service's client.
    """

    settings: Settings
    client: Callable[[str], Any]
    policies: PolicyTable
    state: StateTable
    prices: Callable[[], LeftoverPrices]

    def read(self, now: datetime, since: datetime, histories: Histories | None) -> Survey:
        """Reads everything once. What cannot be read is missing, but for the groups and the tables.

        Args:
            since: the first reading of the deployment.
            histories: None if the events could not be read.

        Raises:
            ClientError, BotoCoreError: the groups or the tables cannot be read.
        """
        ec2, prices = self.client("ec2"), self.prices()
        setups = list(self._setups())
        machines = resource_reads.read_machines(ec2, now)
        running = Listing(tuple(one for one in machines.rows if one.runs), machines.problem)
        versions = resource_reads.read_versions(ec2)
        by_group = {group.name: setup for group, setup in setups}
        launches = _Launches(by_group, _newest(running.rows), _named(versions.rows))
        next_images = {name for group, _ in setups for name in launches.images(group) if name}
        images = resource_reads.read_images(ec2, next_images)
        zones = resource_reads.read_balancer_zones(self.client("elbv2"), self.client("elb"))
        image_snapshots = resource_reads.read_own_snapshots_of_images(ec2)
        templates = {name for _, setup in setups for name, _ in setup.templates}
        items = self.policies.all()
        around = _Around(
            launches,
            {image.image_id: image for image in images.rows},
            dict(zones.rows),
            histories,
            {unit: max(since, _changed(item)) for unit, item in items.items()},
            since,
        )
        in_eks = any(EKS_TAG in group.tags for group, _ in setups)
        listings: dict[Subject, Listing[Any]] = {
            Subject.UNIT: Listing(tuple(around.unit(facts) for facts in self._facts(setups, items, now))),
            Subject.INSTANCE: running,
            Subject.VOLUME: resource_reads.read_volumes(ec2, now, prices.volume),
            Subject.SNAPSHOT: resource_reads.read_snapshots(ec2, now, image_snapshots, prices.snapshot),
            Subject.TEMPLATE: resource_reads.read_templates(ec2, now, templates, machines, in_eks),
            Subject.ADDRESS: resource_reads.read_addresses(ec2, now, prices.address),
        }
        problems = [
            one.problem for one in (*listings.values(), versions, images, zones, image_snapshots) if one.problem
        ]
        return Survey(
            at=now,
            subjects={kind: one.rows for kind, one in listings.items()},
            partial=frozenset(kind for kind, one in listings.items() if not one.is_complete),
            unread=(*problems, *prices.problems),
        )

    def _setups(self) -> Iterator[tuple[Group, Setup]]:
        pages = self.client("autoscaling").get_paginator("describe_auto_scaling_groups")
        for page in pages.paginate(PaginationConfig={"PageSize": 100}):
            for raw in page["AutoScalingGroups"]:
                if not raw.get("Status"):
                    yield to_group(raw), resource_reads.to_setup(raw)

    def _facts(
        self, setups: Sequence[tuple[Group, Setup]], items: Mapping[str, Mapping[str, Any]], now: datetime
    ) -> Iterator[Facts]:
        view = self.state.view()
        account = Account(
            groups=[group for group, _ in setups],
            items=items,
            states=view.units,
            switch=view.switch,
            counts=view.counts,
        )
        return facts_of_units(account, self.settings, b"", now)


@dataclass(frozen=True)
class _Launches:
    """What groups launch: their setups and newest instances by name, and versions of templates: the latest and the
    default of each.
    """

    setups: Mapping[str, Setup]
    newest: Mapping[str, Machine]
    versions: Mapping[tuple[str, str], Version]

    def setup(self, group: Group) -> Setup:
        """Returns a group's setup, with what its template says of instance types."""
        setup = self.setups[group.name]
        known = (self.versions.get(template) for template in setup.templates)
        by_attributes = not setup.types and any(one.by_attributes for one in known if one)
        return replace(setup, types=None) if by_attributes else setup

    def images(self, group: Group) -> tuple[str, ...]:
        """Returns the images that a group launches next; "" for one that is not known, as that of a parameter."""
        setup = self.setups[group.name]
        return tuple(sorted(setup.images)) or tuple(self._image(group, *one) for one in setup.templates) or ("",)

    def _image(self, group: Group, template: str, number: str) -> str:
        if version := self.versions.get((template, number)):
            return "" if version.image.startswith("resolve:") else version.image
        newest = self.newest.get(group.name)
        source = f"{template}:{number}" if number else template
        builds = {one.instance_id: one.build.template for one in group.instances}
        return newest.image if newest and builds.get(newest.name) == source else ""


@dataclass(frozen=True)
class _Around:
    """What units' facts are joined with, by an image's id, a traffic source, and a unit; ``changed``: since when units
    with a policy, and ``since`` when all others are as they are.
    """

    launches: _Launches
    known_images: Mapping[str, Image]
    zones: Mapping[str, Mapping[str, frozenset[str]]]
    histories: Histories | None
    changed: Mapping[str, datetime]
    since: datetime

    def unit(self, facts: Facts) -> Unit:
        last, members = facts.state.last_day, tuple(map(self._member, facts.groups))
        created = min(member.setup.created for member in members)
        return Unit(
            name=facts.unit,
            now=facts.now,
            policy=facts.policy,
            members=members,
            idle_days=(facts.now.date() - last).days if last else None,
            open_days=(facts.now - max(created, self.changed.get(facts.unit, self.since))).days,
            history=self.histories.history(facts.unit) if self.histories else None,
        )

    def _member(self, group: Group) -> Member:
        setup, newest = self.launches.setup(group), self.launches.newest.get(group.name)
        sources = group.target_groups + group.load_balancers
        known = all(source in self.zones for source in sources)
        zones = {name: zones for source in sources for name, zones in self.zones.get(source, {}).items()}
        by_instance = newest.spot if newest else None
        return Member(
            group=group,
            setup=setup,
            spot=by_instance if setup.spot is None else setup.spot,
            images=tuple(map(self.known_images.get, self.launches.images(group))),
            balancer_zones=zones if known else None,
        )


def _named(versions: Sequence[Version]) -> dict[tuple[str, str], Version]:
    """Returns versions by all the names that groups have for them."""
    named: dict[tuple[str, str], Version] = {}
    for one in sorted(versions, key=lambda one: one.number):
        names = (str(one.number), "$Latest", *(["$Default"] if one.is_default else []))
        named |= {(one.template, name): one for name in names}
    return named


def _changed(item: Mapping[str, Any]) -> datetime:
    """Returns when a policy was last changed; people can have written anything there."""
    try:
        return moments.parse(str(item["changed_at"]))
    except (KeyError, ValueError, OverflowError):
        return datetime.min.replace(tzinfo=UTC)


def _newest(machines: Sequence[Machine]) -> dict[str, Machine]:
    """Returns the newest instance of each group."""
    return {one.group: one for one in sorted(machines, key=lambda one: (one.launched, one.name)) if one.group}
