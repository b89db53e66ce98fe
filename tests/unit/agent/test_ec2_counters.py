"""EC2's counters: ENA's allowances as the kernel answers ethtool, and the pages with which volumes of EBS answer."""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent import block_devices, nvme
from agent.ethtool import NetworkLimits
from agent.nvme import Volumes
from troop.measure.device_samples import EBS, INSTANCE_STORE, OTHER, STACKED, Device

ENA = {
    "tx_timeout": 0,
    "bw_in_allowance_exceeded": 5,
    "bw_out_allowance_exceeded": 2**40,
    "pps_allowance_exceeded": 0,
    "conntrack_allowance_exceeded": 3,
    "linklocal_allowance_exceeded": 1,
    "conntrack_allowance_available": 136_812,
    "queue_0_tx_cnt": 77,
}


class Kernel:
    """Answers the ioctl SIOCETHTOOL for interfaces, as include/uapi/linux/ethtool.h lays it out."""

    def __init__(self, interfaces: Mapping[str, Mapping[str, int]]) -> None:
        self.interfaces = dict(interfaces)

    def __call__(self, _: int, request: int, ifreq: bytes) -> int:
        assert (request, len(ifreq)) == (0x8946, 40)
        name = ifreq[:16].split(b"\0")[0].decode()
        (address,) = struct.unpack_from("P", ifreq, 16)
        if name not in self.interfaces:
            raise OSError(errno.ENODEV, "No such device")
        statistics = self.interfaces[name]
        (command,) = struct.unpack("=I", ctypes.string_at(address, 4))
        self.answer(command, address, statistics)
        return 0

    def answer(self, command: int, address: int, statistics: Mapping[str, int]) -> None:
        if command == 0x37:  # ETHTOOL_GSSET_INFO
            assert struct.unpack("=IIQ", ctypes.string_at(address, 16)) == (0x37, 0, 1 << 1)
            put(address, struct.pack("=IIQI", command, 0, 2 if statistics else 0, len(statistics)))
        elif command == 0x1B:  # ETHTOOL_GSTRINGS
            assert struct.unpack("=II", ctypes.string_at(address + 4, 8))[0] == 1
            names = b"".join(name.encode().ljust(32, b"\0") for name in statistics)
            put(address, struct.pack("=III", command, 1, len(statistics)) + names)
        elif command == 0x1D:  # ETHTOOL_GSTATS
            put(address, struct.pack(f"=II{len(statistics)}Q", command, len(statistics), *statistics.values()))
        else:
            raise AssertionError(command)


def put(address: int, content: bytes) -> None:
    ctypes.memmove(address, content, len(content))


