"""Creates the queue of a standing fleet, and the endpoint through which only its nodes reach it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.aws.fleets import Fleets
from troop.bench.aws.work_queues import WorkQueues
from troop.bench.definition import names
from troop.bench.definition.living import Queue
from troop.bench.fleets.fleet_requests import Subnet
from troop.bench.fleets.queue_requests import (
    Site,
    endpoint_subnets,
    only_from,
    queue_arns,
    queue_attributes,
    queue_document,
)
from troop.bench.records.record import Kind, Launch, Resource

Create = Callable[[Kind, str, Callable[[], Any]], Any]
"""Creates one resource, by its kind and name, if the launch still has the right to, and records it."""


@dataclass(frozen=True)
class Queueing:
    """Creates queues of one deployment.

    Attributes:
        account: any ARN of the account.
        key: ARN of the deployment's own KMS key; None for keys of SQS.
    """

    fleets: Fleets
    queues: WorkQueues
    region: str
    account: str
    key: str | None

    def site(self, vpc: str, subnets: Sequence[Subnet], used: Sequence[str]) -> Site:
        """Returns where the endpoint of a fleet goes.

        Args:
            subnets: of the network.
            used: ids of those in which nodes are launched.

        Raises:
            LaunchImpossibleError: AWS offers no endpoint there.
        """
        service = self.fleets.endpoint_service()
        return Site(service, vpc, endpoint_subnets(service, subnets, used))

    def create(
        self, launch: Launch, queue: Queue, site: Site, group: str, tags: Mapping[str, str], create: Create
    ) -> dict[str, Any]:
        """Creates the endpoint and both queues; a repetition finds those of an earlier try. Returns what workers must
        know of their queue.

        Args:
            group: id of the cell's security group.
            create: called for each resource.

        Raises:
            LaunchImpossibleError: AWS refuses for good, or a queue of this name is not the run's.
        """
        run, cell = launch.run, launch.cell
        name, dead_name = names.queue_name(run, cell), names.dead_queue_name(run, cell)
        arn, dead_arn = queue_arns(run, cell, self.region, self.account)
        endpoint_name = names.security_group_name(run, cell)
        endpoint = create(
            Kind.ENDPOINT,
            endpoint_name,
            lambda: self.fleets.endpoint(endpoint_name, site, group, arn, tags),
        )
        dead = queue_attributes(dead_arn, queue, endpoint.id, None, self.key)
        own = queue_attributes(arn, queue, endpoint.id, dead_arn, self.key)
        dead_url = create(
            Kind.QUEUE, dead_name, lambda: self.queues.create(dead_name, dead, {**tags, "Name": dead_name})
        )
        url = create(Kind.QUEUE, name, lambda: self.queues.create(name, own, {**tags, "Name": name}))
        try:
            self.queues.change(dead_url, only_from(arn))
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidAttributeName":  # China's SQS may not know it
                raise
        return queue_document(queue, url, site.service, endpoint)


def planned(run: str, cell: str, site: Site, now: datetime) -> Iterator[Resource]:
    """Yields what :class:`Queueing` creates for a fleet."""
    yield Resource(run, cell, Kind.ENDPOINT, names.security_group_name(run, cell), now, zones=len(site.subnets))
    for name in (names.queue_name(run, cell), names.dead_queue_name(run, cell)):
        yield Resource(run, cell, Kind.QUEUE, name, now)
