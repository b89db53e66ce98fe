"""Scripts: their output within bounds, their processes within their time, and nothing killed that should stay."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.command import Command, Ended, line_for
from agent.output import HEAD, TAIL, BoundedOutput
from tests.patience import PATIENCE, eventually
from tests.unit.agent.node import alive


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_long_output_is_cut_in_the_middle(parts: list[bytes]) -> None:
    output, whole = BoundedOutput(head=20, tail=50), b"".join(parts)
    for part in parts:
        output.write(part)
    if len(whole) <= 70:
        assert output.content() == whole
    else:
        gap = b"\n... %d bytes are left out here ...\n" % (len(whole) - 70)
        assert output.content() == whole[:20] + gap + whole[-50:]


def test_the_last_line_is_the_last_that_says_something() -> None:
    output = BoundedOutput()
    assert output.last_line() == ""
    output.write(b"first\n  the reason \xff \n\n  \n")
    assert output.last_line() == "the reason \ufffd"


def run(script: str, folder: Path, output: BoundedOutput | None = None) -> Ended:
    line = ["bash", "-c", script]
    return Command(line, folder, dict(os.environ), output or BoundedOutput()).wait(time.monotonic() + PATIENCE)


def pid_in(path: Path) -> int:
    """The process id that a script writes to a file, as soon as it is there."""
    return int(eventually(lambda: path.exists() and path.read_text().strip()))


@pytest.mark.parametrize(("script", "code"), [("true", 0), ("exit 7", 7), ("kill -9 $$", -9)])
def test_how_it_ended(tmp_path: Path, script: str, code: int) -> None:
    assert run(script, tmp_path) == Ended(code)


def test_endless_output_is_bounded_and_does_not_stop_it(tmp_path: Path) -> None:
    output = BoundedOutput()
    assert run("echo first; head -c 5000000 /dev/zero; echo; echo last >&2", tmp_path, output=output).code == 0
    content = output.content()
    assert len(content) < HEAD + TAIL + 100
    assert content.startswith(b"first\n")
    assert content.endswith(b"\nlast\n")


def test_at_its_time_the_whole_group_is_ended(tmp_path: Path) -> None:
    script = "sleep 300 & echo $! > child; trap '' TERM; echo $$ > self; while :; do sleep 0.1; done"
    command = Command(["bash", "-c", script], tmp_path, dict(os.environ), BoundedOutput())
    pids = [pid_in(tmp_path / name) for name in ("child", "self")]
    command.kill(grace_seconds=0.2)
    eventually(lambda: not any(map(alive, pids)))


def test_a_command_may_clean_up_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "trap 'echo cleaned > cleaned; exit 3' TERM; touch ready; while :; do sleep 0.05; done"
    monkeypatch.setattr(Command.kill, "__defaults__", (PATIENCE,))
    command = Command(["bash", "-c", script], tmp_path, dict(os.environ), BoundedOutput())
    eventually((tmp_path / "ready").exists)
    assert command.wait(time.monotonic()).code is None
    assert (tmp_path / "cleaned").exists()


def test_a_server_that_a_phase_leaves_running_is_left_running(tmp_path: Path) -> None:
    server = "(while :; do echo served; echo served >> served; sleep 0.02; done) & echo $! > server"
    assert run(server, tmp_path).code == 0
    pid, served = int((tmp_path / "server").read_text()), tmp_path / "served"
    try:
        before = served.stat().st_size if served.exists() else 0
        eventually(lambda: not alive(pid) or (served.exists() and served.stat().st_size > before + 100))
        assert alive(pid), "it has died of its output"
    finally:
        os.kill(pid, 9)


def test_when_memory_runs_out_the_script_dies_and_not_the_agent(tmp_path: Path) -> None:
    output, score = BoundedOutput(), "cat /proc/self/oom_score_adj"
    assert run(f"until [ $({score}) = 500 ]; do sleep 0.02; done; {score}", tmp_path, output=output).code == 0
    assert int(Path("/proc/self/oom_score_adj").read_text()) < int(output.content())


def test_python_scripts_run_by_the_agents_python_and_others_as_they_say() -> None:
    assert line_for(Path("/files/read.py"))[0].rsplit("/", 1)[-1].startswith("python")
    assert line_for(Path("/files/prepare.sh")) == ["/files/prepare.sh"]