def classes(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir()
    return folder


def test_allowances_are_read_of_all_interfaces_without_a_program(tmp_path: Path) -> None:
    kernel = Kernel({"ens5": ENA, "ens6": {"pps_allowance_exceeded": 4}, "lo": ENA})
    limits = NetworkLimits(classes(tmp_path, "ens5", "ens6", "lo", "docker0"), kernel)
    assert limits.problem is None
    assert limits.read() == {
        "ens5": {
            "network_in_exceeded": 5,
            "network_out_exceeded": 2**40,
            "packet_rate_exceeded": 0,
            "conntrack_exceeded": 3,
            "linklocal_exceeded": 1,
        },
        "ens6": {"packet_rate_exceeded": 4},
    }


def test_counters_are_read_by_name_after_queues_were_added(tmp_path: Path) -> None:
    kernel = Kernel({"ens5": ENA})
    limits = NetworkLimits(classes(tmp_path, "ens5"), kernel)
    kernel.interfaces["ens5"] = {
        **{f"queue_{n}_tx_cnt": 9 for n in range(64)},
        **ENA,
        "conntrack_allowance_exceeded": 8,
    }
    counters = limits.read()
    assert counters is not None
    assert counters["ens5"]["conntrack_exceeded"] == 8


@pytest.mark.parametrize(
    ("interfaces", "problem"),
    [
        ({"eth0": {"rx_drops": 1}}, "the driver of eth0 does not report network allowances"),
        ({"eth0": {}}, "the driver of eth0 does not report network allowances"),
        ({}, "No such device"),
    ],
)
def test_a_node_without_ena_says_why_it_reports_no_allowances(
    interfaces: Mapping[str, Mapping[str, int]], problem: str, tmp_path: Path
) -> None:
    limits = NetworkLimits(classes(tmp_path, "eth0"), Kernel(interfaces))
    assert limits.read() is None
    assert limits.problem is not None
    assert problem in limits.problem


def test_an_interface_that_is_detached_leaves_the_others(tmp_path: Path) -> None:
    kernel = Kernel({"ens5": ENA, "ens6": ENA})
    limits = NetworkLimits(classes(tmp_path, "ens5", "ens6"), kernel)
    del kernel.interfaces["ens6"]
    counters = limits.read()
    assert counters is not None
    assert set(counters) == {"ens5"}


def test_without_any_interface_nothing_is_read(tmp_path: Path) -> None:
    assert NetworkLimits(tmp_path / "missing", Kernel({})).read() is None


def test_the_kernel_of_this_machine_answers() -> None:
    """Whatever its driver reports: the structures are those that it accepts."""
    limits = NetworkLimits()
    try:
        assert (limits.read() is None) == (limits.problem is not None)
        assert limits.problem is None or "Invalid argument" not in limits.problem
    finally:
        limits.close()


# ------------------------------------------------------------------ volumes

STATISTICS = (9_000, 8_000, 7, 6, 5, 4, 31_000_000, 20, 300_000, 500_000, 12)
"""Operations, bytes, times; microseconds over the volume's IOPS and throughput, and over the instance's; queue."""


def statistics_page(*values: int, magic: int = 0x3C23B510) -> bytes:
    """A page as AWS lays it out: 96 bytes of numbers, 416 reserved, two histograms of 1544, 496 reserved."""
    page = struct.pack("<II11Q", magic, 0, *values) + bytes(416) + 2 * bytes(8 + 64 * 24) + bytes(496)
    assert len(page) == 4096
    return page


def identify_page(device: str) -> bytes:
    model = struct.pack("<HH20s40s", 0x1D0F, 0x1D0F, b"vol0123456789abcdef0", b"Amazon Elastic Block Store".ljust(40))
    return model.ljust(3072, b"\0") + device.encode().ljust(32) + bytes(992)


class Nvme:
    """Answers the administrative command of volumes by the file that was opened."""

    def __init__(self, pages: Mapping[str, bytes], names: Mapping[str, str]) -> None:
        self.pages, self.names = dict(pages), names
        self.commands: list[tuple[str, int]] = []

    def __call__(self, fd: int, request: int, command: bytes) -> int:
        assert (request, len(command)) == (0xC0484E41, 72)
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        operation, namespace = command[0], struct.unpack_from("<I", command, 4)[0]
        (address,) = struct.unpack_from("<Q", command, 24)
        length, ten = struct.unpack_from("<II", command, 36)
        assert length == 4096
        self.commands.append((name, operation))
        if operation == 0x02:
            # Log page D0, of 1024 dwords, counted from 0.
            assert (ten, namespace) == (0xD0 | 1023 << 16, 1)
            if name not in self.pages:
                raise OSError(errno.EPERM, "Operation not permitted")
            put(address, self.pages[name])
        else:
            assert (operation, ten) == (0x06, 1)
            put(address, identify_page(self.names[name]))
        return 0


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    """Block devices: two volumes, an SSD, an array, a logical volume, and a disk of another hypervisor."""
    models = {"nvme0n1": nvme.EBS_MODEL, "nvme1n1": nvme.EBS_MODEL, "nvme2n1": nvme.INSTANCE_STORE_MODEL}
    for name in (*models, "md127", "dm-0", "vda", "loop0"):
        device = tmp_path / "block" / name
        (device / "device").mkdir(parents=True)
        (device / "size").write_text("2097152\n")
        (tmp_path / name).touch()
        if name in models:
            (device / "device" / "model").write_text(models[name].ljust(40) + "\n")
    (tmp_path / "block" / "dm-0" / "dm").mkdir()
    (tmp_path / "block" / "dm-0" / "dm" / "name").write_text("vg0-data\n")
    return tmp_path


def volumes(blocks: Path, kernel: Nvme) -> Volumes:
    return Volumes(blocks / "block", blocks, kernel)


def test_time_over_limits_is_read_of_each_volume_of_ebs(blocks: Path) -> None:
    kernel = Nvme({"nvme0n1": statistics_page(*[0] * 11), "nvme1n1": statistics_page(*STATISTICS)}, {})
    its = volumes(blocks, kernel)
    assert its.problem is None
    counters = its.read()
    assert counters is not None
    assert counters["nvme1n1"] == {
        "volume_iops_exceeded": 31_000_000,
        "volume_throughput_exceeded": 20,
        "instance_iops_exceeded": 300_000,
        "instance_throughput_exceeded": 500_000,
    }
    assert set(counters["nvme0n1"].values()) == {0}


def test_volume_that_does_not_answer_is_not_read_again_and_is_reported(blocks: Path) -> None:
    kernel = Nvme({}, {})
    its = volumes(blocks, kernel)
    assert its.problem == "nvme1n1: [Errno 1] Operation not permitted"
    sent = len(kernel.commands)
    assert its.read() is None
    assert len(kernel.commands) == sent == 2


def test_a_page_of_something_else_is_refused(blocks: Path) -> None:
    kernel = Nvme({name: statistics_page(*STATISTICS, magic=0xEC2C0D7E) for name in ("nvme0n1", "nvme1n1")}, {})
    assert volumes(blocks, kernel).read() is None
    with pytest.raises(ValueError, match="has 10 bytes"):
        nvme.exceeded(bytes(10))


def test_devices_have_the_names_that_all_nodes_know(blocks: Path) -> None:
    """NVMe devices are numbered in any order: the volume's name is that of the benchmark file."""
    its = volumes(blocks, Nvme({}, {"nvme0n1": "/dev/xvda", "nvme1n1": "sdf"}))
    names = ("nvme0n1", "nvme1n1", "nvme2n1", "md127", "dm-0", "vda")
    gib = 1024**3
    assert block_devices.describe(names, its.mapped_name, blocks / "block") == {
        "nvme0n1": Device(EBS, "/dev/xvda", gib),
        "nvme1n1": Device(EBS, "/dev/sdf", gib),
        "nvme2n1": Device(INSTANCE_STORE, "nvme2n1", gib),
        "md127": Device(STACKED, "md127", gib),
        "dm-0": Device(STACKED, "vg0-data", gib),
        "vda": Device(OTHER, "vda", gib),
    }


@pytest.mark.parametrize("raw", [b"", b"\xff" * 32, b"rm -rf /", b"/dev/nvme0n1"])
def test_a_mapping_without_a_device_name_has_none(raw: bytes) -> None:
    assert nvme.mapped_name(bytes(3072) + raw.ljust(32, b"\0") + bytes(992)) is None


def test_a_device_that_is_gone_is_described_by_its_name(tmp_path: Path) -> None:
    def nothing(_: str) -> Any:
        return None

    assert block_devices.describe(["sdq"], nothing, tmp_path) == {"sdq": Device(OTHER, "sdq", None)}
