"""Measures ``GET /events`` and the original Chaos Monkey API for growing numbers of events in the table.

    python -m perf.events_page [--events 1000 65000 1000000]

The API's function runs in this process and queries dynalite: DynamoDB on LevelDB, which ``npx`` fetches. Its indices
are ranges on disk, as in DynamoDB; emulators with a list in memory examine every item. For each size, it prints the
median time of five pages, the queries of one page, the items that they examine, and the read units that DynamoDB would
charge. A million events take a quarter of an hour to write, and 3 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from typing import Any

from perf import ROOT

DYNALITE = "dynalite@4.0.0"
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
CHAOS = "/simianarmy/api/v1/chaos"
UNITS = 1000
BATCH = 25


@contextmanager
def dynalite(folder: Path) -> Iterator[str]:
    """Runs dynalite inside the block; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["npx", "--yes", DYNALITE, "--host", "127.0.0.1", "--port", str(port), "--createTableMs", "0"]
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    process = subprocess.Popen(
        [*command, "--path", str(folder)], env=os.environ | {"PATH": path}, stdout=subprocess.DEVNULL, process_group=0
    )
    try:
        until = time.monotonic() + 120
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > until:
                sys.exit(f"{' '.join(command)} did not start")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 15)
        process.wait()


def fill(client: Any, begin: int, end: int) -> None:
    from troop.chaos.aws.event_items import to_item
    from troop.chaos.events import Event, Status

    for first in range(begin, end, BATCH):
        puts = []
        for number in range(first, min(first + BATCH, end)):
            at = FIRST + timedelta(seconds=53 * number)
            event = Event(
                event_id=f"{at.date()}#service-{number}",
                unit=f"service-{number % UNITS}",
                day=at.date(),
                status=Status.UNRECOVERED if number % 100 == 0 else Status.RECOVERED,
                at=at,
                group=f"service-{number % UNITS}-v{number // UNITS}",
                instance_id=f"i-{number:017x}",
                zone="us-east-1a",
                method="crash",
                rolled=0.1,
                probability=0.2,
                desired=3,
                terminated_at=at,
                recovered_at=at + timedelta(seconds=90),
                detail="capacity 3 of 3 in service",
            )
            puts.append({"PutRequest": {"Item": to_item(event)}})
        client.batch_write_item(RequestItems={"Events": puts})
        if first % 50_000 < BATCH and first:
            print(f"  {first:,} events", file=sys.stderr, flush=True)


def ask(path: str, query: dict[str, str]) -> Any:
    from handlers import api

    class Context:
        function_name, memory_limit_in_mb, aws_request_id = "api", 512, "request"
        invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:api"

    context: Any = Context()
    answer = api.handler(
        {
            "resource": path,
            "path": path,
            "httpMethod": "GET",
            "headers": {"Accept": "application/json"},
            "multiValueHeaders": {},
            "queryStringParameters": query,
            "multiValueQueryStringParameters": {key: [value] for key, value in query.items()},
            "requestContext": {"requestId": "r", "stage": "v1", "identity": {"userArn": "arn:aws:iam::1:user/a"}},
            "body": None,
            "isBase64Encoded": False,
        },
        context,
    )
    if answer["statusCode"] != 200:
        sys.exit(answer["body"])
    if stopped := answer["multiValueHeaders"].get("Troop-Complete-After"):
        print(f"  stopped at {stopped[0]}")
    body = json.loads(answer["body"])
    return body if isinstance(body, list) else body["events"]


def measure(
    name: str,
    queries: Callable[[], list[tuple[int, int]]],
    query: dict[str, str],
    path: str = "/events",
    repeats: int = 5,
) -> str:
    """Measures one page; returns a line. ``queries`` returns (items examined, bytes) of each query, and clears them."""
    page = ask(path, query)
    queries()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        page = ask(path, query)
        times.append(time.perf_counter() - started)
    costs = queries()
    once = costs[: len(costs) // len(times)]
    examined = sum(items for items, _ in once)
    # Eventually consistent reads: half a unit for every 4 KB that a query examines.
    units = sum(ceil(size / 4096) / 2 for _, size in once)
    seconds = statistics.median(times)
    return f"  {name:<30}{len(page):>7}{seconds * 1000:>8.0f}{len(once):>9}{examined:>10}{units:>8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[1000, 65_000, 1_000_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, dynalite(Path(folder)) as address:
        import boto3

        from tests.tables import create_table
        from tests.unit.account.account import SETTINGS
        from troop.shared.tables import EVENTS

        settings = Path(folder) / "deployment.json"
        settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
        os.environ |= {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "TROOP_EVENTS_TABLE": "Events",
            "TROOP_STATE_TABLE": "State",
            "TROOP_DEPLOYMENT_FILE": str(settings),
            "POWERTOOLS_SERVICE_NAME": "api",
            "POWERTOOLS_TRACE_DISABLED": "true",
            "POWERTOOLS_LOG_LEVEL": "ERROR",
            "TROOP_DEPLOYMENT": "perf",
        }
        from troop.chaos.aws.event_queries import EXAMINED
        from troop.shared.aws.clients import client as shared_client

        seen: list[tuple[int, int]] = []

        def heard(parsed: Any, **_: Any) -> None:
            if "ScannedCount" in parsed:
                # DynamoDB also examines items that a filter drops; they are about as large as the others.
                count = max(1, parsed["Count"])
                size = len(json.dumps(parsed["Items"])) * parsed["ScannedCount"] // count
                if parsed["ScannedCount"] > EXAMINED and "LastEvaluatedKey" in parsed:
                    size = 1 << 20  # a query without a limit ends at DynamoDB's maximum of 1 MB
                seen.append((parsed["ScannedCount"], size))

        def queries() -> list[tuple[int, int]]:
            costs = list(seen)
            seen.clear()
            return costs

        shared_client("dynamodb").meta.events.register("after-call.dynamodb.Query", heard)
        client = boto3.client("dynamodb")
        create_table(client, EVENTS)
        client.get_waiter("table_exists").wait(TableName=EVENTS.name, WaiterConfig={"Delay": 1})
        there = 0
        print(f"  {'page':<30}{'events':>7}{'ms':>8}{'queries':>9}{'examined':>10}{'units':>8}")
        for size in sorted(options.events):
            fill(client, there, size)
            there = size
            newest = FIRST + timedelta(seconds=53 * size)
            print(f"{size:,} events in the table")
            print(measure("newest 50", queries, {"limit": "50"}))
            print(measure("of one unit", queries, {"limit": "50", "unit": "service-7"}))
            print(measure("UNRECOVERED only", queries, {"limit": "50", "status": "UNRECOVERED"}))
            month = f"{newest - timedelta(days=30):%Y-%m-%dT%H:%M:%SZ}"
            print(measure("of one group, from a month ago", queries, {"group": "service-7-v0", "until": month}))
            group_query = {"since": "0", "groupName": "service-7-v0"}
            print(measure("the original's, of one group", queries, group_query, CHAOS, 1))
            print(measure("the original's, of all", queries, {"since": "0"}, CHAOS, 1))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
