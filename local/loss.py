"""Measures on local AWS what load notices of a failure: `make loss`.

A real ring of Cassandra loses one of three servers. Then the web tiers behind nginx lose a web server, and get it back,
and an authentication server stands still for some seconds. Last, nodes are kernels of their own: the network of one of
two servers is cut, and later slow. All reports outlive the account.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import tools, web
from .launcher import LocalAccount, obstacle
from .project import ROOT, STATE, tool_environment
from .settings import lasting_settings

BROKEN, UNKNOWN = 17, 15
"""Exit codes of `troop bench run` for verdicts; the report exists, too."""


@dataclass(frozen=True)
class Trial:
    """A benchmark of the catalogue on this machine.

    Attributes:
        sizes: of its file; empty for none.
        changes: of its file, by key.
    """

    name: str
    folder: Path
    sizes: str
    changes: Mapping[str, Any]


DOUBLE = ("proxies", "web", "authentication", "data")
"""The tiers of which there are two nodes."""
RING = Trial(
    "a ring of three servers, one of which is stopped",
    tools.BENCHMARK,
    "local,loss",
    {
        "expires_after": "1h",
        "fleets.servers.count": 3,
        "fleets.drivers.count": 1,
        "phases.measure.warm_up": "20s",
        "phases.measure.measured": "70s",
        "phases.measure.timeout": "4m",
        "phases.measure.faults": [
            {
                "at": "30s",
                "role": "servers",
                "method": "stop",
                "expect": {"rate": 0.5, "share": 0.9, "rate_back_within": "20s", "failed_at_most": 500},
            }
        ],
        "phases.measure.rate": {},  # latte skips requests for which a busy machine is late
        "parameters.rate": 100,
        "parameters.exact": False,
    },
)
TIERS = Trial(
    "web tiers behind nginx, of which a web server is killed and an authentication server stands still",
    web.BENCHMARK,
    "local-test,loss",
    {
        "expires_after": "1h",
        **{
            f"fleets.{role}.{key}": 2
            for role in ("proxies", "web", "authentication", "data")
            for key in ("count", "zones")
        },
        "fleets.drivers.count": 1,
        "phases.measure.warm_up": "25s",
        "phases.measure.measured": "80s",
        "phases.measure.timeout": "4m",
        "phases.measure.faults": [
            {
                "at": "20s",
                "role": "web",
                "method": "script",
                "script": "lose.py",
                "for": "10s",
                "expect": {"rate": 0.8, "share": 0.9, "rate_back_within": "5s"},
            },
            {
                "at": "55s",
                "role": "authentication",
                "method": "pause",
                "for": "5s",
                "expect": {"share": 0.9, "rate_back_within": "15s", "failed_at_most": 0},
            },
        ],
        "parameters.threads": 120,
        "parameters.rate": 60,
    },
)
NETWORK = Trial(
    "two servers as kernels, the network of one of which is cut, and later slow",
    ROOT / "tests" / "e2e" / "loss",
    "",
    {
        "fleets.drivers.count": 1,
        "phases.measure.warm_up": "15s",
        "phases.measure.measured": "100s",
        "phases.measure.timeout": "5m",
        "phases.measure.faults": [
            {
                "at": "20s",
                "role": "servers",
                "method": "cut",
                "for": "10s",
                "expect": {"rate": 0.4, "share": 0.9, "rate_back_within": "20s", "failed_at_most": 150},
            },
            {
                "at": "70s",
                "role": "servers",
                "method": "slow",
                "delay": 200,
                "for": "10s",
                "expect": {"share": 0.9, "p99_back_within": "20s", "failed_at_most": 20},
            },
        ],
        "parameters.rate": 20,
    },
)
"""Kernels are slow, so there is little load. A request to the slow server takes three times the delay."""


def run(say: Callable[[str], None], *, only_kernels: bool = False) -> int:
    """Installs what is missing, makes the trials, and prints their verdicts. Returns the exit code of the worst.

    Without kernels on this machine, the trial that needs them is left out.

    Raises:
        NoToolError: a tool or an artifact cannot be had.
    """
    codes = [] if only_kernels else _run_with_tools(say)
    if why := obstacle("network") or obstacle("kernels"):
        say(f"no network is cut or slow: {why}")
    else:
        codes += _run_all((NETWORK,), say, kernels=True)
    return next((code for code in codes if code not in (0, UNKNOWN)), max(codes, default=1))


def _run_with_tools(say: Callable[[str], None]) -> list[int]:
    tools.prepare(say)
    tools.install([command for command in ("nginx", "memcached") if web.which(command) is None], say)
    if remedy := web.missing():
        raise tools.NoToolError(f"a program is missing: {remedy}")
    if problem := web.build("flights"):
        raise tools.NoToolError(problem)
    return _run_all((RING, TIERS), say)


def _run_all(trials: Sequence[Trial], say: Callable[[str], None], *, kernels: bool = False) -> list[int]:
    """Makes trials in a new account, and returns their exit codes."""
    with LocalAccount("loss", kernels=kernels, progress=say) as account:
        account.deploy(lasting_settings(datetime.now(UTC)))
        environment = {**tool_environment(), **account.exports, "COLUMNS": "160"}
        return [_run(trial, environment, say) for trial in trials]


def _run(trial: Trial, environment: Mapping[str, str], say: Callable[[str], None]) -> int:
    say(f"{trial.name}: about three minutes")
    changes = [word for key, value in trial.changes.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    more = tools.choices() if trial is RING else []
    sizes = ["--size", trial.sizes] if trial.sizes else []
    code, output = _troop(["run", str(trial.folder), *sizes, *changes, *more, "--json"], environment)
    if code not in (0, BROKEN, UNKNOWN):
        print(output, flush=True)
        return code
    detail = json.loads(output)
    for fault in detail["cells"][0]["faults"]:
        print(f"   {fault['verdict']}: {fault['sentence']}", flush=True)
    report = STATE / f"troop-report-{detail['run']['run']}.html"
    _troop(["report", detail["run"]["run"], "-o", str(report.relative_to(ROOT))], environment)
    say(f"the report: {report}")
    return code if report.exists() else 1


def _troop(words: list[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Runs `troop bench`, whose progress it leaves on standard error. Returns its exit code and its output."""
    command = [str(ROOT / "scripts" / "troop"), "bench", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout
