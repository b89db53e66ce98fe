"""Runs the scripts of the benchmark s3-range-read as the agent does, and loads their modules."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from infra import ROOT
from tests.patience import PATIENCE
from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.agent.pythons import python39
from troop.measure import operations
from troop.measure.operations import Operation, Operations, add_all
from troop.measure.s3.addresses import Address, trust
from troop.measure.s3.credentials import CredentialStore
from troop.measure.s3.signing import Signer

FOLDER = ROOT / "benchmarks" / "s3-range-read"
MODULES = [path.stem for path in sorted(FOLDER.glob("*.py"))]


def module(name: str) -> ModuleType:
    """Imports a module by its file's name, once: its classes must be the same for all modules."""
    own = {one: sys.modules.pop(one) for one in MODULES if one in sys.modules}
    sys.modules.update(_LOADED)
    sys.path.insert(0, str(FOLDER))  # as a script has it
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
        for one in MODULES:
            if one in sys.modules:
                _LOADED[one] = sys.modules.pop(one)
        sys.modules.update(own)


_LOADED: dict[str, ModuleType] = {}

PARAMETERS = {
    "bucket": "data",
    "prefix": "",
    "min_bytes": 100,
    "max_bytes": 1000,
    "threads": 4,
    "connect_timeout_seconds": 300,
    "read_timeout_seconds": 300,
}


class Scripts:
    """Runs the scripts as the agent does."""

    def __init__(self, account: FakeAccount, folder: Path) -> None:
        self.account, self.folder = account, folder
        self.endpoint, self.data = account.url, "s3://results/data/run/c001/"
        self.rank, nodes = 0, [{"role": "drivers", "rank": rank} for rank in range(3)]
        (folder / "roster.json").write_text(json.dumps({"nodes": nodes}))

    def run(
        self, script: str, warm_up: float = 1, seconds: float = 1.5, files: int | None = None, **parameters: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script with so many seconds of warm-up and measured ones, and so many open files in a process."""
        (self.folder / "parameters.json").write_text(json.dumps({**PARAMETERS, **parameters}))
        variables = {
            "NODE": "i-1",
            "ROLE": "drivers",
            "RANK": self.rank,
            "ROSTER": self.folder / "roster.json",
            "FILES": self.folder,
            "ARTIFACTS": self.folder,
            "DATA": self.data,
            "PARAMETERS": self.folder / "parameters.json",
            "SHARED": self.folder,
            "RESULTS": self.folder,
            "MEASURED_FROM": time.time() + warm_up,
            "MEASURED_SECONDS": seconds,
        }
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "functions"),
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.account.metadata_of("i-1"),
            **{f"TROOP_{name}": str(value) for name, value in variables.items()},
        }
        line = [python39() or sys.executable, str(FOLDER / script)]
        if files is not None:
            line = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *line]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def measured(
        self, is_enough: Callable[[Operation], bool], seconds_at_least: float = 1.5, **parameters: Any
    ) -> tuple[subprocess.CompletedProcess[str], Operation]:
        """Runs read.py for longer and longer, as a busy machine needs it, until what it has recorded is enough."""
        for longer in (1, 8, 64):
            for path in self.folder.glob("operations*.json"):
                path.unlink()
            done, recorded = self.run("read.py", longer, seconds_at_least * longer, **parameters), self.read()
            if is_enough(recorded):
                break
        return done, recorded

    def prepared(self, **parameters: Any) -> list[tuple[str, int]]:
        """The paths and sizes of the objects that prepare.py has chosen."""
        done = self.run("prepare.py", **parameters)
        assert done.returncode == 0, done.stderr
        self.account.ranges.clear()  # of the first byte of an object, to see whether it may be read
        return stored(self.folder)

    def read(self) -> Operation:
        """All that was recorded, of all processes."""
        total: Operations = {}
        for path in self.folder.glob("operations*.json"):
            add_all(total, operations.parse(json.loads(path.read_text())["operations"]))
        return total.get("read", Operation())


def stored(folder: Path) -> list[tuple[str, int]]:
    chosen = module("objects").Objects(folder)
    return [chosen.at(n) for n in range(len(chosen))]


class OneReader:
    """A reader of ``/a`` at an address, in a loop of its own."""

    def __init__(self, address: Address, store: CredentialStore) -> None:
        self.ranges, self.address, self.store = module("ranges"), address, store
        self.signer, self.loop = Signer(store.current, REGION), self.ranges.Loop()
        self._upkeeps = list[Any]()
        self.reader = self.with_limits(PATIENCE, PATIENCE)

    def with_limits(self, connect: float, read: float, address: Address | None = None) -> Any:
        address = address or self.address
        self._upkeeps.append(self.ranges.Upkeep(address, self.store))
        shared = self.signer, self.store, self._upkeeps[-1], self.loop, trust()
        return self.ranges.Reader(address, *shared, connect, read)

    def begin(self, reader: Any, first: int, count: int) -> list[Any]:
        """Begins a read, whose number of bytes or error is in the list when it is over."""
        outcome: list[Any] = []

        def steps() -> Iterator[None]:
            try:
                outcome.append((yield from reader.read(reader.request("a", first, count), count)))
            except self.ranges.ReadError as error:
                outcome.append(error)

        self.loop.begin(reader, steps())
        return outcome

    def end(self, *outcomes: list[Any]) -> None:
        until = time.monotonic() + PATIENCE
        while not all(outcomes) and time.monotonic() < until:
            self.loop.turn()

    def read(self, first: int = 0, count: int = 10, reader: Any = None) -> int:
        outcome = self.begin(reader or self.reader, first, count)
        self.end(outcome)
        if not isinstance(outcome[0], int):
            raise outcome[0]
        return outcome[0]

    def close(self) -> None:
        self.loop.close()
        for upkeep in self._upkeeps:
            upkeep.close()
