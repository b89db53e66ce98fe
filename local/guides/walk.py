"""Runs the commands of a document on local AWS, as a person types them, and checks their output."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from local.demo.failure import DemoFailed
from local.demo.narrator import Narrator
from local.guides.block import Block, read
from local.launcher import LocalAccount
from local.project import BIN, ROOT, tool_environment
from local.welcome import lend_commands
from troop.chaos.roll import due_at
from troop.shared.calendars import Calendar

FIRST_HOUR = ROOT / "docs" / "start" / "first-hour.md"
STAGE = "first-hour"
DEPLOYMENT = f"Troop-{STAGE}"
GROUP = "first-hour-web"

SECONDS = 1200
"""The limit for the commands of a block, and for their repetitions, also on a slow machine."""

_PAUSE = 5
"""Seconds between two repetitions."""

_PROGRESS_OF_CDK = re.compile(r"\S+ \| +\d+/\d+ \||\S+: (start|success): ")
"""Hundreds of lines of a deployment, which would hide the rest."""

_SOON = timedelta(minutes=5)


def salt_due_early(unit: str, now: datetime) -> str:
    """Returns a salt with which the roll of a unit is due in the first minutes of the stage's day.

    The salt works for the UTC dates of the aware moment `now` and of the day after.
    """
    whole_day = Calendar("UTC, all day", "UTC", frozenset(range(7)), 0, 24 * 60)
    today = now.astimezone(UTC).date()
    salts = (f"{number:064x}" for number in count())

    def is_early(salt: str, ahead: int) -> bool:
        due = due_at(salt.encode(), today + timedelta(days=ahead), unit, whole_day)
        return timedelta(hours=due.hour, minutes=due.minute) < _SOON

    return next(salt for salt in salts if is_early(salt, 0) and is_early(salt, 1))


class Walk:
    """One walk through the commands of a document, in a running account, as in one shell.

    Args:
        environment: of the shell.
        blocks: the commands.
        folder: where they run.
        deployment: its name in the account, which the document calls `Troop`; empty if both agree.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        narrator: Narrator,
        blocks: Sequence[Block],
        *,
        folder: Path = ROOT,
        deployment: str = "",
    ) -> None:
        self._environment, self._tell, self._blocks = environment, narrator, blocks
        self._folder, self._deployment = folder, deployment

    def run(self) -> None:
        """Runs all commands that local AWS can run. Raises DemoFailed if one does not show what the document says."""
        heading = ""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".sh") as shell:
            shell.write(f"cd {shlex.quote(str(self._folder))}\n")
            shell.flush()
            for block in self._blocks:
                if block.heading != heading:
                    self._tell.title(block.heading)
                    heading = block.heading
                if block.skipped:
                    self._tell.say(f"skipped: {block.skipped}", "dim")
                else:
                    self._walk(block, shell.name)

    def _walk(self, block: Block, shell: str) -> None:
        for line in block.script.splitlines():
            self._tell.text(f"$ {line}" if not line.startswith(" ") else line, "good")
        until = time.monotonic() + SECONDS
        while True:
            code, output = self._run(block.script, shell, quiet=block.repeats)
            if self._deployment:
                output = output.replace(f" -d {self._deployment}", "").replace(self._deployment, "Troop")
            lack = block.unmet(code, output)
            if not lack or not block.repeats or time.monotonic() > until:
                break
            self._tell.say(f"not yet: {lack}", "dim")
            time.sleep(_PAUSE)
        if block.repeats:
            self._tell.text(output.rstrip() or " ", "plain")
        if lack:
            raise DemoFailed(f"{block.heading}: {lack}")

    def _run(self, script: str, shell: str, quiet: bool) -> tuple[int, str]:
        """Runs commands; prints their output as it comes, unless `quiet`. Returns the exit code and the output.

        The file `shell` restores the folder and the variables of the commands before, and then keeps those of these.
        """
        # bash keeps some variables of its own read-only.
        keep = """export -p | grep -v "^declare -r"; printf "cd %q\\n" "$PWD" """
        state = shlex.quote(shell)
        running = subprocess.Popen(
            ["bash", "-c", f". {state}\ntrap '{{ {keep}; }} > {state}' EXIT\nset -aeuo pipefail\n{script}"],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        limit = threading.Timer(SECONDS, running.kill)
        limit.start()
        lines = []
        try:
            assert running.stdout is not None
            for line in running.stdout:
                lines.append(line)
                if not quiet and not _PROGRESS_OF_CDK.match(line):
                    self._tell.text(line.rstrip() or " ", "plain")
        finally:
            running.kill()
            code = running.wait()
            limit.cancel()
        return code, "".join(lines)


def environment_for(account: LocalAccount, deployment: str) -> dict[str, str]:
    """Returns the environment of a shell in the account, which confirms what `make` asks."""
    own = {
        name: value for name, value in tool_environment().items() if not name.startswith("MAKE") and name != "MFLAGS"
    }
    path = os.pathsep.join((str(lend_commands(account.run)), str(BIN), own.get("PATH", os.defpath)))
    answers = {"YES": "1", "CONFIRM": deployment, "TROOP_DEPLOYMENT": deployment, "COLUMNS": "150"}
    return own | account.exports | answers | {"PATH": path}


def first_hour() -> int:
    """Runs the first hour from start to cleanup; returns the exit code."""
    narrator = Narrator()
    try:
        narrator.title("The commands of docs/start/first-hour.md, on local AWS")
        salt = salt_due_early(GROUP, datetime.now(UTC))
        with LocalAccount("first-hour", secret=salt, progress=narrator.say) as account:
            Walk(environment_for(account, DEPLOYMENT), narrator, read(FIRST_HOUR)).run()
            narrator.say("stopping everything", "dim")
    except DemoFailed as failed:
        narrator.say(f"The first hour failed: {failed}", "bad")
        return 1
    narrator.say("done: every step that local AWS can run has shown what the guide says; no process is left", "good")
    return 0
