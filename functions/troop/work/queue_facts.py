"""Reads the facts of a fleet's queue, which the agent stores on its node."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from troop.measure.s3.addresses import address_of, endpoint_of
from troop.work.errors import WorkError
from troop.work.work_folder import WorkFolder

FORMAT = "troop.queue/1"


@dataclass(frozen=True)
class QueueFacts:
    """The queue and the place of results.

    Attributes:
        url: of the queue, as SQS knows it.
        service: scheme and host of requests.
        endpoints: hosts to connect to.
        lease: seconds for which a task belongs to its worker.
        bucket, results: the bucket of results, and the beginning of their keys.
    """

    url: str
    service: str
    endpoints: tuple[str, ...]
    lease: int
    region: str
    bucket: str
    results: str

    def result_path(self, task: str, variables: Mapping[str, str] = os.environ) -> tuple[str, str]:
        """Returns scheme and host of a result, and its path."""
        address = address_of(self.bucket, self.region, endpoint_of(variables))
        return f"{'https' if address.is_tls else 'http'}://{address.host}", address.path(f"{self.results}{task}")


def folder_of(variables: Mapping[str, str] = os.environ) -> WorkFolder:
    """Returns the folder of this node's workers.

    Raises:
        WorkError: the agent did not start this process.
    """
    path = variables.get("TROOP_WORK")
    if not path:
        raise WorkError("TROOP_WORK is not set: workers run as processes of a fleet's scripts")
    return WorkFolder(Path(path))


def read(folder: WorkFolder, variables: Mapping[str, str] = os.environ) -> QueueFacts:
    """Reads the queue's facts.

    Raises:
        WorkError: the fleet has no queue, or the file is damaged.
    """
    if not folder.queue.exists():
        raise WorkError("the fleet has no queue: its file must say `queue: true`")
    try:
        document = json.loads(folder.queue.read_bytes())
        if document["format"] != FORMAT:
            raise ValueError(f"the format is {document['format']!r}: must be {FORMAT}")
        url, host, region, bucket, results = (
            str(document[name]) for name in ("url", "host", "region", "bucket", "results")
        )
        lease, endpoints = int(document["lease"]), tuple(map(str, document.get("endpoints") or ()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WorkError(f"cannot read {folder.queue}: {error!r}") from None
    if local := endpoint_of(variables, "SQS"):
        return QueueFacts(url, local.rstrip("/"), (), lease, region, bucket, results)
    return QueueFacts(url, f"https://{host}", endpoints, lease, region, bucket, results)
