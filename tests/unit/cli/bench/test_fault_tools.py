"""What `troop bench validate` says about the tools of a benchmark with planned faults."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.bench.fault_tools import COUNTING, LACKING, tools
from tests.unit.cli.conftest import Run
from troop.measure.collectors.__main__ import _parser

FAULTS = """    start_together: true
    faults: [{at: 60s, role: servers, method: stop}]
"""
SERVERS = "  servers:\n    count: 3\n    instance_type: c7g.large\nphases:\n"


@pytest.fixture
def faulty(file: Path) -> Path:
    text = file.read_text().replace("    measured: 5m\n", f"    measured: 5m\n{FAULTS}").replace("phases:\n", SERVERS)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("script", "names"),
    [
        (b"python3 -m troop.measure.collectors jtl log.jtl --while 7", ["jtl"]),
        (b'[sys.executable, "-m", "troop.measure.collectors", "fio", str(output)]', ["fio"]),
        (b"from troop.measure.collectors import jtl, k6, output", ["jtl", "k6"]),
        (b"from troop.measure.collectors.locust_events import listen", ["locust"]),
        (b"from troop.measure.recorder import Recorder", ["recorder"]),
        (b"python3 -m troop.measure.hdr_log latte.hlog --tag T", ["hdr"]),
        (b"python3 -m troop.measure.collectors cassandra-stress out.txt", ["cassandra-stress"]),
        (b"from troop.measure.hdr_log import Interval", []),
        (b"from troop.measure.collectors.window import Window", []),
    ],
)
def test_tools_are_read_from_files(script: bytes, names: list[str]) -> None:
    assert tools({"measure.sh": script}) == names


def test_each_collector_counts_by_second_or_lacks_something() -> None:
    (choices,) = [one.choices for one in _parser()._actions if one.choices]
    assert {*choices} - {"sysstat"} <= {*COUNTING, *LACKING}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "from troop.measure.recorder import Recorder",
            "faults of measure can be judged: recorder counts operations and failures by second",
        ),
        (
            "# python3 -m troop.measure.collectors wrk wrk.txt",
            "faults of measure: wrk does not count by second, so the",
        ),
        ("pass", "faults of measure need operations and failures by second: recorder, JMeter (jtl), k6, Locust"),
    ],
)
def test_validate_says_what_the_verdict_will_lack(run: Run, faulty: Path, line: str, words: str) -> None:
    faulty.with_name("read.py").write_text(f"{line}\n")
    result = run("bench", "validate", str(faulty))
    assert result.exit_code == 0, result.output
    output = re.sub(r"\s+", " ", result.output)
    assert words in output
    assert "measure has no rate: how many operations are missing is an estimate" in output
    document = json.loads(run("bench", "validate", str(faulty), "--json").stdout)
    assert any(one.startswith(words) for one in document["faults"])


def test_a_file_without_faults_needs_no_remark(run: Run, file: Path) -> None:
    assert "by second" not in run("bench", "validate", str(file)).output
