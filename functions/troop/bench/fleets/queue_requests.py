"""Builds what Launch requests for a fleet's queue: an endpoint of the network, and two queues of SQS that only it
reaches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from troop.bench.definition import names
from troop.bench.definition.living import Queue
from troop.bench.fleets.fleet_requests import LaunchImpossibleError, Subnet, tag_specification

FORMAT = "troop.queue/1"
"""Format of the document that tells workers of their queue."""

WORKER_ACTIONS = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage")
"""What workers do with their queue; AWS checks the batches of these calls as the same actions."""

RETENTION_SECONDS = 14 * 24 * 3600
"""The longest time for which SQS keeps a message: a task is lost after that, and so is a dead letter."""

LONGEST_POLL_SECONDS = 20
"""The longest time for which SQS lets a request for a task wait: it makes the fewest requests of idle workers."""

_REFUSED = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""Characters that SQS refuses in a message, besides control characters, which JSON always escapes."""

AT_ONCE, MOST_BYTES = 10, 256 * 1024
"""The most messages, and bytes of their bodies, in one call."""

MOST_TASKS = 1000
"""The most tasks of one request to the API."""

LONGEST_TASK, LONGEST_TASKS = 200_000, 4_000_000
"""The most bytes of the body of a task, and of all bodies of a request to the API."""

TASK_ID, TASK_KEY = r"[A-Za-z0-9._-]{1,128}", r"[A-Za-z0-9._-]{1,100}"
"""The id of a task, and the beginning of ids, which leaves room for a number."""

T = TypeVar("T")


@dataclass(frozen=True)
class EndpointService:
    """The service to which an endpoint of SQS leads.

    Attributes:
        name: as :func:`service_names` has it.
        zones: names of the zones in which AWS offers it.
        host: the name of SQS in the region, which requests must carry.
    """

    name: str
    zones: frozenset[str]
    host: str


@dataclass(frozen=True)
class Site:
    """Where an endpoint is created: its service, and ids of the network and of its subnets."""

    service: EndpointService
    vpc: str
    subnets: Sequence[str]


@dataclass(frozen=True)
class Endpoint:
    """An endpoint in the network: its id, and its DNS names, that of the region before those of zones."""

    id: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A task for the workers of a fleet."""

    id: str
    body: str

    @property
    def message(self) -> str:
        """The body of its message on the queue, in characters that SQS accepts."""
        document = json.dumps({"id": self.id, "body": self.body}, ensure_ascii=False, separators=(",", ":"))
        return _REFUSED.sub(lambda match: f"\\u{ord(match[0]):04x}", document)

    def size(self) -> int:
        """Returns the bytes of this message."""
        return len(self.message.encode())


def service_names(region: str) -> list[str]:
    """Returns the names that SQS's endpoint service can have: China has another one than the other partitions."""
    return [f"{prefix}com.amazonaws.{region}.sqs" for prefix in ("", "cn.")]


def endpoint_subnets(service: EndpointService, subnets: Iterable[Subnet], used: Collection[str]) -> list[str]:
    """Returns the ids of the subnets of an endpoint: one in each zone of the fleet that offers the service. Nodes of
    other zones reach it there, too.

    Args:
        subnets: of the network.
        used: ids of those in which nodes are launched.

    Raises:
        LaunchImpossibleError: no zone of the fleet offers the service.
    """
    by_zone: dict[str, str] = {}
    for subnet in sorted(subnets, key=lambda one: one.id):
        if subnet.id in used:
            by_zone.setdefault(subnet.zone, subnet.id)
    offered = [subnet for zone, subnet in sorted(by_zone.items()) if zone in service.zones]
    if not offered:
        raise LaunchImpossibleError(
            f"AWS offers endpoints of {service.name} in {', '.join(sorted(service.zones)) or 'no zone'}, but not in "
            f"{', '.join(sorted(by_zone))}, the fleet's zones: name other zones, or leave out queue"
        )
    return offered


