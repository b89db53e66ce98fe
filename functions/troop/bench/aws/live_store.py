"""Reads running summaries of nodes from the results bucket, and stores merges of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.cell_store import Listed, content, encoded, newest
from troop.bench.aws.stored_runs import StoredRuns
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, from_document
from troop.bench.definition.roster import from_document as roster_from
from troop.bench.records.live_view import LiveView, parse_view
from troop.measure.live import MOST_BYTES, Live, LiveError, parse

THREADS = 10
"""The number of threads that read: a client has as many connections."""

SECONDS = 10.0
"""The time in which a merge reads running summaries. What it has not read by then is missing in it."""


@dataclass(frozen=True)
class LiveStore:
    """Running summaries and merges.

    Attributes:
        client: S3's, whose calls end soon.
        monotonic: returns seconds.
    """

    client: Any
    bucket: str
    monotonic: Callable[[], float] = time.monotonic

    def merged(self, run: str) -> LiveView | None:
        """Returns the last merge; None if there is none that this version can read.

        Raises:
            ClientError: S3 refused.
        """
        body = StoredRuns(self.client, self.bucket).stored_run(run).read(names.LIVE)
        try:
            return parse_view(json.loads(body)) if body else None
        except (ValueError, RecursionError):
            return None

    def write(self, view: LiveView) -> None:
        """Stores a merge in place of the last one.

        Raises:
            ClientError: S3 refused.
        """
        self.client.put_object(
            Bucket=self.bucket,
            Key=names.live_key(view.run),
            Body=encoded(view.document()),
            ContentType="application/json",
        )

    def definition(self, run: str, cell: str) -> Benchmark | None:
        """Returns a cell's benchmark; None if it cannot be read: a merge can do without."""
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=names.cell_definition_key(run, cell))
            return from_document(json.loads(answer["Body"].read()))
        except (ClientError, BotoCoreError, ValueError, TypeError, KeyError):
            return None

    def roster(self, run: str, cell: str) -> Mapping[str, str]:
        """Returns the roles of a cell's nodes by their ids; none without a roster.

        Raises:
            ClientError: S3 refused.
        """
        name = names.roster_key(run, cell).removeprefix(names.run_prefix(run))
        body = StoredRuns(self.client, self.bucket).stored_run(run).read(name)
        return {node.id: node.role for node in roster_from(json.loads(body)).members} if body else {}

    def summaries(self, run: str, cell: str, since: datetime, roster: Mapping[str, str]) -> tuple[list[Live], int]:
        """Reads the running summaries of a cell's nodes.

        Every node of the deployment may write under its own id into any run, so only those on the roster count.

        Args:
            since: older ones are not read.
            roster: the roles of the nodes by their ids.

        Returns:
            Them, and the number of those that could not be read, or are not of the node's role.

        Raises:
            ClientError: S3 refused to list them.
        """
        until = self.monotonic() + SECONDS
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=names.live_prefix(run, cell)
        )
        listed = [Listed(o["Key"], o["LastModified"], o["Size"]) for page in pages for o in page.get("Contents", [])]
        by_node = {names.node_of(one.key): one for one in listed if one.modified >= since}
        recent = newest((one for node, one in by_node.items() if node in roster), len(roster))
        lives: list[Live] = []
        with ThreadPoolExecutor(THREADS) as pool:
            for first in range(0, len(recent), THREADS):
                if self.monotonic() >= until:
                    break
                some = pool.map(self._read, recent[first : first + THREADS])
                lives += [live for live in some if live and live.role == roster[live.node]]
        return lives, len(recent) - len(lives)

    def _read(self, listed: Listed) -> Live | None:
        """Returns one node's; None for anything else than it may write."""
        if listed.size > MOST_BYTES:
            return None
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=listed.key)
            live = parse(json.loads(content(answer, MOST_BYTES)))
        except (ClientError, BotoCoreError, LiveError, ValueError, RecursionError):
            return None
        return live if live.node == names.node_of(listed.key) else None
