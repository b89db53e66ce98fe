"""Reads what the rules need of an account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.chaos.aws.groups import to_group
from troop.chaos.aws.state_table import PolicyTable, StateTable
from troop.chaos.facts import Account, Facts, facts_of_units
from troop.chaos.groups import Group
from troop.risks.assessment import Survey
from troop.risks.aws import resource_reads
from troop.risks.aws.leftover_prices import LeftoverPrices
from troop.risks.facts import History, Image, Machine, Member, Setup, Unit
from troop.risks.listing import Listing
from troop.risks.rule import Subject
from troop.shared.settings import Settings

_NO_HISTORY = History()


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

    def read(self, now: datetime, histories: Mapping[str, History] | None) -> Survey:
        """Reads everything once. What cannot be read is missing, but for the groups and the tables.

        Args:
            histories: by unit; None if the events could not be read.

        Raises:
            ClientError, BotoCoreError: the groups or the tables cannot be read.
        """
        ec2, prices = self.client("ec2"), self.prices()
        setups = list(self._setups())
        machines = resource_reads.read_machines(ec2)
        newest = _newest(machines.rows)
        images = resource_reads.read_images(ec2, {machine.image for machine in newest.values() if machine.image})
        zones = resource_reads.read_balancer_zones(self.client("elbv2"), self.client("elb"))
        image_snapshots = resource_reads.read_own_snapshots_of_images(ec2)
        templates = {name for _, setup in setups for name, _ in setup.templates}
        around = _Around(
            {group.name: setup for group, setup in setups},
            newest,
            {image.image_id: image for image in images.rows},
            dict(zones.rows),
            histories,
        )
        listings: dict[Subject, Listing[Any]] = {
            Subject.UNIT: Listing(tuple(around.unit(facts) for facts in self._facts(setups, now))),
            Subject.INSTANCE: machines,
            Subject.VOLUME: resource_reads.read_volumes(ec2, now, prices.volume),
            Subject.SNAPSHOT: resource_reads.read_snapshots(ec2, now, image_snapshots, prices.snapshot),
            Subject.TEMPLATE: resource_reads.read_templates(ec2, now, templates, machines),
            Subject.ADDRESS: resource_reads.read_addresses(ec2, now, prices.address),
        }
        problems = [one.problem for one in (*listings.values(), images, zones, image_snapshots) if one.problem]
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

    def _facts(self, setups: Sequence[tuple[Group, Setup]], now: datetime) -> Iterator[Facts]:
        view = self.state.view()
        account = Account(
            groups=[group for group, _ in setups],
            items=self.policies.all(),
            states=view.units,
            switch=view.switch,
            counts=view.counts,
        )
        return facts_of_units(account, self.settings, b"", now)


@dataclass(frozen=True)
class _Around:
    """What units' facts are joined with, by the name of a group, an image's id, a traffic source, and a unit."""

    setups: Mapping[str, Setup]
    newest: Mapping[str, Machine]
    images: Mapping[str, Image]
    zones: Mapping[str, Mapping[str, frozenset[str]]]
    histories: Mapping[str, History] | None

    def unit(self, facts: Facts) -> Unit:
        last, histories = facts.state.last_day, self.histories
        return Unit(
            name=facts.unit,
            now=facts.now,
            policy=facts.policy,
            members=tuple(self._member(group) for group in facts.groups),
            idle_days=(facts.now.date() - last).days if last else None,
            history=None if histories is None else histories.get(facts.unit, _NO_HISTORY),
        )

    def _member(self, group: Group) -> Member:
        setup, newest = self.setups[group.name], self.newest.get(group.name)
        sources = group.target_groups + group.load_balancers
        known = all(source in self.zones for source in sources)
        zones = {name: zones for source in sources for name, zones in self.zones.get(source, {}).items()}
        by_instance = newest.spot if newest else None
        return Member(
            group=group,
            setup=setup,
            spot=by_instance if setup.spot is None else setup.spot,
            image=self.images.get(newest.image) if newest else None,
            balancer_zones=zones if known else None,
        )


def _newest(machines: Sequence[Machine]) -> dict[str, Machine]:
    """Returns the newest instance of each group."""
    return {one.group: one for one in sorted(machines, key=lambda one: (one.launched, one.name)) if one.group}
