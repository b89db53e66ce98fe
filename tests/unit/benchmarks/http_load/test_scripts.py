"""The scripts of http-load as the agent starts them, with a stand-in for k6 that writes what k6 has written."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.pack import pack
from infra import ROOT
from tests.unit.agent.pythons import python39
from tests.unit.benchmarks.scripts import folder
from troop.bench.file.read import read_all
from troop.measure import operations

HOME = folder("http-load")
FILE = yaml.safe_load((HOME / "benchmark.yaml").read_text())
FILES = tuple(path.name for path in HOME.iterdir() if path.is_file() and path.name != "benchmark.yaml")
RECORDED = ROOT / "tests/unit/measure/collectors/data/k6-1.8.1-1.csv.gz"

K6 = """#!{python}
import gzip, json, os, re, sys, time
words = sys.argv[1:]
if words[0] == "version":
    sys.exit(0)
open("calls", "a").write(json.dumps(words) + "\\n")
if words[0] == "inspect":
    sys.exit(1 if "bad" in words[-1] else 0)
assert os.environ["K6_CSV_TIME_FORMAT"] == "unix_micro"
path = words[words.index("--out") + 1].partition("=")[2]
lines = gzip.open({recorded!r}, "rt").read().splitlines(True)
shift = round(float(os.environ["TROOP_MEASURED_FROM"]) * 1e6) + 100_000 - int(lines[1].split(",")[1])
seconds = float(next(word for word in words if word.startswith("lasts=")).partition("=")[2])
with open(path, "w") as out:
    for line in lines:
        out.write(re.sub("^([a-z_]+),([0-9]{{16}})", lambda m: f"{{m[1]}},{{int(m[2]) + shift}}", line))
time.sleep(max(0, float(os.environ["TROOP_MEASURED_FROM"]) + seconds - time.time()))
sys.exit({code})
"""


class Node:
    """Runs the scripts on one driver of several."""

    def __init__(self, folder: Path, port: int, rank: int = 0, nodes: int = 1) -> None:
        self.folder, self.rank = folder, rank
        for name in ("files", "artifacts", "shared", "results"):
            (folder / name).mkdir(parents=True)
        for name in FILES:
            (folder / "files" / name).write_bytes((HOME / name).read_bytes())
        target = {"host": "127.0.0.1", "port": port, "ports": [str(port)], "addresses": ["127.0.0.1/32"]}
        self.write("targets", {"targets": {"app": target}})
        self.write(
            "roster", {"nodes": [{"role": "drivers", "rank": n, "address": f"10.0.0.{n}"} for n in range(nodes)]}
        )
        self.stand_in()

    def write(self, name: str, document: Any) -> None:
        (self.folder / f"{name}.json").write_text(json.dumps(document))

    def stand_in(self, code: int = 0) -> None:
        path = self.folder / "artifacts" / "k6"
        path.write_text(K6.format(python=sys.executable, recorded=str(RECORDED), code=code))
        path.chmod(0o755)

    modules: Path = ROOT / "functions"
    """Where scripts find Troop's modules: a folder, or the agent's archive."""

    def run(self, script: str, measured: float = 0, warm_up: float = 0, **changes: Any) -> tuple[int, str]:
        """Runs a script; returns its exit code and its output."""
        self.write("parameters", {**FILE["parameters"], "system": False, **changes})
        variables = {
            **{"ROLE": "drivers", "RANK": self.rank, "WARM_UP_SECONDS": warm_up, "MEASURED_SECONDS": measured},
            **{"MEASURED_FROM": time.time() + warm_up},
            **{name.upper(): self.folder / f"{name}.json" for name in ("parameters", "targets", "roster")},
            **{name.upper(): self.folder / name for name in ("files", "artifacts", "shared", "results")},
        }
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TROOP_")},
            "PYTHONPATH": str(self.modules),
            **{f"TROOP_{name}": str(value) for name, value in variables.items()},
        }
        done = subprocess.run(
            [python39() or sys.executable, str(self.folder / "files" / f"{script}.py")],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.folder / "shared/plan/calls").read_text().splitlines()]


@pytest.fixture
def port() -> Iterator[int]:
    """That of an application that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.fixture
def node(tmp_path: Path, port: int) -> Node:
    return Node(tmp_path / "node", port)


