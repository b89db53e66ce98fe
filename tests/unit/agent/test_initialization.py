"""How a node reads volumes whole before the first phase."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from agent import block_devices, definition, initialization
from agent.errors import AgentError
from agent.expiry import Expiry
from agent.initialization import BLOCK, read_whole
from agent.nvme import EBS_MODEL
from agent.place import Place
from agent.session import Session
from agent.store import Store
from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.agent.node import BUCKET, ROLE, Node
from tests.unit.agent.test_phase import place  # noqa: F401 - a fixture


def device(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_every_byte_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of the last block, and if a read returns less than a block."""
    sizes = {"/dev/sdf": 3 * BLOCK + 1000, "/dev/sdg": 5, "/dev/sdh": 0}
    paths = {name: device(tmp_path / name[-3:], size) for name, size in sizes.items()}
    reads: list[tuple[str, int, int]] = []
    pread = os.pread

    def short(file: int, length: int, offset: int) -> bytes:
        data = pread(file, min(length, BLOCK // 3), offset)
        reads.append((str(Path(f"/proc/self/fd/{file}").readlink()), offset, len(data)))
        return data

    monkeypatch.setattr(os, "pread", short)
    read_whole(paths, threads=4)
    for name, size in sizes.items():
        ranges = sorted((offset, length) for path, offset, length in reads if path == str(paths[name]))
        end = 0
        for offset, length in ranges:
            assert offset == end
            end += length
        assert end == size
    assert "has read 3 MiB of /dev/sdf, /dev/sdg, /dev/sdh" in capsys.readouterr().out


def test_a_failed_read_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, pread = device(tmp_path / "sdf", 4 * BLOCK), os.pread

    def broken(file: int, length: int, offset: int) -> bytes:
        if offset == 2 * BLOCK:
            raise OSError(5, "Input/output error")
        return pread(file, length, offset)

    monkeypatch.setattr(os, "pread", broken)
    with pytest.raises(AgentError, match=f"cannot read /dev/sdf at byte {2 * BLOCK}: .*Input/output error"):
        read_whole({"/dev/sdf": path}, threads=2)


def test_a_device_that_ends_early_is_an_error_not_an_endless_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pread", lambda *_: b"")
    with pytest.raises(AgentError, match="it ends after 0 bytes"):
        read_whole({"/dev/sdf": device(tmp_path / "sdf", 10)}, threads=2)


def test_an_end_of_the_agent_ends_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal handler raises in the main thread, which shows the progress meanwhile."""

    class Ended(BaseException):
        pass

    def end(_: str) -> None:
        raise Ended

    monkeypatch.setattr(initialization, "say", end)
    monkeypatch.setattr(os, "pread", lambda file, length, offset: bytes(1))
    path = device(tmp_path / "sdf", 1 << 40)
    with pytest.raises(Ended):
        read_whole({"/dev/sdf": path}, threads=2, shown_every=0)


def test_volume_is_recognized_by_its_answer_or_else_by_its_name(tmp_path: Path) -> None:
    blocks, files = tmp_path / "block", tmp_path / "dev"
    files.mkdir()
    for name in ("nvme0n1", "nvme1n1", "nvme2n1"):
        (blocks / name / "device").mkdir(parents=True)
        (blocks / name / "device" / "model").write_text(
            EBS_MODEL if name != "nvme2n1" else "Amazon EC2 NVMe Instance Storage"
        )
    names = {"nvme0n1": "/dev/xvda", "nvme1n1": "/dev/sdf", "nvme2n1": "/dev/sdg"}

    def path(device: str) -> Path:
        return block_devices.path_of(device, names.get, blocks, files)

    assert path("/dev/sdf") == files / "nvme1n1"
    with pytest.raises(AgentError, match="no volume /dev/sdg"):
        path("/dev/sdg")
    (files / "xvdg").touch()
    assert path("/dev/sdg") == files / "xvdg"


def test_nodes_read_only_volumes_of_their_role_that_ask_for_it(tmp_path: Path) -> None:
    volumes = [
        {"device": "/dev/sdf", "initialize": "read"},
        {"device": "/dev/sdg", "initialize": 200},
        {"device": "/dev/sdh"},
    ]
    text = {
        "format": "troop.benchmark/1",
        "phases": [],
        "fleets": {ROLE: {"volumes": volumes}, "others": {"volumes": []}},
    }
    path = tmp_path / "definition.json"
    path.write_text(json.dumps(text))
    assert definition.read(path, ROLE).read_volumes == ("/dev/sdf",)
    assert definition.read(path, "others").read_volumes == ()


def test_a_node_that_cannot_read_its_volume_registers_the_reason(account: FakeAccount, node: Node) -> None:
    volumes = [{"device": "/dev/sdz", "initialize": "read"}]
    node.benchmark({"name": "measure"}, files={}, fleets={ROLE: {"volumes": volumes}})
    node.boot()
    assert node.registration()["error"] == "this node has no volume /dev/sdz"


def test_orders_are_read_before_volumes_are(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """A volume can take longer than a node that boots after its old end has to read of the new one."""
    steps: list[str] = []
    fleet = definition.Definition((), {}, (), {}, standing=True, read_volumes=("/dev/sdf",))
    monkeypatch.setattr(Session, "_fetch", lambda _: fleet)
    for step in ("_begin_keeping", "_initialize", "_stand"):
        monkeypatch.setattr(Session, step, lambda *_, step=step: steps.append(step))
    Session(place, Store(BUCKET, REGION), Expiry(time.time() + 60)).run()
    assert steps == ["_begin_keeping", "_initialize", "_stand"]
