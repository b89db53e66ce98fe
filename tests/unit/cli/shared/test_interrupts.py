"""Ctrl-C: its exit code, and what goes on after it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from cli.client.api import Answer
from cli.shared import side_by_side
from cli.shared.errors import CliError, Exit
from cli.web import proxy
from tests.unit.cli.conftest import FakeApi, Run, event


@pytest.mark.parametrize(
    "line",
    ["groups", "group web", "events", "events --follow", "why web", "doctor", "bench list", "fleet list", "halt"],
)
def test_ctrl_c_during_a_request(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    def interrupted(*_args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "request", interrupted)
    result = run(*line.split())
    assert (result.exit_code, result.stdout) == (Exit.INTERRUPTED, "")


@pytest.mark.parametrize("line", ["unleash", "resume", "reaper on", "terminate web-v1"])
def test_a_question_that_is_aborted_is_not_confirmed(run: Run, api: FakeApi, line: str) -> None:
    result = run(*line.split(), typed="")
    assert result.exit_code == Exit.NOT_CONFIRMED
    assert "nothing was changed" in result.stderr
    assert [method for method, _, _ in api.calls if method != "GET"] == []


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_interrupted_terminate_says_what_goes_on(run: Run, api: FakeApi, words: tuple[str, ...]) -> None:
    claimed = event("web server", status="CLAIMED")
    api.refusals["POST", "terminations"] = [Answer(202, claimed)]
    api.refusals["GET", f"events/{claimed['id']}"] = [Answer(200, claimed)]
    result = run("-d", "Prod", "terminate", "web-v1", "--yes", *words)
    assert result.exit_code == Exit.INTERRUPTED
    assert "the termination of i-0abc continues, and cannot be stopped" in result.stderr
    assert "troop -d Prod events --follow --unit 'web server'" in result.stderr


def test_servers_report_the_signal_that_stopped_them() -> None:
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with pytest.raises(KeyboardInterrupt) as stop:
            proxy._stop(number, None)
        assert proxy.exit_code(stop.value) == code


def test_requests_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=300)

    def refused() -> None:
        both.wait()
        raise CliError(Exit.FORBIDDEN, "no")

    answers: Mapping[str, Any] = side_by_side.answers({"a": both.wait, "b": refused})
    assert (list(answers), str(answers["b"])) == (["a", "b"], "no")


def test_a_defect_in_a_request_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        side_by_side.answers({"a": lambda: 1 / 0})
