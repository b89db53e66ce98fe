"""Runs the benchmark web-scale on local AWS: `make web`.

Real JMeter, nginx, memcached and the application, as processes at loopback addresses: once with a node of each tier,
and once with two. A search finds the largest rate that holds the limits. The report outlives the account.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from . import tools
from .launcher import LocalAccount
from .project import ROOT, STATE, tool_environment
from .settings import lasting_settings

BENCHMARK = ROOT / "benchmarks" / "web-scale"
BUILD = BENCHMARK / "software" / "build.py"
FOLDERS = ("/usr/sbin", "/usr/local/go/bin")
"""Folders of commands that some users lack in PATH."""
REMEDIES = {
    "go": "install Go from https://go.dev/dl",
    "nginx": "apt-get install nginx-light",
    "memcached": "apt-get install memcached",
}
"""The installation of each command that a run without Java needs."""
DEBIAN = ("java", "mvn", "nginx", "memcached")
"""Commands that `make web` gets from the distribution."""
LIMITS_EXCEEDED = 14
"""The exit code of `troop bench run` if a search has no answer; the report exists, too."""


def which(command: str) -> str | None:
    return shutil.which(command, path=os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS]))


def missing() -> str | None:
    """Returns what installs the first missing command of a run without Java; None if all exist."""
    return next((remedy for command, remedy in REMEDIES.items() if which(command) is None), None)


def build(*artifacts: str) -> str | None:
    """Builds artifacts; all without arguments. Returns the problem; None if they exist now.

    Their hashes are in the benchmark's file, so an existing artifact is not built again.
    """
    done = subprocess.run(
        [sys.executable, str(BUILD), *artifacts], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return (done.stderr or done.stdout).strip() or "build.py failed" if done.returncode else None


def run(say: Callable[[str], None], more: Sequence[str] = ()) -> int:
    """Installs what is missing, runs both steps, and prints the report's path. Returns the exit code.

    Args:
        more: further options of `troop bench run`.

    Raises:
        NoToolError: a command or an artifact cannot be had.
    """
    tools.install([command for command in DEBIAN if which(command) is None or command == "java"], say)
    if remedy := missing():
        raise tools.NoToolError(f"a program is missing: {remedy}")
    say("the artifacts: the application and JMeter, the first time a minute or two")
    if problem := build():
        raise tools.NoToolError(problem)
    with LocalAccount("web", progress=say) as account:
        account.deploy(lasting_settings(datetime.now(UTC)))
        environment = {**tool_environment(), **account.exports, "COLUMNS": "160"}
        say("two cells with at most seven points each: about twenty minutes")
        code, output = _troop(["run", str(BENCHMARK), "--size", "local", *more, "--json"], environment)
        if code not in (0, LIMITS_EXCEEDED):
            return code
        name = str(json.loads(output)["run"]["run"])
        report = STATE / f"troop-report-{name}.html"
        code = max(code, _troop(["results", name], environment, is_shown=True)[0])
        _troop(["report", name, "-o", str(report.relative_to(ROOT))], environment)
    if not report.exists():
        return 1
    print(f"the report: {report}", flush=True)
    return code


def _troop(words: Sequence[str], environment: Mapping[str, str], *, is_shown: bool = False) -> tuple[int, str]:
    """Runs `troop bench`, whose progress it leaves on standard error. Returns its exit code and its output."""
    command = [str(ROOT / "scripts" / "troop"), "bench", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if is_shown or done.returncode not in (0, LIMITS_EXCEEDED):
        print(done.stdout, flush=True)
    return done.returncode, done.stdout
