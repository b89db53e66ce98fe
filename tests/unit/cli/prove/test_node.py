"""A node answers each check in one line."""

from __future__ import annotations

import ast
import json
import platform
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.prove import runs
from cli.prove.node import ask
from cli.prove.run_probes import answers_in
from tests.unit.cli.prove.conftest import REGION

NODE = Path(ask.__file__).parent


def _answers(monkeypatch: pytest.MonkeyPatch, capsys: Any, home: Path, phase: str) -> list[dict[str, Any]]:
    (home / "parameters.json").write_text('{"system": true, "filtered": false}')
    monkeypatch.setenv("TROOP_PARAMETERS", str(home / "parameters.json"))
    monkeypatch.setenv("TROOP_PHASE", phase)
    ask.main()
    return answers_in("noise\n" + capsys.readouterr().out)


def test_a_node_answers_one_line_a_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    assert ast.parse((NODE / "ask.py").read_text(), feature_version=(3, 9))
    checks = [
        ask.Check("fine", ("echo", "7")),
        ask.Check("pattern", ("sh", "-c", "echo masked; exit 1"), "masked"),
        ask.Check("other", ("echo", "enabled"), "masked"),
        ask.Check("missing", ("no-such-program",)),
        ask.Check("killed", ("sh", "-c", "kill -9 $$"), code=-9),
        ask.Check("change", ("touch", str(tmp_path / "changed")), changes=True),
    ]
    monkeypatch.setattr(ask, "phase_checks", lambda *_: iter(checks))
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
    answers = _answers(monkeypatch, capsys, tmp_path, "ask")
    assert [(one["name"], one["ok"], one["code"]) for one in answers] == [
        ("fine", True, 0),
        ("pattern", True, 1),
        ("other", False, 0),
        ("missing", False, None),
        ("killed", True, -9),
    ]
    assert answers[0]["command"] == "echo 7"
    assert not (tmp_path / "changed").exists(), "a node of local AWS is somebody's machine"
    monkeypatch.delenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
    ask.main()
    assert (tmp_path / "changed").exists()


def _all_checks(home: Path) -> list[ask.Check]:
    (home / "artifacts").mkdir()
    for name in runs.BUILT:
        (home / "artifacts" / name).touch()
    boot = {"bucket": "b", "run": "r", "cell": "c001", "role_id": "AROA", "region": REGION}
    (home / "boot.json").write_text(json.dumps(boot))
    phases = ("ask", "programs", "memory", "reboot")
    return [check for phase in phases for check in ask.phase_checks(phase, home, {"filtered": True})]


def test_check_that_changes_a_machine_is_marked(tmp_path: Path) -> None:
    for check in _all_checks(tmp_path):
        words = " ".join(check.command)
        risky = any(
            word in words for word in ("dnf install", "modprobe", "sysctl", "drop_caches", "reboot", "oom_score")
        )
        assert check.changes or not risky, check.name
    (extra,) = [one for one in ask.checks("6.12.40-64.114.amzn2023.aarch64") if "modules-extra" in one.name]
    assert "kernel6.12-modules-extra-6.12.40-64.114.amzn2023 ||" in extra.command[-1]


def test_commands_of_a_node_are_well_formed(tmp_path: Path) -> None:
    for check in _all_checks(tmp_path):
        if check.command[0] in ("sh", "bash"):
            subprocess.run(["bash", "-n", "-c", check.command[-1]], check=True)
        elif check.command[1:2] == ("-c",):
            assert ast.parse(check.command[2], feature_version=(3, 9))
    subprocess.run(["sh", "-n", runs.SPOT.folder / "meet.sh"], check=True)


def test_a_node_starts_the_programs_for_its_processor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    artifacts, tools = tmp_path / "artifacts", tmp_path / "tools"
    artifacts.mkdir()
    tools.mkdir()
    for name in ("k6-arm64", "k6-x86_64", "latte-x86_64"):
        (artifacts / name).write_text(f'#!/bin/sh\necho {name} "$@"; [ "$1" = --version ] || cat\n')
    for name, inner in (("jmeter.tar", "apache-jmeter-5.6.3/bin/ApacheJMeter.jar"), ("locust-arm64.tar", "locust.py")):
        with tarfile.open(artifacts / name, "w") as archive:
            archive.addfile(tarfile.TarInfo(inner))
    for name in ("java", "python3.11", "dnf"):
        (tools / name).write_text('#!/bin/sh\necho "$0" "$@"\n')
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.delenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", raising=False)
    answers = {one["name"]: one for one in _answers(monkeypatch, capsys, tmp_path, "programs")}
    assert [name for name, one in answers.items() if not one["ok"]] == []
    assert [*answers][2:] == ["jmeter.tar", "k6-arm64", "locust-arm64.tar"]
    assert answers["k6-arm64"]["output"] == "k6-arm64 run --quiet --iterations 3 -\nexport default () => {}"
    assert "apache-jmeter-5.6.3/bin/ApacheJMeter.jar --version" in answers["jmeter.tar"]["output"]


@pytest.mark.parametrize(
    ("name", "output", "ok"),
    [
        ("corretto", 'openjdk version "17.0.17" LTS\nOpenJDK Runtime Environment Corretto-17.0.17.10.1', True),
        ("corretto", 'openjdk version "21.0.9" LTS\nOpenJDK Runtime Environment Corretto-21.0.9.10.1', False),
        ("oom-policy", "OOMPolicy=continue", True),
        ("oom-policy", "OOMPolicy=stop\nKillMode=process", False),
        ("masked-dnf-makecache.timer", "masked-runtime", True),
    ],
)
def test_an_answer_depends_on_what_a_node_prints(name: str, output: str, ok: bool) -> None:
    (check,) = [one for one in ask.checks("6.1.0-1.amzn2023.aarch64") if one.name == name]
    assert ask.answer(replace(check, command=("printf", "%s", output)))["ok"] is ok


def test_a_long_output_begins_with_a_whole_word() -> None:
    output = ask.answer(ask.Check("long", ("printf", "%s", "i-0123456789abcdef0 " + "7 " * 295)))["output"]
    assert str(output).startswith("... 7 7")
