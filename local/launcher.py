"""Starts the local account for the duration of a block.

    with LocalAccount() as account:
        outputs = account.deploy(local_settings(now))
        account.client("dynamodb").scan(TableName=outputs["EventsTable"])

All its processes end with the block, on Ctrl-C or SIGTERM, or after this process was killed.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
import types
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from .deployment import Deployer
from .process import AccountError, AccountProcess, Progress, keep_logs_only, new_run_directory
from .project import ROOT, check_set_up

_ANSWER_SECONDS = 120
"""Seconds in which the account must answer, also on a busy machine."""


def obstacle(module: str) -> str:
    """Returns what this machine lacks for a module of local.account; empty if it lacks nothing.

    Asks in a process of its own, because a namespace belongs to a thread.
    """
    check = [sys.executable, "-c", f"from local.account.{module} import problem; print(problem() or '')"]
    return subprocess.run(check, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def lacks_networks(progress: Progress) -> bool:
    """Checks whether this machine cannot give instances networks of their own, and says why."""
    if why := obstacle("network"):
        progress(f"instances reach everything that this machine reaches: {why}")
    return bool(why)


def lacks_views(progress: Progress) -> bool:
    """Checks whether this machine cannot give instances views of their own, and says why."""
    if why := obstacle("inside.room"):
        progress(f"Systems Manager manages no instance: {why}")
    return bool(why)


def _silent(_message: str) -> None:
    pass


class LocalAccount:
    """A context manager that runs the account inside its block. Entering raises NotSetUpError or AccountError.

    Args:
        name: prefix of the run directory under `.local/`.
        processes: whether instances are processes.
        reach: whether instances reach only what their security groups allow, if this machine can enforce it.
        kernels: whether instances with limits of their reach are kernels of their own (User-Mode Linux).
        notice_seconds: the delay after which a group notices a lost instance.
        wait_scale: factor for the waits of state machines, because instances boot in seconds.
        health_seconds: the time from which an instance serves until its targets are healthy.
        lost_events: the share of events of EC2 and Auto Scaling that never come, from 0 to 1.
        secret: the value of generated secrets in CloudFormation templates, such as Troop's salt; random if empty.
        progress: receives messages about the progress.
    """

    def __init__(
        self,
        name: str = "account",
        *,
        processes: bool = True,
        reach: bool = True,
        kernels: bool = False,
        notice_seconds: float = 1.5,
        wait_scale: float = 0.05,
        health_seconds: float = 0.0,
        lost_events: float = 0.0,
        secret: str = "",
        progress: Progress = _silent,
    ) -> None:
        if kernels and (why := obstacle("network") or obstacle("kernels")):
            raise AccountError(f"instances cannot be kernels: {why}")
        self._name = name
        self._settings = {
            "processes": processes,
            "reach": reach and processes and not lacks_networks(progress),
            "kernels": kernels,
            "views": kernels or (processes and not lacks_views(progress)),
            "notice_seconds": notice_seconds,
            "wait_scale": wait_scale,
            "health_seconds": health_seconds,
            "lost_events": lost_events,
            "secret": secret,
        }
        self._progress = progress
        self._previous_handler: Any = None
        self._lock = threading.Lock()

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
        self._clients: dict[str, Any] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops everything; can be repeated. The logs remain in `run`."""
        self._process.stop()
        keep_logs_only(self.run)
        if self._previous_handler is not None:
            signal.signal(signal.SIGTERM, self._previous_handler)
            self._previous_handler = None

    def _on_sigterm(self) -> None:
        """Makes SIGTERM leave the block as Ctrl-C does. Only the main thread can set a handler."""
        if threading.current_thread() is threading.main_thread():

            def leave(number: int, _frame: types.FrameType | None) -> None:
                raise SystemExit(128 + number)

            self._previous_handler = signal.signal(signal.SIGTERM, leave)

    @property
    def pid(self) -> int:
        """The process id of the account."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """The account's log file."""
        return self._process.log

    def check(self) -> None:
        """Raises AccountError if the account has ended unexpectedly."""
        self._process.check()

    def wait(self, condition: Callable[[], bool], problem: str, seconds: float = 900) -> None:
        """Waits until a condition holds. Raises AccountError with ``problem`` after ``seconds``, or as `check` does."""
        until = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > until:
                raise AccountError(f"{problem} after {seconds:.0f} s")
            time.sleep(0.5)

    def session(self, **credentials: str) -> boto3.Session:
        """Returns a session of the account's root, or of other credentials (arguments of boto3.Session)."""
        arguments = credentials or {
            "aws_access_key_id": self.exports["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": self.exports["AWS_SECRET_ACCESS_KEY"],
        }
        return boto3.Session(**arguments, region_name=self.exports["AWS_REGION"])  # type: ignore[arg-type]

    def client(self, service: str, session: boto3.Session | None = None, **options: Any) -> Any:
        """Returns a client of the account. `options`: arguments of botocore.config.Config."""
        if session or options:
            return self._new_client(service, session or self.session(), **options)
        with self._lock:
            if service not in self._clients:  # a new one takes as long as several calls
                self._clients[service] = self._new_client(service, self.session())
            return self._clients[service]

    def _new_client(self, service: str, session: Any, **options: Any) -> Any:
        return session.client(
            service,
            endpoint_url=self.endpoint(service),
            verify=self.exports["AWS_CA_BUNDLE"],
            config=Config(**{"inject_host_prefix": False, "retries": {"max_attempts": 2}, **options}),
        )

    def endpoint(self, service: str) -> str:
        """Returns the account's URL for a service, by its name in boto3."""
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
        """Deploys an app, by default the project's; bootstraps the account first if necessary.

        Returns:
            The outputs of the stacks, with the API's local address.

        Raises:
            DeploymentError: the CDK failed; with the end of its output.
        """
        outputs = self._deployer.deploy(context, directory, app)
        self._call("POST", "mirror")
        return outputs

    def decisions(self) -> list[dict[str, Any]]:
        """Lists all authorisation decisions: [{"caller", "action", "resource", "decision", "source", "count"}].

        Callers are ARNs of roles and users; the source is account, gate, states, scheduler or endpoint.
        """
        answer: list[dict[str, Any]] = self._call("GET", "decisions")
        return answer

    def forget_decisions(self) -> None:
        self._call("DELETE", "decisions")

    def instances(self) -> list[dict[str, Any]]:
        """Lists the instances with processes: [{"id", "address", "state": starting|ready|ended, "directory"}]."""
        answer: list[dict[str, Any]] = self._call("GET", "instances")
        return answer

    def make_scarce(
        self,
        instance_type: str,
        left: int,
        reason: str = "InsufficientInstanceCapacity",
        market: str = "",
        zone: str = "",
    ) -> None:
        """Limits the capacity: groups can launch `left` more instances of a type, and further launches fail. If that is
        more than before, groups launch what they lack.

        Args:
            left: the number of instances that can still be launched.
            reason: an error in the groups' activities, or VcpuLimitExceeded. With market "spot", also
                UnfulfillableCapacity, MaxSpotInstanceCountExceeded or SpotMaxPriceTooLow. With an EC2 code, such as
                Client.InvalidKMSKey.InvalidState, further instances die while they are pending.
            market: "spot" to limit Spot only.
            zone: the only zone that is limited; all zones together if empty.
        """
        document = {"instance_type": instance_type, "left": left, "reason": reason, "market": market, "zone": zone}
        self._call("POST", "scarcity", document)

    def interrupt(self, instance_id: str, notice_seconds: float | None = None) -> None:
        """Interrupts a Spot instance: its metadata shows the notice at once, and it is terminated later.

        `notice_seconds`: the time in between; if None, two minutes, scaled like waits.
        """
        self._call("POST", "interrupt", {"id": instance_id, "seconds": notice_seconds})

    def impair(self, instance_id: str) -> None:
        """Lets EC2's status check of an instance fail once."""
        self._call("POST", "impair", {"id": instance_id})

    def recommend_rebalance(self, instance_id: str) -> None:
        """Adds a rebalance recommendation to the metadata of an instance."""
        self._call("POST", "rebalance", {"id": instance_id})

    def let_run(self, instance_id: str, *, agent: bool = True, atd: bool = True) -> None:
        """Decides whether the SSM agent and atd may run on an instance. Those that must not are killed."""
        self._call("POST", "inside", {"id": instance_id, "agent": agent, "atd": atd})

    def kill_shell(self, instance_id: str, command_id: str) -> None:
        """Kills the shell of a command of Run Command on an instance."""
        self._call("POST", "kill-shell", {"id": instance_id, "command": command_id})

    def disturb_commands(self, *, lost_answers: int = 0, late_seconds: float = 0.0) -> None:
        """Lets requests for commands go wrong: so many accepted ones are answered by an error, and all are delivered so
        many seconds later.
        """
        self._call("POST", "commands", {"lost_answers": lost_answers, "late_seconds": late_seconds})

    @contextlib.contextmanager
    def transitions_held(self) -> Iterator[None]:
        """Holds all transitions inside the block: instances stay in shutting-down, groups do not notice lost instances,
        and deletions of groups do not finish.
        """
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
