"""Measures how exactly the recovery of a group is known on local AWS: the recorded moment against the true one.

    python -m perf.recovery [--terminations 40] [--groups 8] [--boot 20] [--health 10] [--lost 0]

Each group loses an instance on demand, again and again. The first time is not counted, as all functions start then. A
replacement boots for a random time of at most `boot` seconds. Half of the groups are behind a target group, which finds
it healthy `health` seconds later. The true moment is that at which the instance has written its ready file, plus this
delay.

At the default `wait-scale` of 1, a workflow that hears of no event looks again after two minutes, as on AWS.
"""

from __future__ import annotations

import argparse
import base64
import random
import statistics
import sys
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from local.demo.deployment_view import DeploymentView
from local.demo.groups import Groups
from local.launcher import LocalAccount
from local.settings import open_settings
from perf import say
from troop.chaos.events import OPEN, Status

KNOWN_SECONDS = 5.0
GOAL = 0.99
"""The share of recoveries that are to be known to KNOWN_SECONDS."""

SIZE = 2
PATIENCE = 900.0
"""Seconds until a recovery that is not recorded ends the measurement."""

BOOTS = """#!/bin/sh
sleep {seconds}
touch "$READY_FILE"
exec sleep infinity
"""


@dataclass(frozen=True)
class Recovery:
    """A recovery. Moments are in seconds since the termination.

    Attributes:
        true: when the replacement had booted, and was healthy as a target.
        recorded: when a check first found the group whole.
        short: when a check last found it short of an instance, or Auto Scaling put the replacement into service.
    """

    is_target: bool
    true: float
    recorded: float
    short: float

    @property
    def late(self) -> float:
        return self.recorded - self.true


class Measurement:
    """Terminations in groups of a running account. `health`: the most seconds until a target is healthy."""

    def __init__(self, account: LocalAccount, api: Any, boot: float, health: float) -> None:
        self._account, self._api, self._boot, self._health = account, api, boot, health
        self._groups = Groups(account.client("autoscaling"), account.client("ec2"))

    def create(self, name: str, is_target: bool) -> None:
        more: dict[str, Any] = {"TargetGroupARNs": [self._target_group(name)]} if is_target else {}
        self._groups.create(name, SIZE, BOOTS.format(seconds=0).encode(), **more)
        self._groups.await_in_service(name, SIZE, PATIENCE)

    def repeat(self, name: str, is_target: bool, times: int) -> list[Recovery]:
        """Terminates so many instances of a group, and one before that is not counted."""
        return [self._recover(name, is_target, number) for number in range(times + 1)][1:]

    def _recover(self, name: str, is_target: bool, number: int) -> Recovery:
        self._boot_for(name, random.uniform(0, self._boot))
        before = {member.instance_id for member in self._groups.members(name)}
        self._terminate(name)
        event = self._await_recovery(name)
        (replacement,) = {member.instance_id for member in self._groups.members(name)} - before
        ready = (Path(self._account.run) / "instances" / replacement / "ready").stat().st_mtime
        start = datetime.fromisoformat(event["terminated_at"])
        bounds = [event["short_at"], event["stages"]["in_service"]]
        short = max((datetime.fromisoformat(one) for one in bounds if one), default=start)
        recovery = Recovery(
            is_target,
            ready + (self._health if is_target else 0) - start.timestamp(),
            (datetime.fromisoformat(event["recovered_at"]) - start).total_seconds(),
            max(timedelta(), short - start).total_seconds(),
        )
        moments = f"true {recovery.true:.1f} s, recorded {recovery.recorded:.1f} s ({recovery.late:+.2f})"
        say(f"{name} {number}: {moments}")
        return recovery

    def _boot_for(self, name: str, seconds: float) -> None:
        """Lets the next replacement of a group boot for this time."""
        ec2 = self._account.client("ec2")
        newest = ec2.describe_launch_template_versions(LaunchTemplateName=name, Versions=["$Latest"])
        data = newest["LaunchTemplateVersions"][0]["LaunchTemplateData"]
        script = BOOTS.format(seconds=f"{seconds:.2f}")
        data["UserData"] = base64.b64encode(script.encode()).decode()
        ec2.create_launch_template_version(LaunchTemplateName=name, LaunchTemplateData=data)

    def _terminate(self, name: str) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._api.request(
                "POST", "terminations", body={"group": name, "idempotency_key": str(uuid.uuid4())}
            )
            if answer.status in (200, 202):
                return
            if time.monotonic() > until:
                sys.exit(f"{name}: no termination is accepted: {answer.status} {answer.body}")
            time.sleep(1)

    def _await_recovery(self, name: str) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            event: dict[str, Any] = self._api.get("events", {"unit": name}).body["events"][0]
            if event["status"] not in OPEN:
                if event["status"] != Status.RECOVERED:
                    sys.exit(f"{name} ended {event['status']}: {event['detail']}")
                return event
            time.sleep(0.5)
        sys.exit(f"{name}: no recovery is recorded after {PATIENCE:g} s")

    def _target_group(self, name: str) -> str:
        vpcs = self._account.client("ec2").describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
        created = self._account.client("elbv2").create_target_group(
            Name=name, Protocol="HTTP", Port=8080, VpcId=vpcs[0]["VpcId"]
        )
        return str(created["TargetGroups"][0]["TargetGroupArn"])


