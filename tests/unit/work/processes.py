"""Workers as real processes, on a fake account."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from infra import ROOT
from tests.patience import PATIENCE
from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.work.model_account import BUCKET, RESULTS, URL
from troop.work.work_folder import WorkFolder

LOOP = """
import os, sys, threading, time
from pathlib import Path
from troop.work import tasks

def begin(task):
    Path(f"{task.id}.{task.tries}").write_text(str(os.getpid()))

def work():
    for task in tasks():
        with task:
            begin(task)
            if task.body == "hang":
                time.sleep(1000)
            elif task.body == f"fail {task.tries}":
                raise ValueError(task.body)
            print(task.id, task.deliver(task.body.upper()), flush=True)
"""
"""Part of a script; a file for each try says that a task was begun, and by which process."""


class Workers:
    """Starts workers in a folder of theirs.

    Attributes:
        folder: of the agent and the workers.
        path: the working folder of the processes.
    """

    def __init__(self, account: FakeAccount, path: Path, lease: int = 300) -> None:
        self.account, self.path = account, path / "workers"
        self.path.mkdir()
        (path / "work").mkdir()
        self.folder = WorkFolder(path / "work")
        account.queue.lease = lease
        facts = {"format": "troop.queue/1", "url": URL, "host": f"sqs.{REGION}.amazonaws.com", "endpoints": []}
        further = {"lease": lease, "tries": 5, "region": REGION, "bucket": BUCKET, "results": RESULTS}
        self.folder.queue.write_text(json.dumps({**facts, **further}))
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}",
            "TROOP_WORK": str(self.folder.path),
            "AWS_ENDPOINT_URL": account.url,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": account.metadata_of("i-1"),
        }
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, text: str, python: str = sys.executable) -> subprocess.Popen[str]:
        """Starts a process with :data:`LOOP` and further text."""
        process = subprocess.Popen(
            [python, "-c", LOOP + text],
            cwd=self.path,
            env=self.environment,
            stdout=(self.path / "output").open("a"),
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes.append(process)
        return process

    def output(self) -> str:
        return (self.path / "output").read_text()

    def begun(self, task: str, number: int = 1) -> int | None:
        """The process that has begun a task, as its given try; None if none has."""
        path = self.path / f"{task}.{number}"
        return int(path.read_text() or 0) or None if path.exists() else None

    def result(self, task: str) -> bytes | None:
        return self.account.objects.get(f"{BUCKET}/{RESULTS}{task}")

    def end(self, process: subprocess.Popen[str]) -> int:
        """Sends SIGTERM, and waits for the end."""
        process.send_signal(signal.SIGTERM)
        return process.wait(PATIENCE)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