def endpoint_request(name: str, site: Site, group: str, queue: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Returns the request for the endpoint of a fleet's queue. A repeated request creates no second one.

    Without private DNS, every fleet can have its own: a network has one private name for a service. It would lead to
    the same addresses: workers connect to the endpoint's own name, and ask in the name of SQS. The group lets only
    nodes of the cell in, on every port.

    Args:
        name: of the security group, which no other fleet has.
        group: id of that group.
        queue: ARN of the fleet's queue, which is all that the endpoint leads to.
    """
    allowed = {"Effect": "Allow", "Principal": "*", "Action": list(WORKER_ACTIONS), "Resource": queue}
    return {
        "VpcEndpointType": "Interface",
        "VpcId": site.vpc,
        "ServiceName": site.service.name,
        "SubnetIds": list(site.subnets),
        "SecurityGroupIds": [group],
        "PrivateDnsEnabled": False,
        "PolicyDocument": _policy(allowed),
        "ClientToken": name,
        "TagSpecifications": tag_specification("vpc-endpoint", {**tags, "Name": name}),
    }


def queue_attributes(arn: str, queue: Queue, endpoint: str, dead: str | None, key: str | None) -> dict[str, str]:
    """Returns the attributes of a fleet's queue, or of the queue of its dead letters.

    Args:
        arn: its own.
        endpoint: id of the endpoint through which workers reach it.
        dead: ARN of the queue of its dead letters; None for that queue itself.
        key: ARN of the deployment's own KMS key; None for a key of SQS.
    """
    redrive = {"deadLetterTargetArn": dead, "maxReceiveCount": queue.tries}
    return {
        "VisibilityTimeout": str(queue.lease),
        "ReceiveMessageWaitTimeSeconds": str(LONGEST_POLL_SECONDS),
        "MessageRetentionPeriod": str(RETENTION_SECONDS),
        "Policy": queue_policy(arn, endpoint),
        **({"KmsMasterKeyId": key} if key else {"SqsManagedSseEnabled": "true"}),
        **({"RedrivePolicy": json.dumps(redrive)} if dead else {}),
    }


def queue_policy(arn: str, endpoint: str) -> str:
    """Returns a queue's policy, which allows nothing: roles have their permissions from IAM.

    It refuses workers that come through any endpoint but the fleet's. The roles of nodes, also of other deployments,
    allow requests through endpoints only. People of the account who may read queues come without one, and can look.
    """
    elsewhere = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": list(WORKER_ACTIONS),
        "Resource": arn,
        "Condition": {"StringNotEquals": {"aws:SourceVpce": endpoint}, "Null": {"aws:SourceVpce": "false"}},
    }
    open_text = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": arn,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return _policy(elsewhere, open_text)


def only_from(queue: str) -> dict[str, str]:
    """Returns the attribute by which a queue takes dead letters from one queue only, by its ARN."""
    return {"RedriveAllowPolicy": json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [queue]})}


def queue_document(queue: Queue, url: str, service: EndpointService, endpoint: Endpoint) -> dict[str, Any]:
    """Returns what workers must know of their queue."""
    return {
        "format": FORMAT,
        "url": url,
        "host": service.host,
        "endpoints": list(endpoint.hosts),
        "lease": queue.lease,
    }


def queue_arns(run: str, cell: str, region: str, account_arn: str) -> tuple[str, str]:
    """Returns the ARNs of a fleet's queue and of that of its dead letters, before they exist.

    Args:
        account_arn: any ARN of the account, which shows its number and its partition.
    """
    _, partition, _, _, account, *_ = account_arn.split(":")
    beginning = f"arn:{partition}:sqs:{region}:{account}:"
    return beginning + names.queue_name(run, cell), beginning + names.dead_queue_name(run, cell)


def batches(items: Iterable[T], size_of: Callable[[T], int], most: int, largest: int) -> Iterator[list[T]]:
    """Yields items in their order, as many together as one call may send; reads no further than the next batch needs.

    Args:
        size_of: returns the bytes of an item.
        most, largest: the most items of a batch, and the most bytes.
    """
    batch, size = list[T](), 0
    for item in items:
        own = size_of(item)
        if batch and (len(batch) == most or size + own > largest):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += own
    if batch:
        yield batch


def _policy(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
