"""Checks the health of a standing fleet: merges what its nodes report, repairs nodes, and notifies people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.standing_groups import StandingGroups
from troop.bench.definition.living import Repair, RoleDigest
from troop.bench.definition.standing import Place
from troop.bench.flows.fleet_view import Reading
from troop.bench.living import digest, findings, healing
from troop.bench.living.findings import Message
from troop.shared.aws.alarm_topics import AlarmTopics

MOST_CALLS = 100
"""The most nodes that one check marks as unhealthy: each is a call. The next check marks the others."""


@dataclass(frozen=True)
class HealthRound:
    """The result of one check.

    Attributes:
        digests: health by role; empty if no role is watched.
        values: those of the checks that have a number, by name.
        repairs: what this check has decided.
        limited: why a person must act, as sentences.
        failures: what AWS refused; the next check tries again.
    """

    digests: Mapping[str, RoleDigest] = field(default_factory=dict)
    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    repairs: tuple[Repair, ...] = ()
    limited: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class FleetHealth:
    """The health of a deployment's fleets.

    Attributes:
        deployment: its name, for people.
    """

    record: FleetRecord
    groups: StandingGroups
    topics: AlarmTopics
    deployment: str

    def check(self, reading: Reading) -> tuple[Reading, HealthRound]:
        """Decides repairs and notifications, and carries them out. Returns the reading as its claims left it.

        Of overlapping checks only the one that first records its decision acts on it. What an earlier check has
        recorded, and may not have carried out, any check carries out again: that changes nothing a second time.
        """
        fleet, now = reading.fleet, reading.at
        if not fleet.watched:
            return reading, HealthRound()
        nodes = digest.watched(fleet, reading.groups, reading.nodes, reading.registered, reading.reports, now)
        members = {member.id for group in reading.groups for member in group.members}
        healed = healing.heal(fleet, nodes, members, now)
        sure = digest.confirmed(nodes, fleet)
        checked = digest.digests(sure, fleet.watched) | findings.queue_warning(fleet.work)
        news = findings.find(fleet.announced, checked, now)
        changes: dict[str, Any] = {"repairs": healed.on_record} if healed.repairs else {}
        if news.on_record != fleet.announced:
            changes["announced"] = news.on_record
        repairs, messages = healed.repairs, news.messages
        if changes:
            claimed = self.record.claim(reading.run, fleet, **changes)
            if claimed is None:
                repairs, messages = (), ()
            reading = replace(reading, fleet=claimed or fleet)
        failures = self._replace(reading)
        reading, unsent = self._send(reading, messages)
        digests = digest.digests(nodes, fleet.watched)
        values = digest.values(nodes)
        return reading, HealthRound(digests, values, repairs, healed.limited, (*failures, *unsent))

    def _replace(self, reading: Reading) -> list[str]:
        """Marks the nodes that are to be replaced as unhealthy. Returns what AWS refused."""
        members = [member for group in reading.groups for member in group.members]
        serving = {member.id for member in members if member.place is Place.SERVING}
        failures = []
        for node in healing.to_replace(reading.fleet.repairs, serving, reading.at)[:MOST_CALLS]:
            try:
                self.groups.mark_unhealthy(node)
            except (ClientError, BotoCoreError) as error:
                failures.append(f"{node} was not replaced: {error}")
        return failures

    def _send(self, reading: Reading, messages: Iterable[Message]) -> tuple[Reading, list[str]]:
        """Notifies people, and records that. Returns the reading after that, and what the topics refused."""
        failures = []
        for message in messages:
            subject = message.subject(self.deployment, reading.record.name)
            text = message.text(reading.record.name, reading.run)
            try:
                self.topics.send(subject, text, act_now=message.check.actionable)
            except (ClientError, BotoCoreError) as error:
                failures.append(f"{message.key} was not published: {error}")
                continue
            if (after := self.record.mark_sent(reading.run, reading.fleet, message.key)) is not None:
                reading = replace(reading, fleet=after)
        return reading, failures
