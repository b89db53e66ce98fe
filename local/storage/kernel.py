"""Boots a kernel as a process of this machine, with image files as its disks."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.roster import Roster
from troop.bench.measuring.barriers import release
from troop.measure import summary as summaries
from troop.measure.summary import OK, Summary

from ..project import ROOT

PACKAGES = {
    "linux.uml": "user-mode-linux",
    "fio": "fio",
    "mdadm": "mdadm",
    "dmsetup": "dmsetup",
    "mkfs.xfs": "xfsprogs",
    "modprobe": "kmod",
}
"""Debian packages by their command."""
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MODULES = Path("/usr/lib/uml/modules")
HERE = Path(__file__).resolve().parent
DISK_MIB = 320
MEMORY_MIB = 512
TIMEOUT_SECONDS = 600
AGENT = " troop: "
"""Precedes the agent's own lines in the console's output."""

Progress = Callable[[str], None]


class KernelError(RuntimeError):
    """The kernel ended without the results of a phase."""


def missing() -> str | None:
    """Says which programs are missing and how to install them; None if all exist."""
    lacking = [command for command in PACKAGES if shutil.which(command, path=PATH) is None]
    if not lacking:
        return None
    packages = " ".join(PACKAGES[command] for command in lacking)
    return (
        f"{', '.join(lacking)} missing; on Debian: apt-get install -y {packages}. Other systems have no package of "
        "User-Mode Linux"
    )


@dataclass(frozen=True)
class Node:
    """A node to boot.

    Attributes:
        cells: benchmarks to perform, one after another, by name. All have the same layout, so they share it.
        folders: of the benchmarks' scripts, by name.
        operations_per_second: the limit of each volume in measured phases: so many reads, and so many writes.
    """

    name: str
    cells: Mapping[str, Benchmark]
    folders: Mapping[str, Path]
    operations_per_second: int

    @property
    def fleet(self) -> Fleet:
        """The fleet with the volumes."""
        return next(iter(self.cells.values())).fleets[0]

    @property
    def is_cached(self) -> bool:
        return any(cell.parameters["cache"] != "none" for cell in self.cells.values())


@dataclass(frozen=True)
class Performance:
    """The times and summaries of a node.

    Attributes:
        booted_at, halted_at: when its kernel began and ended.
        kernel: its version.
        summaries: of all steps in their order, by benchmark and step.
    """

    booted_at: datetime
    halted_at: datetime
    kernel: str
    summaries: Mapping[str, Mapping[str, Summary]]


def run(node: Node, home: Path, progress: Progress) -> Performance:
    """Boots a kernel that performs the steps of a node's benchmarks, and waits for its end.

    Args:
        home: a new folder, which keeps all results and logs.
        progress: is called with a line for each step that is over.

    Raises:
        KernelError: a step failed, or has no summary; the message has the reason.
    """
    home.mkdir(parents=True)
    names = [f"ubd{letter}" for letter in "bcdefghijkl"]
    volumes = {name: volume.device for name, volume in zip(names, node.fleet.volumes, strict=False)}
    caches = names[len(volumes) :][: int(node.is_cached)]
    disks = ["ubda", *volumes, *caches]
    for disk in disks:
        with (home / f"{disk}.img").open("wb") as image:
            image.truncate(DISK_MIB << 20)
    _write_inputs(node, home, volumes, caches)
    line = [
        *("linux.uml", f"mem={MEMORY_MIB}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "quiet"),
        *("con=null", "con0=fd:0,fd:1", f"init={HERE / 'init.sh'}", f"STORAGE_ENVIRONMENT={home / 'environment'}"),
        *(f"{disk}={home / disk}.img" for disk in disks),
    ]
    booted_at = datetime.now(UTC)
    _boot(line, home, lambda text: progress(f"{node.name}: {text}"))
    for disk in disks:
        (home / f"{disk}.img").unlink()
    done = {name: _summaries(node.name, home / name, cell) for name, cell in node.cells.items()}
    kernel = (home / "kernel").read_text(encoding="ascii").strip()
    return Performance(booted_at, datetime.now(UTC), kernel, done)


def _boot(line: Sequence[str], home: Path, progress: Progress) -> None:
    """Runs a kernel to its end. Copies its console to a file, and passes on the agent's lines."""
    process = subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert process.stdout
    late = threading.Event()

    def stop() -> None:
        late.set()
        os.killpg(process.pid, signal.SIGKILL)  # a kernel has a process for each of its address spaces

    timer = threading.Timer(TIMEOUT_SECONDS, stop)
    timer.start()
    try:
        with process, (home / "console.log").open("wb") as console:
            for raw in process.stdout:
                console.write(raw)
                _, mark, text = raw.decode(errors="replace").strip().partition(AGENT)
                if mark:
                    progress(text)
    except BaseException:
        stop()
        raise
    finally:
        timer.cancel()
    if late.is_set():
        raise KernelError(f"{home.name}: did not end in {TIMEOUT_SECONDS} s; see {home}/console.log")


def _write_inputs(node: Node, home: Path, volumes: Mapping[str, str], caches: Sequence[str]) -> None:
    (home / "shared").mkdir()
    for name, cell in node.cells.items():
        _write_cell(home / name, cell, node.folders[name])
    document = {
        "name": node.name,
        "benchmarks": list(node.cells),
        "volumes": volumes,
        "caches": caches,
        "operations_per_second": node.operations_per_second,
    }
    (home / "node.json").write_text(json.dumps(document), encoding="utf-8")
    modules = home / "modules" / "lib" / "modules"
    modules.mkdir(parents=True)
    for version in MODULES.iterdir():
        (modules / version.name).symlink_to(version)
    variables = {
        "PATH": f"{HERE / 'bin'}:{PATH}",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "functions"))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "STORAGE_HOME": str(home),
        "STORAGE_PYTHON": sys.executable,
        "STORAGE_MODULES": str(home / "modules"),
        "STORAGE_VOLUMES": " ".join(volumes),
        "STORAGE_CACHES": " ".join(caches),
    }
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    (home / "environment").write_text("".join(lines), encoding="utf-8")


def _write_cell(home: Path, cell: Benchmark, folder: Path) -> None:
    """Writes the folder of an agent, with the barriers of all steps. Their moments do not count."""
    home.mkdir()
    (home / "shared").symlink_to(home.parent / "shared")
    (home / "files").symlink_to(folder)
    (home / "parameters.json").write_text(json.dumps(cell.parameters), encoding="utf-8")
    barriers = [release(step, datetime.now(UTC), Roster((), 0.0)) for step in cell.steps]
    document = {"role": cell.fleets[0].role, "barriers": barriers}
    (home / "cell.json").write_text(json.dumps(document), encoding="utf-8")


def _summaries(node: str, home: Path, cell: Benchmark) -> dict[str, Summary]:
    return {step.name: _summary(node, step.name, home) for step in cell.steps}


def _summary(node: str, step: str, home: Path) -> Summary:
    path = home / f"{step}.json"
    if not path.exists():
        raise KernelError(f"{node}: no summary of {home.name}, {step}; see {home.parent}/console.log")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if document["outcome"] != OK:
        raise KernelError(
            f"{node}: {home.name}, {step} {document['outcome']}: {document['reason']}; see {home}/{step}.log"
        )
    return summaries.parse(document)
