"""What `make local` says when it is up is true, and its commands work as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.process import AccountError, alone
from local.project import ROOT
from local.settings import lasting_settings
from local.welcome import exports, lend_commands, welcome

NOW = datetime(2026, 11, 22, 13, 24, tzinfo=UTC)
FILE = ROOT / ".local" / "env.sh"
OUTPUTS = {"ApiUrl": "https://127.0.0.1:1/"}
CALENDAR = lasting_settings(NOW)["troop:calendars"]["default"]
MESSAGE = welcome(FILE, OUTPUTS, NOW, CALENDAR["time_zone"])


def test_message_says_that_chaos_is_unleashed_and_until_when() -> None:
    assert "unleashed here" in MESSAGE
    assert "even a group of one" in MESSAGE
    assert "starts leashed" in MESSAGE
    assert f"22:24 in the calendar's time zone ({CALENDAR['time_zone']})" in MESSAGE
    assert "within 96 minutes" in MESSAGE
    assert "Faults inside instances need the group's tag troop:inside" in MESSAGE


def test_without_a_deployment_there_is_no_chaos_to_tell_of() -> None:
    message = welcome(FILE, {}, NOW, CALENDAR["time_zone"])
    assert "unleashed" not in message
    assert "source .local/env.sh" in message


def test_shell_that_reads_the_exports_has_the_commands(tmp_path: Path) -> None:
    folder = lend_commands(tmp_path)
    named = set(re.findall(r"^  (\w+) ", MESSAGE, re.MULTILINE))
    assert named == {"source", "aws", "troop"}
    script = exports({"AWS_REGION": "it's"}, folder) + 'command -v aws; command -v troop; echo "$AWS_REGION"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=dict(os.environ), check=True)
    assert done.stdout.splitlines() == [str(folder / "aws"), str(folder / "troop"), "it's"]


@pytest.mark.parametrize("command", ["aws", "troop"])
def test_lent_command_is_executable(tmp_path: Path, command: str) -> None:
    assert os.access(lend_commands(tmp_path) / command, os.X_OK)


def test_a_second_account_of_the_same_name_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    file = tmp_path / "env.sh"
    with (
        alone(file, "local"),
        pytest.raises(AccountError, match=r"name local runs already.*--name other"),
        alone(file, "local"),
    ):
        pass
    with alone(file, "local"), alone(tmp_path / "env-other.sh", "other"):
        pass
