"""Runs a deployment for a short business day: groups with all kinds of policies, terminations, and benchmarks."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from local.demo.benchmark import put_data
from local.demo.deployment_view import DeploymentView
from local.demo.failure import DemoFailed
from local.demo.groups import Groups
from local.launcher import LocalAccount
from local.project import ROOT, tool_environment
from local.settings import local_settings

NAME = "Troop"
"""The name of the deployment."""

_COMMAND_SECONDS = 420
_RECOVER_SECONDS = 300
_UP_SECONDS = 120
_MANY = 3
"""The largest number of terminations in one tick."""

OFFICE = {
    "time_zone": "America/Los_Angeles",
    "weekdays": ["MON", "TUE", "WED", "THU", "FRI"],
    "open": "09:00",
    "close": "15:00",
    "country": "US",
    "subdivision": None,
    "extra_dates": [],
    "freezes": [],
}
"""A second calendar in another time zone, with holidays and weekends."""


CALENDAR = "office"
"""The name of the second calendar."""


@dataclass(frozen=True)
class Cast:
    """A group of the scene.

    Attributes:
        tags: with the prefix ``troop:`` on AWS.
        hit: whether it must lose an instance during the scene.
    """

    name: str
    size: int = 2
    tags: dict[str, str] = field(default_factory=dict)
    hit: bool = False


CAST = (
    Cast("checkout", 3, {"owner": "payments"}, hit=True),
    Cast("search", 3, hit=True),
    Cast("web-frontend", 3, {"owner": "storefront"}, hit=True),
    Cast("recommendations", hit=True),
    Cast("thumbnails", hit=True),
    Cast("catalogue", hit=True),
    Cast("sign-in", 2, {"owner": "identity"}, hit=True),
    Cast("ledger"),
    Cast("payments-vault", 2, {"protected": "true"}),
    Cast("session-cache", 1, {"min_healthy": "2"}),
    Cast("newsletter", 2, {"probability": "0"}),
    Cast("billing", 2, {"calendar": CALENDAR, "probability": "0.2", "owner": "finance"}),
    Cast("reports", 2, {"calendar": CALENDAR, "probability": "0.4"}),
    Cast("warehouse", 2, {"calendar": CALENDAR, "probability": "0.5", "method": "drain"}),
    Cast("partner-api", 2, {"calendar": CALENDAR, "probability": "0.3", "min_days_between": "2"}),
)

HIT = next(one.name for one in CAST if one.hit)
"""A unit that has an event."""

OPTED_OUT = ("ledger", "--reason", "month-end closing", "--owner", "accounting", "--until")

BENCHMARK = (
    *("bench", "run", "benchmarks/s3-range-read/benchmark.yaml", "--size", "smoke"),
    *("--set", "scale={n1: {fleets.drivers.count: 1}, n2: {fleets.drivers.count: 2}, n3: {fleets.drivers.count: 3}}"),
    *("--set", "phases.measure.warm_up=4s", "--set", "phases.measure.measured=20s", "--set", "parameters.threads=1"),
)
RUNNING = (
    *("bench", "run", "benchmarks/s3-range-read/benchmark.yaml", "--size", "smoke", "--no-wait"),
    *("--set", "phases.measure.measured=5m", "--set", "phases.measure.timeout=10m", "--set", "parameters.threads=1"),
)
"""A benchmark that measures while the pictures are taken."""


def settings(now: datetime, minutes: int) -> dict[str, Any]:
    """Returns the context (keys as in cdk.json) of the deployment at an aware moment.

    Args:
        minutes: the length of its business day.
    """
    local = local_settings(now, minutes)
    calendars = {**local["troop:calendars"], CALENDAR: _with_a_freeze(now)}
    return local | {"troop:deployment": NAME, "troop:calendars": calendars, "troop:max_in_flight": _MANY}


def _with_a_freeze(now: datetime) -> dict[str, Any]:
    """Returns the second calendar with a freeze from Wednesday to Friday of the week after next."""
    monday = now.date() + timedelta(days=14 - now.weekday())
    first, last = (monday + timedelta(days=days) for days in (2, 4))
    return {**OFFICE, "freezes": [{"from": first.isoformat(), "to": last.isoformat(), "reason": "winter sale"}]}


class Scene:
    """A scene in a running account.

    Args:
        say: receives messages about the progress.
        minutes: the length of the business day, over which terminations are spread.
    """

    def __init__(self, account: LocalAccount, say: Callable[[str], None], minutes: int) -> None:
        self._account, self._say, self._minutes = account, say, minutes
        self.outputs: dict[str, str] = {}
        self.run_id = ""

    def play(self) -> None:
        """Runs the scene, from the deployment to the end of a benchmark and the middle of another one.

        Raises:
            DemoFailed, TimeoutError: something did not happen in time.
        """
        self.outputs = self._account.deploy(settings(datetime.now(UTC), self._minutes))
        self.view = DeploymentView(self._account, self.outputs)
        self._watch_every_minute()
        put_data(self._account)
        self._bring_up_groups()
        self._await_recoveries()
        self._say("a benchmark in three steps")
        self.troop(*BENCHMARK)
        self.run_id = str(self.view.api.get("benchmarks").body["runs"][0]["run"])
        self._say(f"the benchmark {self.run_id} has ended; another one begins")
        self.troop(*RUNNING)
        self._await_operations(str(self.view.api.get("benchmarks").body["runs"][0]["run"]))

    def troop(self, *words: str) -> str:
        """Runs the command `troop`; returns its output. Raises DemoFailed if it fails."""
        command = [str(ROOT / "scripts" / "troop"), *words]
        environment = {**tool_environment(), **self._account.exports}
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"troop {' '.join(words)} took longer than {_COMMAND_SECONDS} s") from None
        if done.returncode:
            raise DemoFailed(f"troop {' '.join(words)} ended with {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout

    def _watch_every_minute(self) -> None:
        """Runs the watchdog and the reaper every minute instead of every 15, so that pictures show their metrics."""
        scheduler = self._account.client("scheduler")
        for page in scheduler.get_paginator("list_schedules").paginate():
            for summary in page["Schedules"]:
                if "Watchdog" in summary["Name"] or "ReaperSchedule" in summary["Name"]:
                    which = {"GroupName": summary["GroupName"], "Name": summary["Name"]}
                    schedule = scheduler.get_schedule(**which)
                    settings = {key: schedule[key] for key in ("FlexibleTimeWindow", "Target")}
                    scheduler.update_schedule(**which, **settings, ScheduleExpression="rate(1 minute)")

    def _bring_up_groups(self) -> None:
        self._say(f"{len(CAST)} groups; every instance is a process")
        groups = Groups(self._account.client("autoscaling"), self._account.client("ec2"))
        for one in CAST:
            tags = [
                {"Key": f"troop:{key}", "Value": value, "PropagateAtLaunch": False} for key, value in one.tags.items()
            ]
            groups.create(one.name, one.size, Tags=tags)
        last = f"{datetime.now(UTC).year}-12-31"
        self.troop("opt-out", *OPTED_OUT, last)
        for one in CAST:
            groups.await_in_service(one.name, one.size, _UP_SECONDS)

    def _await_recoveries(self) -> None:
        units = {one.name for one in CAST if one.hit}
        until, count = time.monotonic() + 60 * self._minutes + _RECOVER_SECONDS, 0
        while True:
            self._account.check()
            recovered = {event["unit"] for event in self.view.events() if event["status"] == "RECOVERED"}
            if len(recovered) > count:
                count = len(recovered)
                self._say(f"{count} of {len(units)} groups lost an instance and have recovered")
            if units <= recovered:
                return
            if time.monotonic() > until:
                raise DemoFailed(f"no termination or no recovery: {', '.join(sorted(units - recovered))}")
            time.sleep(1)

    def _await_operations(self, run: str) -> None:
        until = time.monotonic() + _UP_SECONDS
        while not any(cell["operations"] for cell in self.view.api.get(f"benchmarks/{run}/live").body["cells"]):
            if time.monotonic() > until:
                raise DemoFailed(f"no node of the benchmark {run} reports operations")
            time.sleep(5)
