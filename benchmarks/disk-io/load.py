"""Plans the load: the files and the commands of fio and iozone. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from troop.disks.errors import DiskError

FIO, IOZONE = "fio", "iozone"
WRITE, READ, MMAP, MIXED, ZIPF = "sequential-write", "random-read", "mmap-read", "mixed", "zipf-read"
PATTERNS = {FIO: (WRITE, READ, MMAP, MIXED, ZIPF), IOZONE: (WRITE, READ, MMAP)}
KIB, MIB = 1024, 1024**2
FREE_SHARE = 0.05
"""The part of a file system that stays free, for its own data."""
PRECONDITION_JOBS = 16
"""Writers at random on each disk."""


@dataclass(frozen=True)
class Load:
    """What runs on the files.

    Attributes:
        file_mib: the size of each job's file.
    """

    tool: str
    pattern: str
    jobs: int
    file_mib: int
    write_block_kib: int
    read_block_kib: int
    read_percent: int
    zipf: float
    direct: bool

    @property
    def total_bytes(self) -> int:
        return self.jobs * self.file_mib * MIB

    def files(self, folder: Path) -> list[Path]:
        return [folder / f"data.{number}" for number in range(self.jobs)]


def from_parameters(parameters: Mapping[str, Any], memory_bytes: int) -> Load:
    """Returns the load of a benchmark's parameters.

    Args:
        memory_bytes: of this node; the files have twice that if ``data_mib`` is 0.

    Raises:
        DiskError: a value is not allowed.
    """
    tool, pattern = str(parameters["tool"]), str(parameters["pattern"])
    if tool not in PATTERNS:
        raise DiskError(f"tool is {tool}: must be one of {', '.join(PATTERNS)}")
    if pattern not in PATTERNS[tool]:
        raise DiskError(f"pattern is {pattern}, which {tool} does not do: must be one of {', '.join(PATTERNS[tool])}")
    jobs = _number(parameters, "jobs", 1, 1000)
    data_mib = _number(parameters, "data_mib", 0, 2**30) or 2 * memory_bytes // MIB
    if data_mib < jobs:
        raise DiskError(f"data_mib is {data_mib}: must be at least {jobs}, a MiB for each of the jobs")
    zipf = float(parameters["zipf"])
    if not 0 < zipf < 10 or zipf == 1:
        raise DiskError(f"zipf is {zipf:g}: must be more than 0 and less than 10, and not 1")
    return Load(
        tool,
        pattern,
        jobs,
        data_mib // jobs,
        _number(parameters, "write_block_kib", 4, 16384),
        _number(parameters, "read_block_kib", 4, 16384),
        _number(parameters, "read_percent", 1, 99),
        zipf,
        bool(parameters["direct"]),
    )


def _number(parameters: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = parameters[key]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise DiskError(f"{key} is {value}: must be a whole number from {least} to {most}")
    return value


def memory_bytes(meminfo: str) -> int:
    """Returns the node's memory from the content of ``/proc/meminfo``."""
    for line in meminfo.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * KIB
    raise DiskError("/proc/meminfo has no MemTotal: set data_mib")


def check_space(load: Load, total: int, free: int, present: int = 0) -> None:
    """Checks that the files fit.

    Args:
        total, free: bytes of the file system.
        present: bytes of the files that an earlier script has written.

    Raises:
        DiskError: they do not fit; with all sizes.
    """
    room = free + present - int(total * FREE_SHARE)
    if load.total_bytes > room:
        raise DiskError(
            f"the files have {load.total_bytes // MIB} MiB, but the file system has room for {max(room, 0) // MIB} "
            "MiB: use larger volumes, or set data_mib"
        )


def fill(load: Load, folder: Path) -> list[str]:
    """Returns fio's command that writes all files once, so that reads meet data, and writes meet blocks."""
    return [*_fio(load, folder, "fill"), "--rw=write", "--bs=1M", "--ioengine=psync", "--end_fsync=1", _direct(load)]


def fio(load: Load, folder: Path, warm_up: float, measured: float, output: Path) -> list[str]:
    """Returns fio's command of a pattern for exactly the measured time, after the warm-up. Times are seconds."""
    read = [f"--bs={load.read_block_kib}k", "--norandommap", "--randrepeat=0", "--random_generator=tausworthe64"]
    patterns = {
        WRITE: ["--rw=write", f"--bs={load.write_block_kib}k"],
        READ: ["--rw=randread", *read],
        MMAP: ["--rw=randread", *read],
        MIXED: ["--rw=randrw", f"--rwmixread={load.read_percent}", *read],
        ZIPF: ["--rw=randread", f"--random_distribution=zipf:{load.zipf:g}", *read],
    }
    mapped = load.pattern == MMAP
    return [
        *_fio(load, folder, load.pattern),
        *patterns[load.pattern],
        "--ioengine=mmap" if mapped else "--ioengine=psync",
        "--direct=0" if mapped else _direct(load),
        "--fadvise_hint=0",  # otherwise fio tells the kernel not to read ahead, regardless of the parameter
        "--time_based",
        f"--ramp_time={round(warm_up)}",
        f"--runtime={round(measured)}",
        "--output-format=json+",
        f"--output={output}",
    ]


def _fio(load: Load, folder: Path, name: str) -> list[str]:
    return [
        *("fio", f"--name={name}", f"--directory={folder}", "--filename_format=data.$jobnum"),
        *(f"--numjobs={load.jobs}", f"--size={load.file_mib}M", "--thread", "--fallocate=none", "--eta=never"),
    ]


def _direct(load: Load) -> str:
    return f"--direct={int(load.direct)}"


def iozone(load: Load, folder: Path, program: Path) -> list[str]:
    """Returns iozone's command of a pattern. Its files stay for the next pattern."""
    block = load.write_block_kib if load.pattern == WRITE else load.read_block_kib
    test = "0" if load.pattern == WRITE else "2"
    mapped = load.pattern == MMAP
    return [
        *(str(program), "-i", test, "-+n", "-w", "-C", "-t", str(load.jobs)),
        *("-s", f"{load.file_mib * KIB}k", "-r", f"{block}k"),
        *(["-B"] if mapped else ["-I"] if load.direct else []),
        *("-F", *map(str, load.files(folder))),
    ]


def precondition(disks: Sequence[str], seconds: int) -> list[list[str]]:
    """Returns fio's commands that bring SSDs to their steady state: all blocks twice, then blocks at random."""
    common = ["fio", "--direct=1", "--ioengine=psync", "--thread", "--eta=never", "--output-format=terse"]
    jobs = [option for disk in disks for option in (f"--name={Path(disk).name}", f"--filename={disk}")]
    random = ["--rw=randwrite", "--bs=4k", "--norandommap", "--time_based", f"--runtime={seconds}"]
    return [
        [*common, *_each(jobs, ["--rw=write", "--bs=1M", "--loops=2"])],
        [*common, *_each(jobs, [*random, f"--numjobs={PRECONDITION_JOBS}"])],
    ]


def _each(jobs: Sequence[str], options: Sequence[str]) -> list[str]:
    """Repeats the options for each job, because fio takes those after a name as that job's own."""
    return [part for name, file in zip(jobs[::2], jobs[1::2]) for part in (name, file, *options)]
