"""The load of disk-io: what fio and iozone run, and how large the files are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.benchmarks.scripts import scripts
from troop.disks.errors import DiskError

PARAMETERS: dict[str, Any] = {
    **{"tool": "fio", "pattern": "random-read", "jobs": 60, "data_mib": 0, "write_block_kib": 64, "read_block_kib": 4},
    **{"read_percent": 70, "zipf": 1.1, "direct": True},
}
GIB = 1024**3
load = scripts("disk-io")["load"]
FOLDER = Path("/mnt/troop-data")


def options(memory: int = 64 * GIB, **changes: Any) -> dict[str, str]:
    """fio's options by name."""
    one = load.from_parameters({**PARAMETERS, **changes}, memory)
    command = load.fio(one, FOLDER, 30.0, 300.0, Path("fio.json"))
    assert command[0] == "fio"
    return dict(word[2:].partition("=")[::2] for word in command[1:])


def test_the_files_have_twice_the_memory_by_default() -> None:
    one = load.from_parameters(PARAMETERS, 64 * GIB)
    assert 128 * GIB - 60 * 1024**2 < one.total_bytes <= 128 * GIB
    assert load.from_parameters({**PARAMETERS, "data_mib": 600}, 64 * GIB).file_mib == 10


def test_the_memory_is_read_from_the_kernel() -> None:
    assert load.memory_bytes("MemFree: 1 kB\nMemTotal:       65536 kB\n") == 64 * 1024**2
    with pytest.raises(DiskError, match="set data_mib"):
        load.memory_bytes("")


PATTERNS = [
    ("sequential-write", {"rw": "write", "bs": "64k", "ioengine": "psync", "direct": "1"}),
    ("random-read", {"rw": "randread", "bs": "4k", "ioengine": "psync", "direct": "1"}),
    ("mmap-read", {"rw": "randread", "bs": "4k", "ioengine": "mmap", "direct": "0"}),
    ("mixed", {"rw": "randrw", "rwmixread": "70", "bs": "4k", "ioengine": "psync", "direct": "1"}),
    ("zipf-read", {"rw": "randread", "random_distribution": "zipf:1.1", "bs": "4k", "direct": "1"}),
]


@pytest.mark.parametrize(("pattern", "expected"), PATTERNS)
def test_each_pattern_is_60_jobs_for_exactly_the_measured_time(pattern: str, expected: dict[str, str]) -> None:
    chosen = options(pattern=pattern)
    assert chosen.items() >= expected.items()
    common = {
        "numjobs": "60",
        "ramp_time": "30",
        "runtime": "300",
        "output-format": "json+",
        "filename_format": "data.$jobnum",
    }
    assert chosen.items() >= common.items()
    assert "time_based" in chosen
    assert "group_reporting" not in chosen


def test_the_page_cache_is_a_parameter() -> None:
    assert options(direct=False)["direct"] == "0"
    assert "-I" not in load.iozone(
        load.from_parameters({**PARAMETERS, "tool": "iozone", "direct": False}, GIB), FOLDER, Path("i")
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tool": "dd"}, "tool is dd: must be one of fio, iozone"),
        ({"pattern": "random"}, "must be one of sequential-write, random-read, mmap-read, mixed, zipf-read"),
        ({"tool": "iozone", "pattern": "zipf-read"}, "which iozone does not do: must be one of sequential-write"),
        ({"jobs": 0}, "jobs is 0: must be a whole number from 1"),
        ({"data_mib": 59}, "must be at least 60"),
        ({"zipf": 1}, "and not 1"),
        ({"read_percent": 100}, "from 1 to 99"),
    ],
)
def test_bad_parameters_are_refused_with_what_is_allowed(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DiskError, match=message):
        load.from_parameters({**PARAMETERS, **changes}, GIB)


def test_files_that_do_not_fit_are_refused_before_they_are_written() -> None:
    one = load.from_parameters({**PARAMETERS, "data_mib": 60 * 100}, GIB)
    load.check_space(one, 10 * GIB, 7 * GIB)
    with pytest.raises(DiskError, match="the files have 6000 MiB, but the file system has room for 4608 MiB"):
        load.check_space(one, 10 * GIB, 5 * GIB)
    load.check_space(one, 10 * GIB, 5 * GIB, present=2 * GIB)


def test_each_disk_is_written_twice_and_then_at_random() -> None:
    fill, at_random = load.precondition(["/dev/nvme1n1", "/dev/nvme2n1"], 600)
    for command, option in ((fill, "--loops=2"), (at_random, "--runtime=600")):
        text = " ".join(command)
        assert text.count(option) == 2
        assert text.index("--filename=/dev/nvme1n1") < text.index(option) < text.index("--filename=/dev/nvme2n1")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("sequential-write", "-i 0 .* -r 64k -I"), ("random-read", "-i 2 .* -r 4k -I"), ("mmap-read", "-i 2 .* -r 4k -B")],
)
def test_iozone_runs_in_throughput_mode_on_the_same_files(pattern: str, expected: str) -> None:
    one = load.from_parameters({**PARAMETERS, "tool": "iozone", "pattern": pattern, "jobs": 2, "data_mib": 8}, GIB)
    text = " ".join(load.iozone(one, FOLDER, Path("/artifacts/iozone")))
    assert text.startswith("/artifacts/iozone ")
    assert "-t 2 -s 4096k" in text
    assert text.endswith("-F /mnt/troop-data/data.0 /mnt/troop-data/data.1")
    assert re.search(expected, text)
