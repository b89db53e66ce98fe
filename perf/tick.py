"""Counts the AWS calls of a tick over many groups on local AWS, and estimates its duration on AWS.

    python -m perf.tick [--groups 10000] [--instances 2] [--probability 0.2]

The groups are in a separate deployment on local AWS, without processes for instances. One execution of the workflow
decides for all groups. Calls are counted by kind as IAM sees them, transitions from the execution's history. The
measured seconds are those of the emulators. Seconds on AWS are estimated from the counted calls, the page sizes and
limits of AWS, and the processor time of the function Decide.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local.launcher import LocalAccount
from local.settings import local_settings
from perf import say

LATENCY = {
    "autoscaling:DescribeAutoScalingGroups": 0.5,
    "ec2:DescribeInstances": 0.3,
    "dynamodb:BatchWriteItem": 0.03,
    "dynamodb:Scan": 0.1,
}
"""Assumed seconds of one call on AWS, rounded up; other calls: OTHER. AWS guarantees no latencies."""
OTHER = 0.1

WRITE_UNITS = 4000
"""Write units per second of a new on-demand table (DynamoDB developer guide, "Initial throughput")."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--instances", type=int, default=2, help="instances of each group")
    parser.add_argument("--probability", type=float, default=0.2)
    options = parser.parse_args()
    context = local_settings(datetime.now(UTC)) | {
        "troop:deployment": "Tick",
        "troop:tick_minutes": 15,
        "troop:probability": options.probability,
        "troop:leashed": True,
    }
    # The events of so many launches would call the function that hears them; the tick needs none.
    with LocalAccount("perf-tick", processes=False, lost_events=1, progress=say) as account:
        outputs = account.deploy(context)
        say(f"creating {options.groups:,} groups")
        _create(account, options.groups, options.instances)
        account.forget_decisions()
        started = time.monotonic()
        history = _tick(account, outputs["ChaosStateMachineArn"])
        seconds = time.monotonic() - started
        _report(options.groups, seconds, history, account.decisions(), *_decider(account.pid))


def _create(account: LocalAccount, groups: int, instances: int) -> None:
    ec2, autoscaling = account.client("ec2"), account.client("autoscaling", max_pool_connections=8)
    image = ec2.register_image(Name="tick", RootDeviceName="/dev/xvda", Architecture="arm64")["ImageId"]
    ec2.create_launch_template(
        LaunchTemplateName="tick", LaunchTemplateData={"ImageId": image, "InstanceType": "t4g.nano"}
    )
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]  # a default subnet has 4,091 addresses
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/16")["Subnet"]["SubnetId"]

    def create(number: int) -> None:
        autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=f"service-{number:05d}",
            LaunchTemplate={"LaunchTemplateName": "tick", "Version": "$Latest"},
            MinSize=instances,
            MaxSize=instances + 1,
            DesiredCapacity=instances,
            VPCZoneIdentifier=subnet,
            Tags=[{"Key": "team", "Value": f"team-{number % 50}", "PropagateAtLaunch": False}],
        )

    with ThreadPoolExecutor(4) as pool:
        for done, _ in enumerate(pool.map(create, range(groups)), 1):
            if done % 500 == 0:
                say(f"{done:,} groups")


def _tick(account: LocalAccount, machine: str) -> list[dict[str, Any]]:
    """Runs the workflow once; returns its history."""
    states = account.client("stepfunctions")
    arn = states.start_execution(stateMachineArn=machine, input=json.dumps({"calendar": "default"}))["executionArn"]
    while (seen := states.describe_execution(executionArn=arn))["status"] == "RUNNING":
        time.sleep(0.2)
    if seen["status"] != "SUCCEEDED":
        sys.exit(f"the tick ended {seen['status']}: {seen.get('error')} {seen.get('cause')}")
    pages = states.get_paginator("get_execution_history").paginate(executionArn=arn)
    return [event for page in pages for event in page["events"]]


def _decider(account: int) -> tuple[float, float]:
    """Returns peak MB and processor seconds of the function Decide, whose process outlives the tick."""
    for listed in Path("/proc").glob("[0-9]*"):
        try:
            if listed.joinpath("comm").read_text() == "decide\n" and _parent(_parent(int(listed.name))) == account:
                status = dict(line.split(":", 1) for line in listed.joinpath("status").read_text().splitlines())
                ticks = listed.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
                return int(status["VmHWM"].split()[0]) / 1024, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue  # the process has ended
    sys.exit("the process of the function Decide was not found")


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _report(
    groups: int,
    seconds: float,
    history: list[dict[str, Any]],
    decisions: list[dict[str, Any]],
    peak: float,
    processor: float,
) -> None:
    calls: Counter[str] = Counter()
    for entry in decisions:
        if entry["decision"] == "Allow" and "Role" in entry["caller"]:
            calls[entry["action"]] += entry["count"]
    entered = [event for event in history if event["type"].endswith("StateEntered")]
    times = {e["stateEnteredEventDetails"]["name"]: e["timestamp"] for e in entered}
    sizes = f"{len(entered)} transitions, {len(history)} events of history"
    print(f"\n{groups:,} groups: {seconds:.1f} s on local AWS, {sizes}")
    previous: tuple[str, Any] | None = None
    for name, at in [*times.items(), ("", history[-1]["timestamp"])]:
        if previous:
            print(f"  {previous[0]:<20}{(at - previous[1]).total_seconds():>8.1f} s")
        previous = (name, at)
    print(f"Decide: {processor:.1f} s of one core with imports; peak memory {peak:.0f} MB")
    print(f"\n{'call':<44}{'times':>8}{'s a call':>10}{'seconds on AWS':>16}")
    total = 0.0
    for action, count in calls.most_common():
        each = LATENCY.get(action, OTHER)
        total += count * each
        print(f"{action:<44}{count:>8}{each:>10}{count * each:>16.1f}")
    throttled = groups / WRITE_UNITS
    print(f"{groups:,} writes at {WRITE_UNITS:,} units a second: at least {throttled:.1f} s for the decisions")
    print(f"in sequence, on AWS: about {total:.0f} s, and {processor:.0f} s of processor time; the limit is 300 s")


if __name__ == "__main__":
    main()