LASTS = {"lasts": "{measured}", "url": "http://{host}:{port}{path}", "share": "{rank}/{nodes}", "vus": "{users}"}


def test_the_file_and_all_its_sizes_are_valid() -> None:
    read_all(FILE, FILES)


def test_a_plan_gets_parameters_as_properties_and_its_requests_are_recorded(node: Node, port: int) -> None:
    code, output = node.run("prepare", 6, properties=LASTS, users=7)
    assert code == 0, output
    code, output = node.run("measure", 6, properties=LASTS, users=7, arguments=["--tag", "users={users}"])
    assert code == 0, output
    inspected, run = node.calls
    for call in (inspected, run):
        pairs = [value for word, value in itertools.pairwise(call) if word == "-e"]
        assert pairs == ["lasts=6", f"url=http://127.0.0.1:{port}/", "share=0/1", "vus=7"]
    assert run[-3:] == ["--tag", "users=7", "plan.js"]
    (path,) = (node.folder / "results").glob("operations-*.json")
    recorded = operations.parse(json.loads(path.read_text())["operations"])
    rows = csv.DictReader(io.StringIO(gzip.decompress(RECORDED.read_bytes()).decode(), newline=""))
    slow = sum(row["metric_name"] == "http_req_duration" and row["name"] == "slow" for row in rows)
    assert recorded["slow"].times.count == slow
    assert (recorded["slow"].tools, recorded["slow"].timing) == ({"k6"}, "service")


LOCUST = {
    "locust/__init__.py": """
class Hook(list):
    add_listener = list.append

class events:
    request, quitting, quit = Hook(), Hook(), Hook()
""",
    "locust/__main__.py": """
import os, sys, time
from locust import events

words = sys.argv[1:]
for name in words[words.index("-f") + 1].split(","):
    exec(compile(open(name).read(), name, "exec"), {"__name__": name})
if "--list" in words:
    sys.exit()
begin = float(os.environ["TROOP_MEASURED_FROM"])
time.sleep(max(0, begin + 0.1 - time.time()))
for number in range(int(os.environ["requests"])):
    for listener in events.request:
        listener(request_type="GET", name="/", response_time=1.234567, response_length=10, exception=None)
time.sleep(max(0, begin + float(os.environ["TROOP_MEASURED_SECONDS"]) - time.time()))
for listener in events.quitting:
    listener(environment=None)
""",
}
"""A Locust that only reads its files and fires its events."""


def test_requests_of_locust_are_recorded_by_modules_in_the_agents_archive(node: Node) -> None:
    """As on nodes: none of Troop's modules is a file there that Locust could read."""
    node.modules = node.folder / "agent.pyz"
    pack(node.modules)
    with tarfile.open(node.folder / "artifacts" / "locust", "w") as archive:
        for name, text in LOCUST.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    (node.folder / "files" / "visits.py").write_text("import os\nassert os.environ['requests'] == '7'\n")
    changes: dict[str, Any] = {
        "tool": "locust",
        "software": "locust",
        "plan": "visits.py",
        "properties": {"requests": "{users}"},
    }
    code, output = node.run("prepare", users=7, **changes)
    assert code == 0, output
    code, output = node.run("measure", 3, warm_up=8, users=7, **changes)
    assert code == 0, output
    (path,) = (node.folder / "results").glob("operations-*.json")
    one = operations.parse(json.loads(path.read_text())["operations"])["GET"]
    assert (one.times.count, one.times.max, one.tools, one.bytes) == (7, 1235, {"Locust"}, 70)


def test_a_plan_that_is_too_short_fails_with_what_to_do(node: Node) -> None:
    assert node.run("prepare", properties={"lasts": "1"})[0] == 0
    code, output = node.run("measure", 60, properties={"lasts": "1"})
    assert (code, "before the end of the measured time: let it run for 62 s" in output) == (1, True), output


