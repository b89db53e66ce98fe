"""Describes this node's block devices: what they are, how large, and by which name all nodes know them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Callable, Union

from agent import nvme
from agent.errors import AgentError
from agent.proc import SECTOR
from troop.measure.device_samples import EBS, INSTANCE_STORE, LABEL, OTHER, STACKED, Device
from troop.measure.devices import STACKED_DEVICE

MappedName = Callable[[str], Union[str, None]]


def describe(names: Iterable[str], mapped_name: MappedName, blocks: Path = Path("/sys/block")) -> dict[str, Device]:
    """Returns the devices by the kernel's name.

    Args:
        mapped_name: returns the name of an EBS volume in the block device mapping, or None.
    """
    return {name: _device(name, mapped_name, blocks) for name in names}


def _device(name: str, mapped_name: MappedName, blocks: Path) -> Device:
    size = _text(blocks / name / "size")
    size_bytes = int(size) * SECTOR if size.isdecimal() and len(size) < 16 else None
    if STACKED_DEVICE.fullmatch(name):
        return Device(STACKED, _label(_text(blocks / name / "dm" / "name"), name), size_bytes)
    model = nvme.model(blocks, name)
    if model == nvme.EBS_MODEL:
        return Device(EBS, _label(mapped_name(name) or "", name), size_bytes)
    return Device(INSTANCE_STORE if model == nvme.INSTANCE_STORE_MODEL else OTHER, name, size_bytes)


def path_of(
    device: str, mapped_name: MappedName, blocks: Path = Path("/sys/block"), files: Path = Path("/dev")
) -> Path:
    """Returns the path of an EBS volume by its name in the block device mapping, such as ``/dev/sdf``.

    NVMe volumes answer what they are. Others have this name, or ``xvd`` in place of ``sd``.

    Raises:
        AgentError: this node has no such volume.
    """
    for name in nvme.names_in(blocks):
        if nvme.NVME.fullmatch(name) and nvme.model(blocks, name) == nvme.EBS_MODEL and mapped_name(name) == device:
            return files / name
    name = device.rpartition("/")[2]
    for path in (files / name, files / name.replace("sd", "xvd", 1)):
        if path.exists():
            return path
    raise AgentError(f"this node has no volume {device}")


def _label(text: str, otherwise: str) -> str:
    return text if LABEL.fullmatch(text) else otherwise


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
