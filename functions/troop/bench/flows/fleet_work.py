"""Checks the work of a standing fleet: counts its tasks, fits its sizes to them, and its groups to the sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.queue_ages import QueueAges
from troop.bench.aws.work_queues import WorkQueues, is_denied
from troop.bench.definition import names, standing
from troop.bench.definition.living import WorkSample
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.flows.fleet_limits import FleetLimits
from troop.bench.flows.fleet_sizes import FleetSizes, WorkRound
from troop.bench.flows.fleet_view import CELL, Reading, standing_of
from troop.bench.living import scaling
from troop.bench.living.scaling import Sizing
from troop.shared.malformed import MalformedItemError


@dataclass(frozen=True)
class FleetWork:
    """The work of a deployment's fleets."""

    record: FleetRecord
    sizes: FleetSizes
    limits: FleetLimits
    queues: WorkQueues
    ages: QueueAges

    def check(self, reading: Reading) -> tuple[Reading, WorkRound]:
        """Counts the tasks, scales the roles that follow them, resizes the groups, and moves the moment at which they
        expire. Returns the reading as its claims left it.

        Raises:
            RunClosedError: the fleet was closed in the meantime; nothing is launched for it.
            ClientError: AWS refused a part without which the others mean nothing; the next check tries again.
        """
        failures: list[str] = []
        if reading.fleet.queue is not None:
            try:
                reading = self._follow(reading, self._counted(reading, failures))
            except (ClientError, BotoCoreError) as error:
                if is_denied(error):
                    reading, news = self._uncounted(reading, str(error))
                    failures += news
                else:
                    failures.append(f"the tasks were not counted: {error}")
        reading, sized = self.sizes.check(reading)
        failures += self._expire(reading)
        if reading.fleet.queue is not None:  # the orders follow from what is decided last, perhaps by another check
            reading = replace(reading, fleet=standing_of(self.sizes.runs.get(reading.run)))
        return reading, replace(sized, failures=tuple(failures))

    def _counted(self, reading: Reading, failures: list[str]) -> WorkSample:
        counts, oldest = self.queues.counts(reading.run, CELL), None
        if counts.waiting or counts.in_work:
            try:
                oldest = self.ages.oldest(names.queue_name(reading.run, CELL), reading.at)
            except (ClientError, BotoCoreError) as error:  # the sizes do not depend on it
                failures.append(f"the age of the oldest task is unknown: {error}")
        return WorkSample(reading.at, reading.fleet.submitted, counts.waiting, counts.in_work, counts.dead, oldest)

    def _uncounted(self, reading: Reading, why: str) -> tuple[Reading, list[str]]:
        """Records that the tasks are unknown, so that the sizes stay. Returns that as a failure only when it is new:
        the deployment may have no queues any more, and then every check finds the same.
        """
        fleet = reading.fleet
        withheld = dict.fromkeys(fleet.scales, "its tasks cannot be counted: Troop may not, or the queue is gone")
        if fleet.uncounted:
            return reading, []
        claimed = self.record.claim(reading.run, fleet, work=None, uncounted=True, needs={}, withheld=withheld)
        if claimed is None:
            return reading, []
        return replace(reading, fleet=claimed), [f"the tasks cannot be counted: {why}"]

    def _follow(self, reading: Reading, work: WorkSample) -> Reading:
        """Records the tasks, and scales the roles that follow them, as far as the limits allow. Of overlapping checks
        only the one that first records its decision scales.
        """
        fleet = reading.fleet
        sizings = {
            role: scaling.sized(scale, fleet.desired[role], work, fleet.needs.get(role, ()), reading.at)
            for role, scale in fleet.scales.items()
        }
        desired, withheld = self._limited(reading, sizings)
        claimed = self.record.claim(
            reading.run,
            fleet,
            work=work,
            uncounted=False,
            may_lack_tasks=fleet.may_lack_tasks or work.is_aged,
            samples=scaling.sampled(fleet.samples, work),
            needs={role: sizing.needs for role, sizing in sizings.items()},
            withheld=withheld,
        )
        if claimed is None:
            return reading
        reading = replace(reading, fleet=claimed)
        return reading if desired == claimed.desired else self._scaled(reading, desired)

    def _limited(self, reading: Reading, sizings: Mapping[str, Sizing]) -> tuple[dict[str, int], dict[str, str]]:
        """Returns the desired nodes by role that the limits allow, and why some roles get fewer. Roles that shrink come
        first: they make room for the others.
        """
        desired, withheld = dict(reading.fleet.desired), dict[str, str]()
        for role, sizing in sorted(sizings.items(), key=lambda item: item[1].count - desired[item[0]]):
            so_far = replace(reading.fleet, desired=desired)
            try:
                count, why = self.limits.fitting(reading.record, so_far, role, sizing.count, reading.at)
            except MalformedItemError as error:
                count, why = desired[role], f"its work needs {sizing.count} nodes, but its costs are unknown: {error}"
            desired = {**desired, role: count}
            withheld |= {role: why} if why else {}
        return desired, withheld

    def _scaled(self, reading: Reading, desired: Mapping[str, int]) -> Reading:
        fleet, now = reading.fleet, reading.at
        most = self.limits.settings.max_nodes_total
        try:
            scaled = self.record.scale(reading.run, fleet, desired, standing.ITSELF, now, most)
        except BadBenchmarkError:  # other runs have taken the nodes since: the next check finds fewer
            return reading
        if not scaled:
            return reading
        return replace(reading, fleet=replace(fleet, desired=desired, scaled_at=now, scaled_by=standing.ITSELF))

    def _expire(self, reading: Reading) -> list[str]:
        """Moves the end of groups and queues to that on record, which only moves later. Returns what AWS refused.

        The queues come first: the groups say whether anything is left to do. Queues that nobody may tag keep no group
        from its new end, at which its nodes would go.
        """
        ends, failures = reading.record.expires_at, list[str]()
        late = [one for one in reading.groups if one.exists and (one.expires_at is None or one.expires_at < ends)]
        try:
            if late and reading.fleet.queue is not None:
                self.queues.expire(reading.run, CELL, ends)
        except (ClientError, BotoCoreError) as error:
            failures.append(f"a queue does not have its new end: {error}")
            if not is_denied(error):
                return failures
        for group in late:
            try:
                self.sizes.groups.expire(reading.run, CELL, group, ends)
            except (ClientError, BotoCoreError) as error:
                failures.append(f"a group does not expire at its new end: {error}")
        return failures
