"""Demonstrates a benchmark: one command, a fleet of real processes, a table, a report, and the teardown."""

from __future__ import annotations

import contextlib
import random
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from cli.client.signed_api import SignedApi
from local.demo.failure import DemoFailed
from local.demo.narrator import Narrator
from local.launcher import LocalAccount
from local.project import ROOT, STATE, tool_environment
from local.settings import DATA_BUCKET, local_settings
from troop.shared.tags import RUN_TAG

COMMAND = ("bench", "run", "s3-range-read", "--size", "smoke")
SECONDS = 1200
"""The limit for a command, also on a slow machine."""

OBJECTS, OBJECT_BYTES = 24, 256 << 10


def put_data(account: LocalAccount) -> None:
    """Creates the bucket that the benchmarks of the catalogue read, with a few megabytes of data."""
    s3, dice = account.client("s3"), random.Random(1)
    s3.create_bucket(Bucket=DATA_BUCKET)
    for number in range(OBJECTS):
        s3.put_object(Bucket=DATA_BUCKET, Key=f"objects/{number:02d}", Body=dice.randbytes(OBJECT_BYTES))


class BenchmarkStory:
    """One demonstration, in an account that has a deployment with :func:`local_settings`."""

    def __init__(self, account: LocalAccount, outputs: dict[str, str], narrator: Narrator) -> None:
        self._account, self._tell = account, narrator
        self._api = SignedApi(outputs["ApiUrl"], account.session(), account.exports["AWS_CA_BUNDLE"])
        self._nodes: set[str] = set()
        self._there = ""

    def run(self) -> None:
        """Runs the demonstration. Raises DemoFailed if an expected event does not happen."""
        self._tell.title("A benchmark: two nodes read random ranges of objects in a bucket")
        put_data(self._account)
        self._tell.say(f"the bucket {DATA_BUCKET} has {OBJECTS} objects of {OBJECT_BYTES >> 10} KiB each")
        with self._watching():
            self._command(*COMMAND)
        run = self._show_record()
        self._show_report(run)
        self._show_nothing_left()

    def _command(self, *words: str) -> None:
        """Runs a command and prints its output. `troop bench run` ends with the benchmark."""
        self._tell.say(f"$ troop {' '.join(words)}", "good")
        environment = {**tool_environment(), **self._account.exports, "COLUMNS": "150"}
        command = [str(ROOT / "scripts" / "troop"), *words]
        running = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        limit = threading.Timer(SECONDS, running.kill)
        limit.start()
        try:
            assert running.stdout is not None
            for line in running.stdout:
                self._tell.text(line.rstrip() or " ", "plain")
        finally:
            running.kill()
            code = running.wait()
            limit.cancel()
        if code:
            raise DemoFailed(f"troop {' '.join(words)} ended with {code}")

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """Prints a line for every node that starts."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.5):
                there = self._left()
                tagged = {str(one["InstanceId"]) for one in there["instance"]}
                for one in self._account.instances():
                    node = str(one["id"])
                    if node in tagged and node not in self._nodes:
                        self._tell.say(f"the node {node} boots at {one['address']}, as a separate process", "kill")
                        self._nodes.add(node)
                if self._nodes and not self._there:
                    self._there = _listing(self._left())
                    self._tell.say(f"resources now: {self._there}")

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _show_record(self) -> str:
        """Prints the created resources and checks that each is gone. Returns the id of the run."""
        self._tell.title("The resources of the run, with times of creation and removal")
        run = str(self._get("benchmarks")["runs"][0]["run"])
        record = self._get(f"benchmarks/{run}")
        if record["run"]["status"] != "SUCCEEDED" or not any(cell["results"] for cell in record["cells"]):
            raise DemoFailed(f"the run is {record['run']['status']}: {record['run']['reason']}")
        for resource in record["resources"]:
            if not resource["gone_at"]:
                raise DemoFailed(f"{resource['kind']} {resource['name']} is not recorded as gone")
            times = " → ".join((resource[key] or "-")[11:19] for key in ("created_at", "gone_at"))
            self._tell.text(f"{times}  {resource['kind']:18} {resource['name']}")
        if not self._nodes <= {resource["name"] for resource in record["resources"]}:
            raise DemoFailed("a node is missing from the record")
        return run

    def _show_report(self, run: str) -> None:
        """Downloads the report of the run, which outlives this account."""
        self._tell.title("Its report, a single self-contained page")
        path = STATE / f"troop-report-{run}.html"
        self._command("bench", "report", run, "-o", str(path.relative_to(ROOT)))
        if run not in path.read_text(encoding="utf-8"):
            raise DemoFailed(f"{path} is not the report of {run}")

    def _show_nothing_left(self) -> None:
        leftovers = self._left()
        self._tell.say(f"leftovers: {_listing(leftovers)}", "good")
        if any(leftovers.values()):
            raise DemoFailed(f"leftovers: {leftovers}")
        if not self._there or " 0 " in f" {self._there}":
            raise DemoFailed(f"some kinds of resources did not exist during the run: {self._there}")

    def _left(self) -> dict[str, list[Any]]:
        """Lists all resources with the tag of a run by kind, directly from EC2 and Auto Scaling, and nodes."""
        ec2, tagged = self._account.client("ec2"), [{"Name": "tag-key", "Values": [RUN_TAG]}]
        living = [*tagged, {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
        reservations = ec2.describe_instances(Filters=living)["Reservations"]
        groups = self._account.client("autoscaling").describe_auto_scaling_groups(Filters=tagged)
        return {
            "group": groups["AutoScalingGroups"],
            "instance": [one for reservation in reservations for one in reservation["Instances"]],
            "launch template": ec2.describe_launch_templates(Filters=tagged)["LaunchTemplates"],
            "security group": ec2.describe_security_groups(Filters=tagged)["SecurityGroups"],
            "volume": ec2.describe_volumes(Filters=tagged)["Volumes"],
            "network interface": ec2.describe_network_interfaces(Filters=tagged)["NetworkInterfaces"],
            "node": [one for one in self._account.instances() if one["id"] in self._nodes],
        }

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._api.get(path)
        if answer.status != 200:
            raise DemoFailed(f"GET /{path} returned {answer.status}: {answer.body}")
        body: dict[str, Any] = answer.body
        return body


def _listing(leftovers: dict[str, list[Any]]) -> str:
    return ", ".join(f"{len(ones)} {kind}{'' if len(ones) == 1 else 's'}" for kind, ones in leftovers.items())


def tell_benchmark() -> int:
    """Demonstrates the benchmark only; returns the exit code."""
    narrator = Narrator()
    try:
        narrator.title("Local AWS, and a real cdk deploy of the real app")
        with LocalAccount("bench", progress=narrator.say) as account:
            outputs = account.deploy(local_settings(datetime.now(UTC)))
            BenchmarkStory(account, outputs, narrator).run()
            narrator.say("stopping everything", "dim")
    except DemoFailed as failed:
        narrator.say(f"The benchmark failed: {failed}", "bad")
        return 1
    narrator.say("done: no process is left running", "good")
    return 0
