"""What a deployment has for benchmarks, in moto, and requests to run one."""

from __future__ import annotations

import base64
import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.tables import create_table
from tests.unit.account.account import Account, inputs
from tests.unit.account.asking import ANNA, ask
from tests.unit.account.fast_moto import once
from troop.bench.aws.price_cache import PriceCache
from troop.bench.aws.run_table import RunTable
from troop.shared.aws.clients import client
from troop.shared.tables import RUNS

BUCKET = "results-bucket"
MACHINES = "arn:aws:states:eu-central-1:123456789012:stateMachine:"

FILE: dict[str, Any] = {
    "name": "reads",
    "expires_after": "2h",
    "fleets": {"drivers": {"count": 2, "instance_type": "c7g.large"}},
    "phases": [
        {"name": "measure", "roles": ["drivers"], "script": "read.py", "measured": "5m", "timeout": "10m"},
    ],
    "parameters": {"threads": 32},
    "sizes": {"smoke": {"fleets.drivers.count": 1, "parameters.threads": 4}},
}
FILES = {"read.py": b"print('read')\n", "ranges.csv": b"\x00\xff"}
KEYS = (
    *("RESULTS_BUCKET", "RUNS_TABLE", "BENCHMARK_MACHINE", "TEARDOWN_MACHINE", "NETWORK_VPC", "NETWORK_SUBNETS"),
    *("NETWORK_IS_OWN", "REPORT_FUNCTION"),
)
CALLS = 18
"""To AWS, of a request to run a benchmark that nothing speaks against."""
REPORT = "arn:aws:lambda:eu-central-1:123456789012:function:report"


@dataclass
class Half:
    """The deployment's half for benchmarks."""

    account: Account
    zones: list[str]

    def environment(self) -> dict[str, str]:
        machines = (f"{MACHINES}benchmark", f"{MACHINES}teardown")
        values = (BUCKET, "Runs", *machines, self.vpc, ",".join(self.subnets), "true", REPORT)
        return {f"TROOP_{key}": value for key, value in zip(KEYS, values, strict=True)}

    def deploy(self) -> None:
        self.s3 = client("s3")
        self.vpc, self.subnets = once(f"deploy half {self.zones}", self._create)

    def _create(self) -> tuple[str, list[str]]:
        """The network and its subnets."""
        where: Any = {"LocationConstraint": "eu-central-1"}
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        create_table(self.account.dynamodb, RUNS)
        role = client("iam").create_role(RoleName="machines", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        for name in ("benchmark", "teardown"):
            client("stepfunctions").create_state_machine(name=name, definition="{}", roleArn=role)
        self.keep_prices()
        vpc = self.account.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        return vpc, [
            self.account.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=zone)["Subnet"][
                "SubnetId"
            ]
            for n, zone in enumerate(self.zones)
        ]

    def keep_prices(self) -> None:
        """Those of FILE, as if another run had asked for them."""
        cache, now = PriceCache(self.account.dynamodb, "State"), self.account.clock()
        cache.write("c7g.large", {"amount": Decimal("0.0775"), "currency": "USD"}, now, timedelta(days=1))
        gp3 = {"gib": Decimal("0.0952"), "iops": [Decimal("0.006")], "throughput_mib": Decimal("0.0476")}
        cache.write("gp3", gp3 | {"currency": "USD"}, now, timedelta(days=1))

    @property
    def runs(self) -> RunTable:
        return RunTable(self.account.dynamodb, "Runs", sleep=lambda seconds: None)

    def started(self, machine: str = "benchmark") -> dict[str, Any]:
        """Inputs of the executions that were started, by their name."""
        return inputs(MACHINES + machine)

    def objects(self) -> dict[str, bytes]:
        """What is in the bucket, by key."""
        listed = self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {o["Key"]: self.s3.get_object(Bucket=BUCKET, Key=o["Key"])["Body"].read() for o in listed}

    def stage(self, content: bytes) -> str:
        """Puts an artifact; its hash."""
        sha256 = hashlib.sha256(content).hexdigest()
        self.s3.put_object(Bucket=BUCKET, Key=f"artifacts/{sha256}", Body=content)
        return sha256


FLEET_KEYS = (
    "count",
    "fallback_types",
    "image",
    "instance_type",
    "placement",
    "root_volume_gib",
    "volumes",
    "zone_names",
    "zones",
)
"""Keys of a fleet that tests change."""


def changed(**changes: Any) -> dict[str, Any]:
    """The file with some keys of its own, or of its fleet."""
    document = copy.deepcopy(FILE)
    for key, value in changes.items():
        (document["fleets"]["drivers"] if key in FLEET_KEYS else document)[key] = value
    return document


def request(key: str = "k1", files: Mapping[str, bytes] = FILES, **more: Any) -> dict[str, Any]:
    """A body of POST /benchmarks; ``more`` replaces its parts."""
    coded = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return {"definition": copy.deepcopy(FILE), "files": coded, "key": key, **more}


def post(caller: str = ANNA, **how: Any) -> tuple[int, Any]:
    return ask("POST", "/benchmarks", request(**how), caller)


def problems(**how: Any) -> dict[str, str]:
    """What is wrong with a request, and it must be something."""
    status, body = post(**how)
    assert status == 400, body
    return {problem["where"]: problem["problem"] for problem in body["problems"]}
