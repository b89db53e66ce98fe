"""Runs the steps of the first hour on local AWS, as a person types them, and checks their output."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from local.demo.failure import DemoFailed
from local.demo.narrator import Narrator
from local.first_hour.steps import DEPLOYMENT, GROUP, STEPS, Step
from local.launcher import LocalAccount
from local.project import BIN, ROOT, tool_environment
from local.welcome import lend_commands
from troop.chaos.roll import due_at
from troop.shared.calendars import Calendar

SECONDS = 1200
"""The limit for the commands of a step, and for their repetitions, also on a slow machine."""

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


def unmet(step: Step, code: int, output: str) -> str:
    """Returns what a step's result lacks; an empty text if it is as expected."""
    if code:
        return f"exit code {code}"
    missing = [expected for expected in step.expects if not re.search(expected, output)]
    return f"the output lacks {missing[0]}" if missing else ""


class Walk:
    """One walk through all steps, in a running account without Troop."""

    def __init__(self, environment: Mapping[str, str], narrator: Narrator, steps: Sequence[Step] = STEPS) -> None:
        self._environment, self._tell, self._steps = environment, narrator, steps

    def run(self) -> None:
        """Runs all steps that local AWS can run. Raises DemoFailed if a step does not show what the guide says."""
        for number, step in enumerate(self._steps, 1):
            self._tell.title(f"{number}. {step.title}")
            if step.skipped:
                self._tell.say(f"skipped: {step.skipped}", "dim")
            else:
                self._walk(step)
            self._tell.say(f"only AWS proves {step.only_aws}", "dim")

    def _walk(self, step: Step) -> None:
        for line in step.script.splitlines():
            self._tell.text(f"$ {line}" if not line.startswith(" ") else line, "good")
        until = time.monotonic() + SECONDS
        while True:
            code, output = self._shell(step.script, quiet=step.repeats)
            lack = unmet(step, code, output)
            if not lack or not step.repeats or time.monotonic() > until:
                break
            self._tell.say(f"not yet: {lack}", "dim")
            time.sleep(_PAUSE)
        if step.repeats:
            self._tell.text(output.rstrip() or " ", "plain")
        if lack:
            raise DemoFailed(f"{step.title}: {lack}")

    def _shell(self, script: str, quiet: bool) -> tuple[int, str]:
        """Runs commands; prints their output as it comes, unless `quiet`. Returns the exit code and the output."""
        running = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=ROOT,
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


def environment_for(account: LocalAccount) -> dict[str, str]:
    """Returns the environment of the steps: of a shell in the account, which confirms what `make` asks."""
    own = {
        name: value for name, value in tool_environment().items() if not name.startswith("MAKE") and name != "MFLAGS"
    }
    path = os.pathsep.join((str(lend_commands(account.run)), str(BIN), own.get("PATH", os.defpath)))
    answers = {"YES": "1", "CONFIRM": DEPLOYMENT, "TROOP_DEPLOYMENT": DEPLOYMENT, "COLUMNS": "150"}
    return own | account.exports | answers | {"PATH": path}


def walk() -> int:
    """Runs the first hour from start to cleanup; returns the exit code."""
    narrator = Narrator()
    try:
        narrator.title("The steps of docs/start/first-hour.md, on local AWS")
        salt = salt_due_early(GROUP, datetime.now(UTC))
        with LocalAccount("first-hour", secret=salt, progress=narrator.say) as account:
            Walk(environment_for(account), narrator).run()
            narrator.say("stopping everything", "dim")
    except DemoFailed as failed:
        narrator.say(f"The first hour failed: {failed}", "bad")
        return 1
    narrator.say("done: every step that local AWS can run has shown what the guide says; no process is left", "good")
    return 0