def test_a_tool_that_sends_nothing_fails_with_what_to_do(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    home = node.folder / "shared" / "software" / "jmeter" / "bin"
    home.mkdir(parents=True)
    (home / "ApacheJMeter.jar").touch()
    (node.folder / "shared" / "plan").mkdir()
    java = home / "java"
    java.write_text("#!/bin/sh\nexec sleep 600\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    code, output = node.run("measure", 1, tool="jmeter", software="jmeter", plan="plan.jmx")
    message = "no request of jmeter ended within 0 s of warm-up and 1 s of measured time: increase warm_up"
    assert (code, message in output.splitlines()[-1]) == (1, True), output


def test_a_plan_that_does_not_end_is_ended(node: Node) -> None:
    assert node.run("prepare", properties={"lasts": "900"})[0] == 0
    code, output = node.run("measure", 6, properties={"lasts": "900"})
    assert code == 0, output
    assert "k6 was ended" in output


def test_crossed_thresholds_are_a_result_and_other_codes_a_failure(node: Node) -> None:
    node.stand_in(99)
    assert node.run("prepare", properties=LASTS)[0] == 0
    code, output = node.run("measure", 8, properties=LASTS)
    assert (code, "thresholds of the plan were crossed" in output) == (0, True), output
    node.stand_in(107)
    assert node.run("prepare", properties=LASTS)[0] == 0
    code, output = node.run("measure", 8, properties=LASTS)
    assert (code, "k6 failed with exit code 107" in output) == (1, True), output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tool": "wrk"}, "tool is 'wrk': must be k6, jmeter or locust"),
        ({"tool": "jmeter", "rate": 10**9}, "this node has "),
        ({"plan": "mine.js"}, "there is no file or artifact mine.js"),
        ({"csv": ["users.csv"]}, "there is no file or artifact users.csv"),
        ({"software": "k7"}, "there is no artifact k7"),
        ({"target": "shop"}, "the drivers have no target 'shop'"),
        ({"properties": {"url": "{hots}"}}, "properties.url contains {hots}: known names are"),
        ({"host": "127.0.0.255"}, "127.0.0.255:"),
        ({"plan": "bad.js"}, "k6 cannot read the plan bad.js"),
    ],
)
def test_bad_parameters_fail_before_the_load_with_a_remedy(node: Node, changes: dict[str, Any], message: str) -> None:
    (node.folder / "files" / "bad.js").write_text("")
    code, output = node.run("prepare", **changes)
    assert code == 1
    assert output.splitlines()[-1].startswith(message), output


def test_a_target_of_several_addresses_needs_a_host(node: Node) -> None:
    node.write("targets", {"targets": {"app": {"host": None, "port": 80, "ports": ["80"], "addresses": []}}})
    code, output = node.run("prepare")
    assert (code, "set the parameter host" in output) == (1, True)


cells = st.lists(st.sampled_from(["a", "b, c", "two\nlines", 'say "x"', "ü"]), min_size=2, max_size=2)


@given(st.lists(cells, min_size=3, max_size=12), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_drivers_get_disjoint_parts_of_the_data(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], end: str, header: bool
) -> None:
    sys.path.insert(0, str(HOME))
    try:
        from parts import write_part  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(HOME))
    source = tmp_path_factory.getbasetemp() / "all.csv"
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows([*([["name", "city"]] if header else []), *rows])
    source.write_text(text.getvalue().removesuffix(end), newline="")
    parts = []
    for rank in range(3):
        target = source.with_name(f"{rank}.csv")
        count = write_part(source, target, rank, 3, header=header)
        with target.open(newline="") as file:
            part = list(csv.reader(file))
        assert part[:1] == [["name", "city"]] or not header
        parts.append(part[header:])
        assert len(parts[-1]) == count
    assert parts == [rows[rank::3] for rank in range(3)]


def test_prepare_splits_the_data_and_leaves_the_rest(tmp_path: Path, port: int) -> None:
    for rank in range(2):
        node = Node(tmp_path / f"{rank}", port, rank, 2)
        (node.folder / "files" / "users.csv").write_text("name\na\nb\nc\n")
        (node.folder / "files" / "help.js").write_text("1")
        code, output = node.run("prepare", csv=["users.csv"])
        assert code == 0, output
        work = node.folder / "shared" / "plan"
        assert (work / "users.csv").read_text() == ["name\na\nc\n", "name\nb\n"][rank]
        assert (work / "help.js").read_text() == "1"
    node = Node(tmp_path / "9", port, 9, 10)
    (node.folder / "files" / "users.csv").write_text("name\na\n")
    code, output = node.run("prepare", csv=["users.csv"])
    assert (code, "users.csv has no record for driver 9 of 10" in output) == (1, True)
