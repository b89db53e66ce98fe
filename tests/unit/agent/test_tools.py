"""A phase whose script runs tools: what it collects of their output is in the node's summary."""

from __future__ import annotations

from pathlib import Path

from tests.unit.agent.node import AWAIT_SAMPLES, Node
from troop.measure import summary as summaries
from troop.measure.summary import SERIES

WRK = Path(__file__).parents[1] / "measure" / "collectors" / "data" / "wrk-4.1.0.txt"
MEMORY = 123_456
SCRIPT = f"""
import json, os, subprocess, sys, time
files, results = os.environ["TROOP_FILES"], os.environ["TROOP_RESULTS"]
subprocess.run([sys.executable, "-m", "troop.measure.collectors", "wrk", f"{{files}}/wrk.txt"], check=True)
series = {{name: [None] * 60 for name in {SERIES!r}}}
series["memory_used"] = [{MEMORY}] * 60
with open(f"{{results}}/samples-mine.json", "w") as file:
    samples = {{"from": int(time.time()) - 30, "interval_seconds": 1, **series}}
    json.dump({{"format": "troop.samples/1", "samples": samples}}, file)
{AWAIT_SAMPLES}
"""


def test_output_of_tools_is_in_the_summary(node: Node) -> None:
    node.benchmark({"name": "measure"}, files={"run.py": SCRIPT, "wrk.txt": WRK.read_text()})
    node.join()
    node.barrier("measure", measured_seconds=2)
    summary = summaries.parse(node.summary("measure"))
    assert (summary.outcome, summary.reason) == ("ok", None)
    assert [(row.tool, row.operation, row.count) for row in summary.separate] == [("wrk", "requests", 282_619)]
    assert summary.samples is not None
    assert set(summary.samples.series["memory_used"]) == {MEMORY}
    assert set(summary.samples.series["cpu_user"]) != {None}
