"""What the scripts of web-scale do on a node of each tier, and what its file asks of them."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from infra import ROOT
from local import web
from tests.patience import PATIENCE, eventually
from tests.serving import Quiet, running
from tests.unit.agent.pythons import python39
from tests.unit.benchmarks.scripts import folder, go, scripts

SCRIPTS = scripts("web-scale")
drive, lose, node, serve, server, tiers, visit, visits, watch = (
    SCRIPTS[name] for name in ("drive", "lose", "node", "serve", "server", "tiers", "visit", "visits", "watch")
)
FOLDER = folder("web-scale")
AT = 1_790_000_000
PARAMETERS: dict[str, Any] = yaml.safe_load((FOLDER / "benchmark.yaml").read_text(encoding="utf-8"))["parameters"]


def phase(tmp_path: Path, role: str = "drivers", rank: int = 0, measured: float = 10, **parameters: Any) -> Any:
    counts = {"drivers": 2, "proxies": 2, "web": 3, "mobile": 2, "authentication": 2, "data": 2}
    nodes = [
        {"role": one, "rank": k, "address": f"10.0.{n}.{k}"}
        for n, (one, count) in enumerate(counts.items())
        for k in range(count)
    ]
    return node.Phase(
        name="measure",
        role=role,
        rank=rank,
        address=next(str(one["address"]) for one in nodes if (one["role"], one["rank"]) == (role, rank)),
        parameters={**PARAMETERS, **parameters},
        roster={"nodes": nodes},
        files=FOLDER,
        artifacts=tmp_path,
        shared=tmp_path,
        results=tmp_path,
        measured_from=AT,
        measured_seconds=measured,
        warm_up_seconds=5,
    )


# The visits


def test_no_two_drivers_have_the_same_customer() -> None:
    sizes = {"customers": 100, "days": 5}
    users = [{one.user for one in visits.plan(rank, 3, ["p:1"], sizes, 1000)} for rank in range(3)]
    assert sum(map(len, users)) == len(set.union(*users)) == 100


def test_visits_use_all_proxies_alike_and_only_flights_that_exist() -> None:
    own = list(visits.plan(1, 2, ["a:1", "b:1", "c:1"], {"customers": 50, "days": 4}, 300))
    assert Counter(one.proxy for one in own) == {"a:1": 100, "b:1": 100, "c:1": 100}
    assert all(one.origin != one.target and 1 <= one.day <= one.back <= 4 for one in own)


def test_airports_are_those_of_the_application() -> None:
    source = (FOLDER / "flights" / "catalogue.go").read_text(encoding="utf-8")
    block = source[source.index("var airports") : source.index("const flightsPerDay")]
    assert tuple(re.findall(r'"([A-Z]{3})"', block)) == tuple(visits.AIRPORTS)


@pytest.mark.parametrize(
    ("threads", "divided"), [(6, (5, 1)), (160, (133, 27)), (1, (1, 1)), (2, (1, 1)), (12, (10, 2))]
)
def test_browsers_are_five_of_six(threads: int, divided: tuple[int, int]) -> None:
    assert visits.divided(threads) == divided


# JMeter


def requests_of(group: ElementTree.Element) -> Iterator[tuple[str, float]]:
    """Each request of a thread group's tree in a visit, and how often it is sent."""
    times = 1.0
    for element, children in zip(list(group)[::2], list(group)[1::2], strict=True):
        if element.tag == "HTTPSamplerProxy":
            yield str(element.get("testname")), 1.0
        if element.tag == "LoopController":
            times = float(element.findtext("stringProp[@name='LoopController.loops']") or 0)
        elif element.tag == "ThroughputController":
            times = float(element.findtext("FloatProperty/value") or 0) / 100
        else:
            continue
        for name, count in requests_of(children):
            yield name, count * times


def groups(plan: Path) -> dict[str, ElementTree.Element]:
    tree = list(ElementTree.parse(plan).findall("hashTree/hashTree/*"))
    return {str(one.get("testname")): tree[n + 1] for n, one in enumerate(tree) if one.tag == "ThreadGroup"}


