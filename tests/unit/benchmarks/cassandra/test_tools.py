"""What the local run needs, and what is said to whom lacks it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from local import tools
from local.process import keep_logs_only


@pytest.fixture(autouse=True)
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """A machine with nothing; what is run on it does nothing, and is listed."""
    run: list[list[str]] = []
    monkeypatch.setattr(tools, "TOOLS", tmp_path)
    monkeypatch.setattr(tools, "LATTE", tmp_path / "bin" / "latte")
    monkeypatch.setattr(tools, "JARS", (tmp_path / "cassandra.tar",))
    monkeypatch.setattr(tools, "LIBRARY", (tmp_path / "ssl.h", "libssl-dev"))
    monkeypatch.setattr(tools, "run", lambda command, *_, **__: run.append(command))
    monkeypatch.setattr(shutil, "which", lambda command: "/usr/bin/apt-get" if command == "apt-get" else None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return run


def test_all_that_is_missing_is_named() -> None:
    assert tools.missing() == "latte, cassandra.tar, Java 17"


def test_root_installs_packages_and_learns_how_to_get_cargo(commands: list[list[str]]) -> None:
    with pytest.raises(tools.NoToolError, match="cargo is missing"):
        tools.prepare(lambda _: None)
    assert {"openjdk-17-jre-headless", "maven", "gcc", "pkg-config", "libssl-dev"} <= set(commands[-1])


def test_other_users_learn_what_root_would_install(monkeypatch: pytest.MonkeyPatch, commands: list[list[str]]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(tools.NoToolError, match=r"as root: apt-get install .* openjdk-17-jre-headless"):
        tools.prepare(lambda _: None)
    assert commands == []


def test_tool_that_stays_missing_is_named(monkeypatch: pytest.MonkeyPatch, commands: list[list[str]]) -> None:
    monkeypatch.setattr(shutil, "which", lambda command: f"/usr/bin/{command}")
    monkeypatch.setattr(tools, "has_java", lambda: True)
    with pytest.raises(tools.NoToolError, match=r"still missing: latte, cassandra.tar$"):
        tools.prepare(lambda _: None)
    assert [command[1] for command in commands] == ["update", "install", "cargo", commands[-1][1]]
    assert commands[-1][1].endswith("cassandra-write/fetch.py")


def test_only_logs_of_ended_instances_stay(tmp_path: Path) -> None:
    """What a ring has had on its disks would fill the machine's."""
    logs = ["account.log", "instances/i-1/console.log", "instances/i-1/shared/logs/system.log"]
    gone = ["tmp/x", "instances/i-1/artifacts/cassandra", "instances/i-1/shared/data/data/t-1/nb-1-big-Data.db"]
    for name in (*logs, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "instances/i-1/shared/link").symlink_to(tmp_path / "instances")
    keep_logs_only(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == logs
    assert not (tmp_path / "instances/i-1/shared/data").exists()
