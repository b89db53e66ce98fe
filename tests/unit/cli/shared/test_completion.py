"""Completion of values: fast, silent, and from a cache that only its owner can read."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.client import connection, deployment, suggestions
from cli.client.api import Answer
from cli.client.connection import Connection
from cli.shared import aws
from cli.shared.context import Options
from tests.unit.cli.bench_runs import run_out
from tests.unit.cli.conftest import FakeApi, Run

Complete = Callable[[str], list[str]]
DENIED = Answer(403, {"Message": "User: x is not authorized to perform: y"})


@pytest.fixture
def complete(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Complete:
    """Completes the last word of a line, as bash asks for it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(suggestions, "SECONDS", 60.0)
    api.add("web", owner="ada")
    api.add("worker")
    api.add("rm;reboot")
    runs = [run_out(run="20261120-r1", name="disk-io"), run_out(run="20261119-r2", name="s3")]
    api.refusals["GET", "benchmarks"] = [Answer(200, {"runs": runs, "cursor": None})]
    fleet = {"fleet": "f1", "name": "workers", "status": "RUNNING"}
    api.refusals["GET", "fleets"] = [Answer(200, {"fleets": [fleet], "cursor": None})]

    schedules = {"schedules": [{"name": "nightly"}, {"name": "weekly"}], "off": False}
    api.refusals["GET", "benchmarks/schedules"] = [Answer(200, schedules)]

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_TROOP_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        result = CliRunner().invoke(app, [], prog_name="troop")
        assert result.stderr == ""
        return result.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("troop group w", ["web", "worker"]),
        ("troop why ", ["web", "worker"]),
        ("troop set wo", ["worker"]),
        ("troop events --unit we", ["web"]),
        ("troop events --group web", ["web-v1"]),
        ("troop terminate wo", ["worker-v1"]),
        ("troop groups --owner ", ["ada"]),
        ("troop groups --calendar d", ["default"]),
        ("troop bench status 2026", ["20261119-r2", "20261120-r1"]),
        ("troop bench watch 20261120", ["20261120-r1"]),
        ("troop bench compare 20261119-r2 20261120", ["20261120-r1"]),
        ("troop bench list --benchmark ", ["disk-io", "s3"]),
        ("troop bench unschedule n", ["nightly"]),
        ("troop bench schedule disk-io --name n", []),
        ("troop fleet down ", ["f1"]),
        ("troop fleet list --status r", []),
        ("troop fleet list --status R", ["RUNNING"]),
        ("troop events --status UNR", ["UNRECOVERED"]),
        ("troop groups --takes-part y", ["yes"]),
        ("troop groups -o y", ["yaml"]),
        ("troop --region eu-central-", ["eu-central-1", "eu-central-2"]),
        ("troop groups --region eu-central-", ["eu-central-1", "eu-central-2"]),
        ("troop simulate --unit w", []),
    ],
)
def test_values_of_the_deployment(complete: Complete, line: str, expected: list[str]) -> None:
    assert complete(line) == expected


def test_sizes_of_the_file_on_the_line(complete: Complete, file: Path) -> None:
    file.write_text("sizes: {small: {}, smoke: {}, large: {}}\n")
    assert complete(f"troop bench run {file} --size sm") == ["small", "smoke"]
    assert complete(f"troop bench run {file.parent} --size l") == ["large"]
    file.write_text("sizes: [")
    assert complete(f"troop bench run {file} --size sm") == []


def test_profiles(complete: Complete, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[profile dev]\n[profile prod]\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    assert complete("troop groups --profile d") == ["dev"]


def test_deployments(complete: Complete, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[tuple[object, object]] = []
    monkeypatch.setattr(aws, "make_light_session", lambda profile, region: sessions.append((profile, region)))
    monkeypatch.setattr(deployment, "deployments", lambda session: ["Troop", "Test", "Other"])
    assert complete("troop groups --region r1 -d T") == ["Test", "Troop"]
    assert sessions == [(None, "r1")]


def test_the_options_of_the_line_choose_the_deployment(complete: Complete, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TROOP_DEPLOYMENT", raising=False)
    used: list[Options] = []
    connect = connection.connect

    def connected(options: Options) -> Connection:
        used.append(options)
        return connect(options)

    monkeypatch.setattr(connection, "connect", connected)
    complete("troop -d A --region r1 group --region r2 w")
    assert used == [Options("A", "r2")]


def test_the_cache_saves_requests_and_is_private(complete: Complete, api: FakeApi, tmp_path: Path) -> None:
    complete("troop group w")
    calls = list(api.calls)
    assert complete("troop why w") == ["web", "worker"]
    assert (len(calls), api.calls) == (1, calls)
    [file] = (tmp_path / "cache" / "troop").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def aged(tmp_path: Path, seconds: float) -> None:
    [file] = (tmp_path / "cache" / "troop").iterdir()
    os.utime(file, (time.time() - seconds,) * 2)


def test_an_old_cache_is_renewed_and_is_better_than_nothing(complete: Complete, api: FakeApi, tmp_path: Path) -> None:
    complete("troop group w")
    aged(tmp_path, suggestions.FRESH_SECONDS + 60)
    api.add("watcher")
    assert complete("troop group wa") == ["watcher"]
    aged(tmp_path, suggestions.FRESH_SECONDS + 60)
    api.refusals["GET", "groups"] = [DENIED]
    assert complete("troop group wa") == ["watcher"]
    aged(tmp_path, suggestions.OLDEST_SECONDS + 60)
    assert complete("troop group wa") == []


def test_a_cache_that_is_no_cache_is_ignored(complete: Complete, tmp_path: Path) -> None:
    complete("troop group w")
    [file] = (tmp_path / "cache" / "troop").iterdir()
    file.write_text("[{")
    assert complete("troop group w") == ["web", "worker"]
    target = tmp_path / "elsewhere"
    target.write_text('[{"unit": "planted"}]')
    file.unlink()
    file.symlink_to(target)
    assert complete("troop group ") == ["web", "worker"]
    assert target.read_text() == '[{"unit": "planted"}]'


def test_values_before_the_time_limit_are_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def slow() -> Iterator[str]:
        yield "web"
        ended.wait(60)
        yield "late"

    monkeypatch.setattr(suggestions, "SECONDS", 0.2)
    tries = (suggestions._in_time(slow) for _ in range(300))  # on a busy machine, the thread may start late
    assert next(filter(None, tries)) == ["web"]
    ended.set()


def test_errors_are_silent(complete: Complete, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.refusals["GET", "groups"] = [Answer(200, {"nonsense": 1})]
    assert complete("troop group w") == []

    def unreachable(_options: Options) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(connection, "connect", unreachable)
    assert complete("troop bench status x") == []
