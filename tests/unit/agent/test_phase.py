"""A phase on a node, from its release to its summary."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agent import phase as phases
from agent.barrier import Release
from agent.boot import Boot
from agent.command import Ended
from agent.metadata import Identity
from agent.output import BoundedOutput
from agent.phase import perform
from agent.place import Place
from infra import ROOT
from tests.unit.agent.test_collect import left, named
from troop.measure import phase_environment
from troop.measure.recorder import Recorder
from troop.measure.summary import Summary

PHASE = "measure"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    boot = Boot("results", "us-west-2", "20261121-150312-1f0c9b2e", "c001", "drivers", "0" * 64, 1_790_000_000.0)
    (tmp_path / "files").mkdir()
    place = Place(tmp_path, boot, Identity("i-1", "us-west-2a", "c7g.large", "127.0.0.1", "ami-1"))
    place.results(PHASE).mkdir(parents=True)
    return place


def done(place: Place, script: str = "#!/bin/sh\n") -> Summary:
    path = place.files / "run.sh"
    path.write_text(script)
    path.chmod(0o755)
    return perform(place, PHASE, 0, Release("run.sh", 300, 0, 5, None), None).summary


def test_a_summary_that_would_be_too_large_says_so_at_once(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    left(place.results(PHASE), named("get", 2, 1))
    assert set(done(place).operations) == {"get", "get001"}
    release = Release("run.sh", 300, 0, 5, None)
    summary = perform(place, PHASE, 0, release, None, summary_bytes=5).summary
    assert (summary.outcome, summary.operations) == ("failed", {})
    assert "record fewer operations" in str(summary.reason)
    output = capsys.readouterr()
    assert "get001: counts by second are left out" in output.out + output.err


def test_reason_of_a_timed_out_script_has_its_last_output(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs:
        def __init__(self, line: list[str], folder: Path, environment: Any, output: BoundedOutput) -> None:
            output.write(b"begins\ngoing on\n")

        def wait(self, until: float) -> Ended:
            return Ended(None)

    monkeypatch.setattr(phases, "Command", Hangs)
    summary = done(place)
    assert summary.outcome == "timed-out"
    assert summary.reason == "run.sh took longer than 300 s and was stopped; its last output: going on"


class Clock:
    """Stands in for the module ``time``."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def time(self) -> float:
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("start_at", "begins"), [(1_790_000_010.0, 1_790_000_010.0), (None, 1_790_000_004.0)])
@pytest.mark.parametrize("warm_up", [0, 7])
def test_the_start_of_a_script_is_no_measured_time(
    place: Place, monkeypatch: pytest.MonkeyPatch, start_at: float | None, begins: float, warm_up: float
) -> None:
    """It takes almost all of the time that it has for it."""
    clock, started = Clock(), []

    class Starts:
        def __init__(self, line: list[str], folder: Path, environment: dict[str, str], output: BoundedOutput) -> None:
            started.append(clock.now)
            clock.sleep(3.9)
            self._environment = environment

        def wait(self, until: float) -> Ended:
            environment = self._environment | {"TROOP_RESULTS": str(place.results(PHASE))}
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            with Recorder.of_this_phase() as recorder:
                assert clock.now == begins
                recorder.ok("get", 0.001)
            return Ended(0)

    for module in (phases, phase_environment):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr("troop.measure.recorder._steady_clock", lambda: clock.time)
    monkeypatch.setattr(phases, "Command", Starts)
    release = Release("run.py", 300, warm_up, 5, start_at, start_up_seconds=4)
    summary = perform(place, PHASE, 0, release, None).summary
    assert (summary.outcome, started) == ("ok", [begins - 4])
    assert summary.measured_from == begins + warm_up
    assert summary.operations["get"].per_second.start == begins
    assert summary.operations["get"].per_second.count[0] == 1


def test_a_script_without_time_to_start_starts_at_the_common_start(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, started = Clock(), []

    class Starts:
        def __init__(self, *_: Any) -> None:
            started.append(clock.now)

        def wait(self, until: float) -> Ended:
            return Ended(0)

    monkeypatch.setattr(phases, "time", clock)
    monkeypatch.setattr(phases, "Command", Starts)
    perform(place, PHASE, 0, Release("run.py", 300, 0, 5, 1_790_000_010.0), None)
    assert started == [1_790_000_010.0]


RECORDS = """import os, signal, sys
from troop.measure.recorder import Recorder

with Recorder.of_this_phase() as recorder:
    recorder.ok("get", 0.001)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_phase_fails_if_a_process_is_killed_before_it_writes_what_it_recorded(place: Place) -> None:
    """Its script succeeds: some tools end with 0 when they lose a process."""
    (place.files / "records.py").write_text(RECORDS)
    records = f"PYTHONPATH={ROOT / 'functions'} {sys.executable} $TROOP_FILES/records.py"
    summary = done(place, f"#!/bin/sh\n{records} whole\n")
    assert (summary.outcome, summary.operations["get"].times.count) == ("ok", 1)
    summary = done(place, f"#!/bin/sh\n{records} whole\n{records} killed\n{records} killed\nexit 0\n")
    assert (summary.outcome, summary.exit_code, summary.operations["get"].times.count) == ("failed", 0, 2)
    first, second = str(summary.reason).split("; ")
    for sentence in (first, second):
        assert "ended before it wrote the operations that it recorded" in sentence
