"""Runs a process for every running instance of moto, with a separate directory and loopback address."""

from __future__ import annotations

import base64
import itertools
import json
import math
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .reach import is_closed, reach_of
from .runner import MARK, OFF_FILE

_POLL_SECONDS = 0.1
_RESERVATION_PORT = 45454
_CONSOLE_TAIL = 64 << 10
_SLEEP = b"#!/bin/sh\nexec sleep infinity\n"


@dataclass
class Hosted:
    """An instance with a process.

    Attributes:
        environment: additional variables of its processes.
        state: starting, ready, ended (its user data ended before it was ready).
        ready_at: when it became ready, by the monotonic clock.
        network: its reach; None for that of this machine.
        managed: whether it has an agent of Systems Manager, and a view of its own, see inside/room.py.
    """

    address: str
    directory: Path
    environment: dict[str, str]
    state: str = "starting"
    ready_at: float = math.inf
    network: dict[str, Any] | None = None
    managed: bool = False


class Host:
    """The host of moto's instances. With `processes=False`, it starts nothing, and every instance is ready at once.

    Args:
        reach: whether instances reach only what their security groups allow, each in a network of its own.
        kernels: whether each of these instances is a kernel of its own.
    """

    def __init__(self, run: Path, processes: bool, reach: bool = False, kernels: bool = False) -> None:
        self.processes = processes
        self._kernels = kernels
        self._reach = reach
        self._root = run / "instances"
        self._addresses = AddressBlock()
        self._address_by_id: dict[str, str] = {}
        self._hosted: dict[str, Hosted] = {}
        self._lock = threading.Lock()
        os.environ[MARK] = str(run)
        self._root.mkdir()
        self._runner = subprocess.Popen(
            [sys.executable, "-m", "local.account.runner", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.runner_pid = self._runner.pid
        threading.Thread(target=self._listen, name="instance-reports", daemon=True).start()

    def address_for(self, instance: Any) -> str:
        """Returns the permanent address of an instance of moto."""
        with self._lock:
            if instance.id not in self._address_by_id:
                self._address_by_id[instance.id] = self._addresses.take(self._reach and is_closed(instance))
            return self._address_by_id[instance.id]

    def is_ready(self, instance_id: str, seconds: float = 0.0) -> bool:
        """Checks whether an instance has been ready for some seconds."""
        if not self.processes:
            return True
        hosted = self._hosted.get(instance_id)
        return hosted is not None and hosted.state == "ready" and time.monotonic() - hosted.ready_at >= seconds

    def describe(self) -> list[dict[str, Any]]:
        """Returns [{"id", "address", "state", "directory"}] of the instances with a process."""
        with self._lock:
            return [
                {"id": key, "address": one.address, "state": one.state, "directory": str(one.directory)}
                for key, one in self._hosted.items()
            ]

    def live(self) -> list[str]:
        """Returns the ids of the instances with a process."""
        with self._lock:
            return list(self._hosted)

    def is_live(self, instance_id: str) -> bool:
        return instance_id in self._hosted

    def home(self, instance_id: str) -> Path:
        """Returns an instance's folder, also after its end."""
        return self._root / instance_id

    def has_network(self, instance_id: str) -> bool:
        """Checks whether an instance has a network of its own."""
        hosted = self._hosted.get(instance_id)
        return hosted is not None and hosted.network is not None

    def console(self, instance_id: str) -> bytes:
        """Returns the last 64 KiB of an instance's output, also after its end, as EC2 does."""
        log = self._root / instance_id / "console.log"
        return log.read_bytes()[-_CONSOLE_TAIL:] if log.exists() else b""

    def follow(
        self,
        backend: Any,
        lock: threading.RLock,
        environment: Callable[[str], dict[str, str]],
        on_ready: Callable[[str], None],
        on_off: Callable[[str], None],
        manages: Callable[[Any], bool],
    ) -> None:
        """Starts a thread that synchronises processes with moto's EC2 backend.

        Args:
            environment: returns additional variables of an instance's process by its id.
            on_ready: called with the id of an instance that has become ready.
            on_off: called with the id of an instance that has turned itself off.
            manages: checks whether the agent of an instance of moto may register with Systems Manager.
        """
        self._reactions = {"ready": on_ready, "off": on_off}
        self._manages = manages
        if self.processes:
            self._environment = environment

            def follow() -> None:
                try:
                    self._follow(backend, lock)
                except Exception:  # noqa: BLE001 - the account cannot work without its host
                    _fail(traceback.format_exc())

            threading.Thread(target=follow, name="instance-host", daemon=True).start()

    def _follow(self, backend: Any, lock: threading.RLock) -> None:
        pause = threading.Event()
        while not pause.wait(_POLL_SECONDS):
            with lock:
                live = {
                    instance.id: instance
                    for reservation in backend.reservations.values()
                    for instance in reservation.instances
                    if instance.state in ("pending", "running")
                }
            for instance_id in self._hosted.keys() - live.keys():
                self._stop(instance_id)
            for instance_id in live.keys() - self._hosted.keys():
                self._start(live[instance_id], list(live.values()))

    def _start(self, instance: Any, others: Sequence[Any]) -> None:
        instance_id, user_data = instance.id, instance.user_data
        directory = self._root / instance_id
        directory.mkdir(exist_ok=True)
        script = directory / "user-data"
        script.write_bytes(_decoded(user_data) if user_data else _SLEEP)
        script.chmod(0o700)
        for mark in ("ready", OFF_FILE):
            (directory / mark).unlink(missing_ok=True)
        environment = self._environment(instance_id)
        hosted = Hosted(self.address_for(instance), directory, environment, managed=self._manages(instance))
        if self._reach and is_closed(instance):
            hosted.network = asdict(reach_of(instance, others, environment))
        with self._lock:
            self._hosted[instance_id] = hosted
        self._launch(instance_id, hosted)

    def reboot(self, instance_id: str) -> None:
        """Ends the processes of an instance and runs its scripts of cloud-init for each boot. As on Amazon Linux, user
        data does not run again, and /run is empty, here the directory `run` of the instance.
        """
        hosted = self._hosted.get(instance_id)
        if hosted is None:
            return
        shutil.rmtree(hosted.directory / "run", ignore_errors=True)
        scripts = sorted((hosted.directory / "var/lib/cloud/scripts/per-boot").glob("*"))
        lines = ["#!/bin/sh", *(shlex.quote(str(script)) for script in scripts), "exec sleep infinity"]
        (hosted.directory / "user-data").write_text("\n".join(lines) + "\n")
        self._tell(op="stop", id=instance_id)
        self._launch(instance_id, hosted)

    def _launch(self, instance_id: str, hosted: Hosted) -> None:
        self._tell(
            op="start",
            id=instance_id,
            address=hosted.address,
            directory=str(hosted.directory),
            environment=hosted.environment,
            network=hosted.network,
            kernel=self._kernels and hosted.network is not None,
            managed=hosted.managed,
        )

    def _stop(self, instance_id: str) -> None:
        with self._lock:
            self._hosted.pop(instance_id)
        self._tell(op="stop", id=instance_id)

    def _tell(self, **message: Any) -> None:
        assert self._runner.stdin is not None
        self._runner.stdin.write(json.dumps(message).encode() + b"\n")
        self._runner.stdin.flush()

    def _listen(self) -> None:
        assert self._runner.stdout is not None
        for line in self._runner.stdout:
            report = json.loads(line)
            with self._lock:
                hosted = self._hosted.get(report["id"])
                if hosted is None:
                    continue
                if report["event"] == "ready":
                    hosted.state, hosted.ready_at = "ready", time.monotonic()
                elif report["event"] == "exited" and hosted.state == "starting":
                    hosted.state = "ended"
                    print(f"{report['id']}: user data ended ({report['code']}) before it was ready", flush=True)
            if reaction := self._reactions.get(report["event"]):
                reaction(report["id"])
        _fail("the runner of the instances has ended")


def _fail(why: str) -> None:
    """Ends the account at once, so that the launcher and the log report the failure."""
    print(f"the instance host failed: {why}", flush=True)
    os._exit(1)


def _decoded(user_data: Any) -> bytes:
    """Decodes user data, which moto stores in base64 as text or, from a launch template, in another type."""
    return base64.b64decode(user_data if isinstance(user_data, str) else user_data.as_bytes())


class AddressBlock:
    """A /16 block of the loopback network, which no other account on this machine uses: a socket reserves it while the
    account runs. Instances in networks of their own get addresses of 10.0.0.0/8 in its place.
    """

    def __init__(self) -> None:
        self._socket, self.second = self._reserve()
        self._numbers = itertools.count()

    @staticmethod
    def _reserve() -> tuple[socket.socket, int]:
        candidates = list(range(16, 250))
        random.shuffle(candidates)
        for second in candidates:
            held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                held.bind((f"127.{second}.255.254", _RESERVATION_PORT))
            except OSError:
                held.close()
            else:
                return held, second
        raise RuntimeError("every block of 127.0.0.0/8 is taken by another local account")

    def take(self, closed: bool) -> str:
        """Returns an unused address, so that a replacement differs from its predecessor.

        Args:
            closed: whether it is for a network of its own, which has no loopback addresses.
        """
        number = next(self._numbers)
        third, fourth = divmod(number, 250)
        if third > 250:
            raise RuntimeError("the block of loopback addresses is used up")
        return f"{10 if closed else 127}.{self.second}.{third}.{fourth + 1}"
