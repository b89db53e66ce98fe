"""Every measurement runs, with small numbers, and prints its table. What it measures is not judged."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from infra import ROOT
from tests.patience import PATIENCE

SMALL = {
    "cell": ("--servers 2 --drivers 1 --wait-scale 0.05", r"ec2:DeleteSecurityGroup +1\n"),
    "change_points": ("--series 4 --nights 40", r"5 % notifies once, nights, heavy tails +1 of 1, after \d+"),
    "cold_start": ("--repeat 1 --handlers decide", r"\ndecide +\d+ ms +\d+ ms"),
    "command": ("--pairs 1 --groups 2", r"\nstatus +autoscaling describe-auto-scaling-groups +\d+"),
    "compare": ("--comparisons 5 --workers 1", r"\nsame nodes, paired +5 +85 "),
    "decide": ("--units 50 --repeat 1", r"night: outside the window"),
    "events_page": ("--events 50", r"the original's, of all +50"),
    "failure": ("--windows 1 --rates 20", r"\na stall of 2 s +0 %"),
    "history_page": ("--series 3 --nights 30", r"\n +3 +30 +\d"),
    "jmeter": ("--samples 2000 --pairs 1 --alone", r"Troop's collector +[\d.]+"),
    "live": ("--operations 1 --repeat 1", r"\n +1 +[\d.]+"),
    "lost_workers": (
        "--tasks 1000 --poison 4 --nodes 9 --seconds 0.01 --lease 15",
        r"\nno task is lost, and each result stands once\n",
    ),
    "merge": ("--drivers 2 --seconds 10 --most 1000 --repeat 1 --pairs 0", r"\n +1,000 +\d+"),
    "model": ("--histories 2 --workers 1", r"terminated by shutdown"),
    "page": ("--units 20 --delay 0", r"\nunits/unit-0000 +\d+ kB"),
    "period": ("--events 12 --units 3", r"\n +12 +[\d.]+"),
    "price": ("--groups 10", r"after the permanent free tier"),
    "recorder": ("--operations 2000 --rounds 1 --threads 2", r"\nRecorder.ok with due +1 +[\d,]+"),
    "recovery": ("--terminations 2 --groups 1 --boot 2 --health 1 --wait-scale 0.05", r"known to 5 s"),
    "refusals": ("--repeat 1", r"2 MiB of text"),
    "report": ("--seconds 1 --cells 2", r"\n +2 +20"),
    "s3_reader": ("--seconds 0.2 --rounds 1 --threads 2 --warm-up 1", r"\nhttps +2 +10240"),
    "tick": ("--groups 5", r"dynamodb:BatchWriteItem +1 "),
    "web_app": ("--seconds 1", r""),
}
"""Options that make a measurement small, and what it prints then."""


def test_every_measurement_is_tried() -> None:
    assert set(SMALL) == {file.stem for file in (ROOT / "perf").glob("[!_]*.py")}


@pytest.mark.parametrize("name", SMALL)
def test_measurement_runs_and_prints_its_table(name: str) -> None:
    if name == "web_app" and not all(map(shutil.which, ("wrk", "go", "memcached"))):
        pytest.skip("perf.web_app needs wrk, Go and memcached")
    options, expected = SMALL[name]
    command = [sys.executable, "-m", f"perf.{name}", *options.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(expected, done.stdout), done.stdout
