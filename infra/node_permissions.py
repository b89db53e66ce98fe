"""Lists the permissions of nodes, and of the endpoint of their network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from infra.bench_permissions import ARTIFACT_OBJECTS, DATA_OBJECTS, RUN_OBJECTS, WORK_RESULTS, queue_arns
from infra.permissions import allow
from troop.bench.fleets.queue_requests import WORKER_ACTIONS

WRITTEN_BY_NODES = (
    f"{RUN_OBJECTS}/nodes/${{aws:userid}}.json",
    f"{RUN_OBJECTS}/phases/*/${{aws:userid}}.json",
    f"{RUN_OBJECTS}/output/*/${{aws:userid}}.log.gz",
    f"{RUN_OBJECTS}/interruptions/${{aws:userid}}.json",
    f"{RUN_OBJECTS}/live/${{aws:userid}}.json",
    f"{RUN_OBJECTS}/faults/*/${{aws:userid}}.json",
    f"{RUN_OBJECTS}/reports/${{aws:userid}}.json",
)
"""The only objects that a node writes: no instructions to other nodes, no results, and nothing in the name of another
node. The user id of an instance's session is ``ROLEID:INSTANCE-ID``.
"""

_DATA = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")


def node(
    results: s3.IBucket, buckets: Sequence[str], vpc: str, *, own_data: bool, queues: bool
) -> list[iam.PolicyStatement]:
    """Allows a node to read its instructions, write its measurements, and read the allowed buckets, all through an
    endpoint of its network: a request that comes another way has no source VPC. So credentials that leave a node are
    of no use.

    Args:
        vpc: id of the nodes' network.
        own_data: whether it may also create, read and delete objects to measure with.
        queues: whether it may work on a queue, and write results that do not exist yet.
    """
    inside = {"StringEquals": {"aws:SourceVpc": vpc}}
    own = (results.arn_for_objects(keys) for keys in (RUN_OBJECTS, ARTIFACT_OBJECTS))
    return [
        allow(["s3:GetObject"], *own, conditions=inside),
        allow(["s3:PutObject"], *(results.arn_for_objects(keys) for keys in WRITTEN_BY_NODES), conditions=inside),
        *_read(buckets, inside),
        *([allow(_DATA, results.arn_for_objects(DATA_OBJECTS), conditions=inside)] if own_data else []),
        *(_works(results, inside) if queues else ()),
    ]


def _works(results: s3.IBucket, inside: dict[str, Any]) -> list[iam.PolicyStatement]:
    """Allows working on the queues of fleets, but not on their dead letters, and writing each result once.

    The role is that of all nodes, so it does not say which fleet's queue: the fleet's endpoint does, see
    :func:`troop.bench.fleets.queue_requests.endpoint_request`.
    """
    tasks, _ = queue_arns(cdk.Stack.of(results))
    # Uploads in parts have no such header, so they are not allowed.
    once = {**inside, "Null": {"s3:if-none-match": "false"}}
    return [
        allow(WORKER_ACTIONS, tasks, conditions=inside),
        allow(["s3:PutObject"], results.arn_for_objects(WORK_RESULTS), conditions=once),
    ]


def endpoint(results: s3.IBucket, buckets: Sequence[str], *, own_data: bool) -> list[iam.PolicyStatement]:
    """Allows what the own network can reach in S3 with any credentials: the deployment's bucket, the allowed buckets,
    and Amazon Linux's packages.
    """
    packages = f"al2023-repos-{cdk.Aws.REGION}-de612dc2"
    return [
        allow(["s3:GetObject", "s3:PutObject"], results.arn_for_objects("*")),
        *_read(buckets),
        *([allow(["s3:DeleteObject"], results.arn_for_objects(DATA_OBJECTS))] if own_data else []),
        allow(["s3:GetObject"], f"{_bucket(packages)}/*"),
    ]


def _read(buckets: Sequence[str], conditions: dict[str, Any] | None = None) -> list[iam.PolicyStatement]:
    if not buckets:
        return []
    return [
        allow(["s3:GetObject"], *(f"{_bucket(name)}/*" for name in buckets), conditions=conditions),
        allow(["s3:ListBucket"], *(_bucket(name) for name in buckets), conditions=conditions),
    ]


def _bucket(name: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:s3:::{name}"
