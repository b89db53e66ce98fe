"""Measures what the command needs from its start to its end, beside the AWS CLI.

    python -m perf.command [--pairs 9] [--groups 50]

Each command and its peer run in turn, because shared processors change their speed: compare the ratio of the medians.
Times are processor seconds of whole processes, user and system together, with byte code and without a terminal. A
server on this machine answers over TLS, as CloudFormation, as Auto Scaling and as Troop's API. So the time is without
the way to AWS, on which the command sends one request more. Both list the same groups, and trust as many authorities as
on a machine of a user.

The AWS CLI is that of .venv-node, version 1. Its command for the same list is the peer of the commands that have none.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, ClassVar
from urllib.parse import parse_qs, parse_qsl, urlsplit
from xml.sax.saxutils import escape

import botocore

from cli.client.api import Answer
from perf import ROOT
from tests.serving import Quiet
from tests.unit.cli.conftest import FakeApi
from tests.unit.tls import certificate, serving
from troop.shared.outputs import API_URL

LIST = "autoscaling describe-auto-scaling-groups"
PEERS = {"--help": "--version", "groups --help": "--version", "groups": LIST, "status": LIST, "why web-0": LIST}
"""Commands of the AWS CLI by the command to compare with each."""

REGION = "eu-central-1"
STACK = f"arn:aws:cloudformation:{REGION}:111122223333:stack/Troop/0"


class Aws(Quiet):
    """Answers as the parts of AWS that both commands ask."""

    protocol_version = "HTTP/1.1"
    api: ClassVar[FakeApi]

    def do_POST(self) -> None:
        [action] = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())["Action"]
        answer = self._stack() if action == "DescribeStacks" else self._groups()
        self.answer(200, _xml({f"{action}Response": {f"{action}Result": answer}}).encode(), Content_Type="text/xml")

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        answer = self.api.request("GET", place.path.removeprefix("/v1/"), dict(parse_qsl(place.query)))
        self.answer(answer.status, json.dumps(answer.body).encode(), Content_Type="application/json")

    def _stack(self) -> Any:
        output = {"OutputKey": API_URL, "OutputValue": f"https://{self.headers['Host']}/v1/"}
        stack = {"StackName": "Troop", "StackId": STACK, "StackStatus": "CREATE_COMPLETE", "Outputs": [output]}
        return {"Stacks": [stack | {"CreationTime": "2026-11-20T10:00:00Z"}]}

    def _groups(self) -> Any:
        instance = {"AvailabilityZone": f"{REGION}a", "LifecycleState": "InService", "HealthStatus": "Healthy"}
        instances = [instance | {"InstanceId": f"i-{number:017}"} for number in range(3)]
        group = {"MinSize": 1, "MaxSize": 4, "DesiredCapacity": 3, "Instances": instances}
        tags = [{"Key": "owner", "Value": "web", "PropagateAtLaunch": "true"}]
        names = (f"{unit}-v1" for unit in self.api.units)
        return {"AutoScalingGroups": [{"AutoScalingGroupName": name, **group, "Tags": tags} for name in names]}


def _xml(value: Any) -> str:
    """Returns a value as the query protocol of AWS writes it."""
    if isinstance(value, Mapping):
        return "".join(f"<{key}>{_xml(one)}</{key}>" for key, one in value.items())
    if isinstance(value, list):
        return "".join(f"<member>{_xml(one)}</member>" for one in value)
    return escape(str(value))


def seconds(command: str, environment: Mapping[str, str]) -> float:
    """Runs a command, and returns its processor seconds.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command.split(), env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9, help="runs of each command")
    parser.add_argument("--groups", type=int, default=50, help="Auto Scaling groups of the account")
    options = parser.parse_args()
    Aws.api = FakeApi()
    for number in range(options.groups):
        Aws.api.add(f"web-{number}", owner="web")
    Aws.api.refusals["GET", "benchmarks"] = [Answer(200, {"runs": [], "cursor": None})]
    Aws.api.refusals["GET", "fleets"] = [Answer(200, {"fleets": [], "cursor": None})]
    troop, aws = ROOT / "scripts" / "troop", ROOT / ".venv-node" / "bin" / "aws"
    with tempfile.TemporaryDirectory() as scratch, serving(Aws, own := certificate(Path(scratch))) as url:
        trusted = Path(scratch) / "trusted.pem"
        trusted.write_bytes((Path(botocore.__file__).parent / "cacert.pem").read_bytes() + own.read_bytes())
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": scratch,
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL_CLOUDFORMATION": url,
            "AWS_ENDPOINT_URL_AUTO_SCALING": url,
            "AWS_CA_BUNDLE": str(trusted),
        }
        print(f"{'troop':12} {'aws':42} {'ms of both':>13} {'ratio':>6} {'of pairs':>12}")
        for ours, theirs in PEERS.items():
            commands = f"{troop} {ours}", f"{aws} {theirs}"
            rounds = [[seconds(command, environment) for command in commands] for _ in range(options.pairs + 1)]
            own_median, peer = (median(column) for column in zip(*rounds[1:], strict=True))  # the first is a warm-up
            ratios = [one / other for one, other in rounds[1:]]
            print(
                f"{ours:12} {theirs:42} {own_median * 1000:6.0f} {peer * 1000:6.0f} {own_median / peer:6.2f}"
                f" {min(ratios):5.2f}..{max(ratios):.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
