"""Measures how much processor time and memory `troop report` needs for the events of a period, once they are read.

    python -m perf.period [--events 12 65000] [--units 1000]

The answers of GET /events are synthetic, with stages, verdicts and the states of an alarm. They lie on disk, a page a
line. "decode" is from an answer's text to its values, "summary" from there to the summary, "page" the page and the JSON
file. Each number of events is measured in its own process; "memory" is its peak, with the interpreter.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from cli.chaos.period_reader import read_period
from cli.client.api import Answer
from cli.client.client import EVENTS_PAGE, TroopClient
from perf import peak_mb
from troop.report.period_page import period_page
from troop.shared import moments

NOW = datetime(2026, 11, 20, 18, tzinfo=UTC)
DAYS = 91
LAST = NOW.date()
FIRST = LAST - timedelta(days=DAYS - 1)


def events(count: int, units: int) -> Iterator[dict[str, Any]]:
    """Yields events as the API gives them, the newest first."""
    random = Random(1)
    for number in range(count):
        at = NOW - timedelta(days=DAYS - 1) * number / count
        unit = random.randrange(units)
        seconds = (30 + unit % 200) * random.lognormvariate(0, 0.3)
        yield event(number, f"service-{unit}", at, seconds, random.random())


def event(number: int, unit: str, at: datetime, seconds: float, luck: float) -> dict[str, Any]:
    value, status = ("HELD", "RECOVERED") if luck > 0.06 else ("UNKNOWN", "RECOVERED")
    value, status = ("BROKEN", "RECOVERED" if luck > 0.01 else "UNRECOVERED") if luck < 0.03 else (value, status)
    recovered = status == "RECOVERED"

    def after(part: float) -> str:
        return moments.iso(at + timedelta(seconds=2 + seconds * part))

    alarm = {"name": f"{unit}-errors", "states": [{"at": after(0), "state": "OK"}], "doubt": ""}
    return {
        "id": f"{at.date()}~{unit}~{number}",
        "event_id": f"{at.date()}#{unit}#{number}",
        "unit": unit,
        "owner": f"team-{hash(unit) % 40}",
        "day": at.date().isoformat(),
        "status": status,
        "at": moments.iso(at),
        "group": f"{unit}-v42",
        "instance_id": f"i-{number:017x}",
        "zone": "us-east-1a",
        "method": "crash",
        "rolled": 0.1,
        "probability": 0.2,
        "desired": 3,
        "execution": f"arn:aws:states:us-east-1:123456789012:execution:Troop:{number}",
        "terminated_at": after(0),
        "recovered_at": after(1) if recovered else None,
        "recovery_seconds": round(seconds, 3) if recovered else None,
        "detail": "capacity 3 of 3",
        "launch_failure": "",
        "settles_at": after(1),
        "stages": {
            "noticed": after(0.05),
            "launched": after(0.1),
            "running": after(0.4),
            "in_service": after(0.7),
            "healthy": [{"source": f"arn:aws:elasticloadbalancing:targetgroup/{unit}", "at": after(0.95)}],
        },
        "hypothesis": {"success_alarms": [alarm["name"]], "stop_alarms": [], "recovery_within": 600},
        "verdict": {
            "value": value,
            "why": f"{unit}-errors stayed OK, and the group recovered in time",
            "at": after(1),
            "since": after(0),
            "until": after(1),
            "alarms": [alarm],
        },
    }


class Stored:
    """An API whose answers lie in a file, a page of events a line. It has no groups, and has not read risks."""

    def __init__(self, path: Path) -> None:
        self._lines = path.open(encoding="utf-8")
        self.decoding = 0.0

    def request(
        self, _method: str, path: str, _query: Mapping[str, str] | None = None, _body: Mapping[str, Any] | None = None
    ) -> Answer:
        if path == "groups":
            return Answer(200, {"groups": [], "cursor": None})
        if path == "risks":
            return Answer(200, {"risks": [], "reading": None, "cursor": None})
        began = time.process_time()
        page = json.loads(next(self._lines))
        self.decoding += time.process_time() - began
        return Answer(200, page)


def write(path: Path, count: int, units: int) -> None:
    every = list(events(count, units))
    pages = [every[start : start + EVENTS_PAGE] for start in range(0, count, EVENTS_PAGE)]
    with path.open("w", encoding="utf-8") as file:
        for number, page in enumerate(pages, 1):
            cursor = str(number) if number < len(pages) else None
            file.write(json.dumps({"events": page, "malformed": [], "cursor": cursor}) + "\n")


def measure(path: Path) -> str:
    """Measures one file of answers; returns a line of the table."""
    stored = Stored(path)
    began = time.process_time()
    document = read_period(TroopClient(stored, "arn", "Troop"), FIRST, LAST, NOW, 90, lambda _: None)
    summary = time.process_time() - began
    page = period_page({"deployment": "Troop", "where": "Troop", **document})
    size = len(page) + len(json.dumps(document, indent=1))
    rendered = time.process_time() - began - summary
    totals = document["totals"]
    return (
        f"{totals['terminations']:>9,}{path.stat().st_size / 1e6:>9.1f}{stored.decoding:>10.2f}"
        f"{summary - stored.decoding:>11.2f}{rendered:>8.2f}"
        f"{size / 1e6:>9.1f}{peak_mb():>9.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[12, 65_000])
    parser.add_argument("--units", type=int, default=1000)
    options = parser.parse_args()
    print("seconds of one core; sizes and memory in MB")
    print(f"{'events':>9}{'read':>9}{'decode s':>10}{'summary s':>11}{'page s':>8}{'written':>9}{'memory':>9}")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for count in options.events:
            path = Path(folder) / f"{count}.json"
            with context.Pool(1) as pool:
                pool.apply(write, (path, count, options.units))
            with context.Pool(1) as pool:
                print(pool.apply(measure, (path,)), flush=True)


if __name__ == "__main__":
    main()