def report(recoveries: Sequence[Recovery]) -> None:
    """Prints the share that is known to KNOWN_SECONDS, the median and the worst, and how wide the bounds are."""
    print(f"\n{'groups':<24}{'recoveries':>12}{'known to 5 s':>14}{'median':>9}{'worst':>8}{'within bounds':>15}")
    kinds = {"all": recoveries, "without targets": [r for r in recoveries if not r.is_target]}
    kinds["behind a target group"] = [r for r in recoveries if r.is_target]
    for kind, some in kinds.items():
        if not some:
            continue
        late = [abs(one.late) for one in some]
        share = sum(one <= KNOWN_SECONDS for one in late) / len(some)
        # The account notices a ready file a moment after it was written.
        within = sum(one.short - 1 <= one.true <= one.recorded + 1 for one in some) / len(some)
        figures = f"{share:>13.1%}{statistics.median(late):>8.1f} s{max(late):>6.1f} s{within:>14.0%}"
        print(f"{kind:<24}{len(some):>12}{figures}")
    share = sum(abs(one.late) <= KNOWN_SECONDS for one in recoveries) / len(recoveries)
    print(f"the goal of {GOAL:.0%} is {'reached' if share >= GOAL else 'missed'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terminations", type=int, default=40)
    parser.add_argument("--groups", type=int, default=8, help="groups that lose instances at the same time")
    parser.add_argument("--boot", type=float, default=20.0, help="the most seconds of a boot")
    parser.add_argument("--health", type=float, default=10.0, help="seconds until a target is healthy")
    parser.add_argument(
        "--lost", type=float, default=0.0, help="the share of events of EC2 and Auto Scaling that get lost"
    )
    parser.add_argument("--wait-scale", type=float, default=1.0, help="the factor of the workflow's waits")
    options = parser.parse_args()
    context = open_settings(datetime.now(UTC)) | {
        "troop:deployment": "Recovery",
        "troop:probability": 0,
        "troop:benchmarks": False,
        "troop:dashboards": False,
        "troop:max_in_flight": options.groups,
        "troop:max_per_day": 100_000,
    }
    with LocalAccount(
        "perf-recovery",
        lost_events=options.lost,
        wait_scale=options.wait_scale,
        health_seconds=options.health,
        progress=say,
    ) as account:
        view = DeploymentView(account, account.deploy(context))
        measurement = Measurement(account, view.api, options.boot, options.health)
        kinds = {f"service-{number}": bool(number % 2) for number in range(options.groups)}
        for name, is_target in kinds.items():
            measurement.create(name, is_target)
        times = -(-options.terminations // options.groups)
        with ThreadPoolExecutor(options.groups) as pool:
            runs = [pool.submit(measurement.repeat, name, kind, times) for name, kind in kinds.items()]
            report([one for run in runs for one in run.result()])


if __name__ == "__main__":
    main()