def test_the_plan_makes_the_same_visits_as_the_driver_without_java() -> None:
    for kind, group in groups(FOLDER / "plan.jmx").items():
        planned: Counter[str] = Counter()
        for name, count in requests_of(group):
            planned[name] += count  # type: ignore[assignment]
        both = [*visit.steps(kind, 0), *visit.steps(kind, 1)]
        assert planned == {f"{kind}:{step}": count / 2 for step, count in Counter(both).items()}


def test_the_plan_has_timers_only_with_a_rate(tmp_path: Path) -> None:
    for with_rate in (True, False):
        drive.write_plan(FOLDER / "plan.jmx", tmp_path / "plan.jmx", with_rate=with_rate)
        written = ElementTree.parse(tmp_path / "plan.jmx")
        assert len(list(written.iter("PreciseThroughputTimer"))) == 2 * with_rate
        assert all(len(tree) % 2 == 0 for tree in written.iter("hashTree") if tree is not written.find("hashTree"))
        assert len(groups(tmp_path / "plan.jmx")) == 2


def test_every_property_of_the_plan_is_set_and_used(tmp_path: Path) -> None:
    command = drive.command(phase(tmp_path, rate=600, threads=12), tmp_path, 30)
    properties = dict(word[2:].split("=", 1) for word in command if word.startswith("-J"))
    used = set(re.findall(r"\$\{__P\(([a-z.]+|[a-z_]+)\)\}", (FOLDER / "plan.jmx").read_text(encoding="utf-8")))
    assert used == {name for name in properties if not name.startswith(("jmeter", "sampleresult", "summariser"))}
    assert (properties["browser.threads"], properties["mobile.threads"]) == ("10", "2")
    assert (float(properties["browser.rate"]), float(properties["mobile.rate"])) == (500, 100)


