"""The demo itself: it shows what it claims, ends by itself, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from local.project import ROOT

SECONDS = 3600
"""More than the demo waits for all that it waits for."""


def run_local(program: str) -> str:
    """Returns what a program of local AWS prints; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "local", program],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_demo_ends_well_and_leaves_no_process() -> None:
    began = time.time()
    output = run_local("demo")
    for claim in (
        "demo-web: chosen",
        "demo-search: chosen",
        "no longer answers; its process is dead",
        "boots at 127.",
        "demo-web: after the termination: noticed ",
        "demo-web: recovered",
        "demo-web: HELD: the group recovered in ",
        '"status": "RECOVERED"',
        "demo-ledger: opted-out: opted out by item: month-end closing",
        "demo-web: already-today",
        "a separate process",
        "SUCCEEDED (nothing is left of",
        "the report: .local/troop-report-",
        "#ticket=",
        "leftovers: 0 groups, 0 instances, 0 launch templates, 0 security groups, 0 volumes, 0 network interfaces",
        "no process is left running",
    ):
        assert claim in output, output
    assert left_over(began, "demo") == []


def left_over(since: float, account: str) -> list[str]:
    """Processes of local accounts of that name that were started since then."""
    runs = [str(run) for run in (ROOT / ".local").glob(f"{account}-*") if run.stat().st_ctime >= since]
    names = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                environment = (process / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            names += [process.name for run in runs if run in environment]
    return names
