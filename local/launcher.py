"""The local account for a program's lifetime.

    with LocalAccount() as account:
        outputs = account.deploy(local_settings(now))
        account.client("dynamodb").scan(TableName=outputs["EventsTable"])

Nothing it started is left when the block ends, on Ctrl-C or SIGTERM, or after this process was killed.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import types
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from .deployment import Deployer
from .process import AccountProcess, Progress, keep_logs_only, new_run_directory
from .project import ROOT, check_set_up

_ANSWER_SECONDS = 120
"""The longest that the account takes to answer where many other processes run."""


def _silent(_message: str) -> None:
    pass


class LocalAccount:
    """A context manager; the account is there inside its block.

    `name`: begins the name of the run directory under `.local/`. `processes`: whether instances are processes.
    `notice_seconds`: how long a group takes to notice that an instance is gone. `wait_scale`: what Wait states of state
    machines are multiplied by, as instances boot in seconds. `secret`: what CloudFormation generates where a template
    wants a secret, as Troop's does for its salt; a random one if empty. `progress`: told what happens.
    Entering raises NotSetUpError or AccountError.
    """

    def __init__(
        self,
        name: str = "account",
        *,
        processes: bool = True,
        notice_seconds: float = 1.5,
        wait_scale: float = 0.05,
        secret: str = "",
        progress: Progress = _silent,
    ) -> None:
        self._name = name
        self._settings = {
            "processes": processes,
            "notice_seconds": notice_seconds,
            "wait_scale": wait_scale,
            "secret": secret,
        }
        self._progress = progress
        self._previous_handler: Any = None

    def __enter__(self) -> LocalAccount:
        check_set_up()
        self.run = new_run_directory(self._name)
        self._process = AccountProcess(self.run, self._settings)
        self._on_sigterm()
        try:
            started = self._process.start(self._progress)
        except BaseException:
            self.stop()
            raise
        self.exports: dict[str, str] = started.exports
        self._control, self._token = started.control, started.token
        self._deployer = Deployer(self.run, self.exports, self._progress)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends everything; harmless when repeated. The logs stay, see `run`."""
        self._process.stop()
        keep_logs_only(self.run)
        if self._previous_handler is not None:
            signal.signal(signal.SIGTERM, self._previous_handler)
            self._previous_handler = None

    def _on_sigterm(self) -> None:
        """SIGTERM leaves the block as Ctrl-C does (only the main thread may say so)."""
        if threading.current_thread() is threading.main_thread():

            def leave(number: int, _frame: types.FrameType | None) -> None:
                raise SystemExit(128 + number)

            self._previous_handler = signal.signal(signal.SIGTERM, leave)

    @property
    def pid(self) -> int:
        """Process id of the account."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """The account's log file."""
        return self._process.log

    def check(self) -> None:
        """AccountError if the account has ended by itself."""
        self._process.check()

    def session(self, **credentials: str) -> boto3.Session:
        """A session of the account's root, or of other credentials (boto3.Session's arguments)."""
        arguments = credentials or {
            "aws_access_key_id": self.exports["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": self.exports["AWS_SECRET_ACCESS_KEY"],
        }
        return boto3.Session(**arguments, region_name=self.exports["AWS_REGION"])  # type: ignore[arg-type]

    def client(self, service: str, session: boto3.Session | None = None, **options: Any) -> Any:
        """A client of the account; `options` as for botocore.config.Config."""
        create: Any = (session or self.session()).client
        return create(
            service,
            endpoint_url=self.endpoint(service),
            verify=self.exports["AWS_CA_BUNDLE"],
            config=Config(**{"inject_host_prefix": False, "retries": {"max_attempts": 2}, **options}),
        )

    def endpoint(self, service: str) -> str:
        """The URL at which the account serves a service (named as boto3 names it)."""
        variable = {
            "autoscaling": "AUTO_SCALING",
            "ec2": "EC2",
            "elb": "ELASTIC_LOAD_BALANCING",
            "elbv2": "ELASTIC_LOAD_BALANCING_V2",
            "pricing": "PRICING",
            "service-quotas": "SERVICE_QUOTAS",
        }.get(service, "")
        return self.exports.get(f"AWS_ENDPOINT_URL_{variable}", self.exports["AWS_ENDPOINT_URL"])

    def deploy(self, context: Mapping[str, Any], directory: Path = ROOT, app: str | None = None) -> dict[str, str]:
        """Bootstraps once and deploys an app, the project's own unless told otherwise; the stacks' outputs, with the
        API's address as it is reachable here. DeploymentError with the end of the CLI's output."""
        outputs = self._deployer.deploy(context, directory, app)
        self._call("POST", "mirror")
        return outputs

    def decisions(self) -> list[dict[str, Any]]:
        """Every authorisation decision so far: [{"caller", "action", "resource", "decision", "source", "count"}];
        callers are ARNs of roles and users, source is account, gate, states or scheduler."""
        answer: list[dict[str, Any]] = self._call("GET", "decisions")
        return answer

    def forget_decisions(self) -> None:
        self._call("DELETE", "decisions")

    def instances(self) -> list[dict[str, Any]]:
        """The instances that are processes: [{"id", "address", "state": starting|ready|ended, "directory"}]."""
        answer: list[dict[str, Any]] = self._call("GET", "instances")
        return answer

    def make_scarce(
        self, instance_type: str, left: int, reason: str = "InsufficientInstanceCapacity", market: str = ""
    ) -> None:
        """From now on groups can launch only `left` more instances of a type; further launches fail for `reason` (or
        VcpuLimitExceeded), and the groups' activities say so. `market`: "spot" for scarcity of spot alone, for which
        there are more reasons: UnfulfillableCapacity, MaxSpotInstanceCountExceeded, SpotMaxPriceTooLow. With a code of
        EC2's as the reason, such as Client.InvalidKMSKey.InvalidState, further instances die while they are pending."""
        document = {"instance_type": instance_type, "left": left, "reason": reason, "market": market}
        self._call("POST", "scarcity", document)

    def interrupt(self, instance_id: str, notice_seconds: float | None = None) -> None:
        """Spot takes an instance back: its metadata says so at once, and `notice_seconds` later (two minutes, scaled
        as waits are, if None) it is terminated."""
        self._call("POST", "interrupt", {"id": instance_id, "seconds": notice_seconds})

    def recommend_rebalance(self, instance_id: str) -> None:
        """From now on an instance's metadata says that EC2 expects an interruption."""
        self._call("POST", "rebalance", {"id": instance_id})

    @contextlib.contextmanager
    def transitions_held(self) -> Iterator[None]:
        """Inside the block what a call has begun does not end: instances go on shutting down, groups do not notice that
        they have lost one, and go on being deleted."""
        self._call("POST", "hold")
        try:
            yield
        finally:
            self._call("POST", "release")

    def _call(self, method: str, endpoint: str, document: Mapping[str, Any] | None = None) -> Any:
        body = json.dumps(document).encode() if document is not None else None
        headers = {"Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._control + endpoint, data=body, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
            return json.load(answer)