def test_a_file_of_visits_has_a_line_for_each(tmp_path: Path) -> None:
    drive.write_visits(phase(tmp_path, rank=1, threads=4), tmp_path / "visits.csv")
    with (tmp_path / "visits.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 4 * drive.A_THREAD
    assert {(row[2], row[3]) for row in rows} == {("10.0.1.0", "7080"), ("10.0.1.1", "7080")}
    assert all(row[1] == f"password-of-{row[0]}" and len(row) == 8 for row in rows)


def test_a_load_that_begins_too_late_is_a_problem(tmp_path: Path) -> None:
    log = tmp_path / "samples.jtl"
    for stamp, problem in ((AT * 1000 - 1, None), (AT * 1000 + 2500, "2.5 s after the start")):
        log.write_text(f"timeStamp,elapsed,label,success\n{stamp},3,a,true\n", encoding="utf-8")
        answer = drive.uncovered(log, AT)
        assert answer is None if problem is None else problem in answer
    log.write_text("timeStamp,elapsed,label,success\n", encoding="utf-8")
    assert "no request" in drive.uncovered(log, AT)


def test_a_driver_without_room_for_the_log_fails_before_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = SCRIPTS["install"]
    monkeypatch.setattr(install.Phase, "of_script", lambda: phase(tmp_path, rate=10**9))
    with pytest.raises(SystemExit, match="raise root_volume_gib of the drivers, or lower the rate"):
        install.main()


# The tiers


def test_proxies_use_all_web_servers_and_drop_none(tmp_path: Path) -> None:
    texts = [tiers.nginx_configuration(phase(tmp_path, "proxies", rank), tmp_path) for rank in (0, 1)]
    servers = [re.findall(r"server (10\S+:7081) max_fails=0;", text) for text in texts]
    assert servers[0] == ["10.0.2.0:7081", "10.0.2.1:7081", "10.0.2.2:7081"]
    assert servers[1] == [*servers[0][1:], servers[0][0]]
    assert all("proxy_next_upstream off" in text for text in texts)


def test_with_failover_proxies_leave_out_a_web_server_that_fails(tmp_path: Path) -> None:
    text = tiers.nginx_configuration(phase(tmp_path, "proxies", failover=True), tmp_path)
    assert len(re.findall(r"server 10\S+:7081 max_fails=1 fail_timeout=10s;", text)) == 3
    assert "proxy_next_upstream error timeout;" in text


def test_requests_of_mobiles_go_to_their_own_servers_if_there_are_any(tmp_path: Path) -> None:
    with_them = phase(tmp_path, "proxies", rank=1)
    roster = {"nodes": [one for one in with_them.roster["nodes"] if one["role"] != "mobile"]}
    for one, servers in (
        (with_them, ["10.0.3.1:7083", "10.0.3.0:7083"]),
        (dataclasses.replace(with_them, roster=roster), []),
    ):
        text = tiers.nginx_configuration(one, tmp_path)
        assert re.findall(r"server (10\S+:7083) max_fails=0;", text) == servers
        agents = re.findall(r"^    ~(\w+) mobile;$", text, re.MULTILINE)
        assert [kind for kind, agent in visit.AGENTS.items() if any(a in agent for a in agents)] == (
            ["mobile"] if servers else []
        )


@pytest.mark.skipif(web.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.parametrize(("workers", "failover"), [(0, False), (1, True), (3, False)])
def test_nginx_accepts_the_configuration(tmp_path: Path, workers: int, failover: bool) -> None:
    settings = {"proxy_workers": workers, "failover": failover}
    one = dataclasses.replace(phase(tmp_path, "proxies", **settings), address="127.0.0.1")
    (tmp_path / "nginx.conf").write_text(tiers.nginx_configuration(one, tmp_path), encoding="utf-8")
    done = subprocess.run([*tiers.command(one, tmp_path), "-t"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(web.which("nginx") is None or os.geteuid() != 0, reason="nginx is not installed, or not root")
def test_workers_of_a_master_store_large_bodies_in_a_closed_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node's files are readable by root alone, and nginx's own workers are of another user."""
    received = []

    class Handler(Quiet):
        def do_POST(self) -> None:
            received.append(len(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(tiers, "PORTS", {**tiers.PORTS, "web": server.server_address[1], "proxies": port})
    one = dataclasses.replace(phase(tmp_path, "proxies", proxy_workers=2), address="127.0.0.1")
    one.roster["nodes"] = [{"role": "web", "rank": 0, "address": "127.0.0.1"}]
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "nginx.conf").write_text(tiers.nginx_configuration(one, home), encoding="utf-8")
    process = subprocess.Popen(tiers.command(one, home))
    try:
        eventually(lambda: listens(port))
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", bytes(100_000))
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert (answer.status, received) == (204, [100_000])
    finally:
        process.terminate()
        process.wait()
        server.shutdown()
        server.server_close()


# Servers


def reading(at: float, times: dict[str, int], errors: int = 0) -> Any:
    return watch.Reading(at, {"request": {"times": times, "errors": errors}})


def test_growth_in_the_measured_time_is_an_operation() -> None:
    readings = [
        reading(AT, {"100": 5}, 1),
        reading(AT + 1, {"100": 15, "2047": 3}, 1),
        reading(AT + 2, {"100": 16, "2047": 3}, 4),
    ]
    operation = watch.operation("request", readings, (AT, AT + 2))
    assert operation.times.count == 14
    assert operation.per_second.count == [13, 1]
    assert (operation.errors, operation.per_second.errors) == ({"5xx": 3}, [0, 3])


def test_evicted_values_are_errors_of_memcached() -> None:
    statistics = [{"cmd_get": 10, "cmd_set": 4, "evictions": 0}, {"cmd_get": 30, "cmd_set": 8, "evictions": 2}]
    gets, writes = watch.rows([watch.Reading(AT + 4 * n, one) for n, one in enumerate(statistics)])
    assert (gets.count, gets.per_second, dict(gets.errors)) == (20, 5, {})
    assert (writes.count, writes.per_second, dict(writes.errors)) == (4, 1, {"evicted": 2})


def start_sleeping(one: Any) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (one.shared / server.FILE).write_text(json.dumps([process.pid, server.started(process.pid)]), encoding="utf-8")
    return process


@pytest.mark.parametrize("role", ["proxies", "web", "mobile", "authentication", "data"])
def test_a_server_that_dies_ends_the_watch_as_lost(
    tmp_path: Path, role: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = dataclasses.replace(phase(tmp_path, role), measured_from=time.time(), measured_seconds=600)
    process = start_sleeping(one)
    monkeypatch.setattr(node.Phase, "of_script", lambda: one)
    counters = {"data": {"cmd_get": 1}, "proxies": {}}.get(role, {"request": {"times": {}, "errors": 0}})

    def die(_: Any) -> Any:
        process.kill()
        return counters

    monkeypatch.setattr(server, "counters", die)
    with pytest.raises(SystemExit) as ended:
        watch.main()
    process.wait()
    assert ended.value.code == node.LOST
    assert f"the server of the role {role} (process {process.pid}) has died" in capsys.readouterr().out


def test_a_silent_server_ends_the_watch_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = dataclasses.replace(phase(tmp_path, "web"), measured_from=time.time(), measured_seconds=600)
    process = start_sleeping(one)
    monkeypatch.setattr(node.Phase, "of_script", lambda: one)
    monkeypatch.setattr(watch, "SILENCE", 0.0)

    def silent(_: Any) -> Any:
        raise ConnectionRefusedError

    monkeypatch.setattr(server, "counters", silent)
    try:
        with pytest.raises(SystemExit) as ended:
            watch.main()
    finally:
        process.kill()
        process.wait()
    assert ended.value.code == node.LOST


def test_a_lost_server_ends_with_its_workers_and_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As nginx, whose workers outlive a master that is killed alone."""
    one = phase(tmp_path, "proxies")
    worker = "import subprocess, sys; subprocess.Popen(['sleep', '600']); print(flush=True); sys.stdin.read()"
    master = subprocess.Popen(
        [sys.executable, "-c", worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert master.stdout is not None
    master.stdout.readline()
    (tmp_path / server.FILE).write_text(json.dumps([master.pid, server.started(master.pid)]), encoding="utf-8")
    monkeypatch.setattr(node.Phase, "of_script", lambda: one)
    monkeypatch.setenv("TROOP_FAULT", "begin")
    lose.main()
    assert master.communicate(timeout=PATIENCE)[0] == b"", "the worker holds the pipe as long as it lives"
    lose.main()  # a server that has ended by itself
    started: list[str] = []
    monkeypatch.setattr(serve, "main", lambda: started.append("again"))
    monkeypatch.setenv("TROOP_FAULT", "end")
    lose.main()
    assert started == ["again"]


# Visits without Java


class Application(Quiet):
    """Answers as the application does; fails for the paths in ``failing``."""

    protocol_version = "HTTP/1.1"
    failing: ClassVar[dict[str, int]] = {}
    requests: ClassVar[list[str]] = []

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        type(self).requests.append(f"{self.command} {path}")
        if path != "/session" and "flights_session=T" not in (self.headers.get("Cookie") or ""):
            self.send_response(401)
        else:
            self.send_response(type(self).failing.get(path, 200))
        if self.command == "POST" and path == "/session":
            self.send_header("Set-Cookie", "flights_session=T; Path=/")
        body = json.dumps({"out": [{"id": "A-B-1-0"}], "booking": "A-B-1-0.7"}).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _answer


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Any]:
    """A phase whose only proxy is an application."""
    Application.failing, Application.requests = {}, []
    with running(ThreadingHTTPServer(("127.0.0.1", 0), Application)) as serving:
        tiers.PORTS["proxies"], port = serving.server_port, tiers.PORTS["proxies"]
        one = phase(tmp_path)
        try:
            nodes = [node for node in one.roster["nodes"] if node["role"] != "proxies"]
            nodes.append({"role": "proxies", "rank": 0, "address": "127.0.0.1"})
            yield dataclasses.replace(one, roster={"nodes": nodes})
        finally:
            tiers.PORTS["proxies"] = port


def test_a_check_makes_all_requests_of_both_clients(application: Any, capsys: pytest.CaptureFixture[str]) -> None:
    visit.check(application)
    assert "17 requests through 1 proxies succeeded" in capsys.readouterr().out
    assert "DELETE /bookings/A-B-1-0.7" in Application.requests


def test_a_check_names_the_request_that_fails(application: Any) -> None:
    Application.failing = {"/bookings": 503}
    with pytest.raises(SystemExit, match="browser:book: 503"):
        visit.check(application)


# JMeter's log

JAVA = """#!{python}
import pathlib, sys, time
log = pathlib.Path(sys.argv[sys.argv.index("-l") + 1])
log.with_name("jmeter.log").touch()
with log.open("w") as lines:
    lines.write("timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes\\n")
    for _ in range({samples}):
        lines.write("%d,5,browser:book,200,OK,browsers 1-1,true,10\\n" % {stamp})
print("summary")
sys.exit({code})
"""


def driven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, samples: int = 3, code: int = 0, late: float = 0
) -> tuple[Any, int]:
    """Runs the load with a stand-in for JMeter; returns the exit code of the script, and the number of its samples."""
    begin = time.time() - 1
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    stamp = int(1000 * (begin + late))
    java.write_text(JAVA.format(python=sys.executable, samples=samples, stamp=stamp, code=code))
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{java.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "functions"))
    results = tmp_path / "results"
    results.mkdir()
    for name, value in (("RESULTS", results), ("MEASURED_FROM", begin), ("MEASURED_SECONDS", 600)):
        monkeypatch.setenv(f"TROOP_{name}", str(value))
    monkeypatch.chdir(tmp_path)
    one = dataclasses.replace(phase(tmp_path), results=results, measured_from=begin, measured_seconds=600.0)
    with pytest.raises(SystemExit) as ended:
        drive.run(one, 1.0)
    files = [json.loads(path.read_text())["operations"] for path in results.glob("operations-jtl-*.json")]
    # The file of a pass that found no sample has no operation.
    counts = [sum(each["browser:book"]["per_second"]["count"]) for each in files if each]
    return ended.value.code, sum(counts)


def test_jmeters_samples_are_counted_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert driven(tmp_path, monkeypatch) == (0, 3)
    assert (tmp_path / "results" / "jmeter.txt").read_text() == "summary\n"


@pytest.mark.parametrize(
    ("stands_in", "problem"),
    [
        ({"code": 3}, "JMeter failed with exit code 3, see jmeter.log among the files of the results"),
        ({"late": 30}, "the load began 30.0 s after the start of the measured time: increase warm_up"),
        ({"samples": 0}, "JMeter sent no request: see jmeter.log among the files of the results"),
    ],
)
def test_a_load_that_cannot_count_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands_in: dict[str, Any], problem: str
) -> None:
    assert driven(tmp_path, monkeypatch, **stands_in)[0] == problem


# The file and its artifacts


def test_the_hashes_of_artifacts_are_those_of_the_build() -> None:
    text = (FOLDER / "benchmark.yaml").read_text(encoding="utf-8")
    built = re.findall(r'"(flights|jmeter)": "([0-9a-f]{64})"', (FOLDER / "software" / "build.py").read_text("utf-8"))
    document = yaml.safe_load(text)
    assert {(one["name"], one["sha256"]) for one in document["artifacts"]} == set(built)
    (only,) = document["sizes"]["local-test"]["artifacts"]
    assert (only["name"], only["sha256"]) in built


def test_the_application_passes_its_own_tests() -> None:
    go(FOLDER / "flights", "vet", "./...")
    go(FOLDER / "flights", "test", "-vet=off", "./...")


def test_scripts_compile_on_the_nodes_python() -> None:
    python = python39()
    if python is None:
        pytest.skip("no Python 3.9")
    done = subprocess.run(
        [python, "-m", "py_compile", *map(str, FOLDER.glob("*.py"))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
