"""What the scripts make of what a server and a generator tell."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
import time
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from infra import ROOT
from tests.serving import Quiet, running
from tests.unit.agent.pythons import python39
from tests.unit.benchmarks.scripts import folder, scripts
from troop.measure import hdr_log, operations
from troop.measure.hdr_log import Interval
from troop.measure.operations import Operation, PerSecond

SCRIPTS = scripts("cassandra-write")
watch, drive, count, server, node, cluster = (
    SCRIPTS[name] for name in ("watch", "drive", "count", "server", "node", "cluster")
)
AT = 1_790_000_000
SERVERS = [cluster.Server(n, f"10.0.0.{n}", "abc"[n], cluster.token(n, 3)) for n in range(3)]


def phase(tmp_path: Path, parameters: dict[str, Any], rank: int = 1, measured: float = 10) -> Any:
    roster = {
        "nodes": [
            *({"role": "servers", "rank": one.rank, "address": one.address, "zone": one.zone} for one in SERVERS),
            *({"role": "drivers", "rank": n, "address": f"10.0.1.{n}", "zone": "a"} for n in range(2)),
        ]
    }
    defaults = {"driver": "latte", "keys": 1000, "threads": 200, "rate": 0, "sampling_ms": 500, "replicas": 3}
    defaults["write_timeout_ms"] = 2000
    folders = [tmp_path] * 4
    return node.Phase(
        "measure", "drivers", rank, "10.0.1.1", {**defaults, **parameters}, roster, *folders, AT, measured
    )


# Servers


def test_buckets_are_as_wide_as_cassandras() -> None:
    """Those that nodetool's percentiles come from."""
    offsets = watch.offsets(128)
    assert len(offsets) == 128
    assert offsets[:14] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24]
    assert {60, 1331, 3973, 4768, 6866, 35425, 42510, 454826} <= set(offsets)


def test_growth_in_the_measured_time_is_an_operation() -> None:
    nothing = dict.fromkeys(server.TOTALS, 0)
    totals = [{**nothing, "coordinated": 10 * n * n, "timeouts": 2 * n} for n in range(4)]
    readings = [watch.Reading(AT + n + 0.01, one) for n, one in enumerate(totals)]
    before, after = [0] * 128, [0] * 128
    before[8], after[8], after[9], after[127] = 5, 45, 40, 10
    operation = watch.operation("coordinate", "coordinated", readings, before, after, (AT, AT + 3))
    assert (operation.times.count, operation.times.min, operation.times.percentile(50)) == (90, 10, 12)
    assert operation.per_second.document() == {"from": AT, "count": [10, 30, 50], "errors": [2, 2, 2]}
    assert operation.errors == {"timeouts": 6}
    assert operations.parse({"coordinate": operation.document()}, "it")["coordinate"].times == operation.times


def test_a_silent_second_counts_with_the_next() -> None:
    readings = [watch.Reading(AT + n, dict.fromkeys(server.TOTALS, 100 * n)) for n in (0, 1, 3)]
    operation = watch.operation("apply", "applied", readings, [], [], (AT, AT + 3))
    assert sum(operation.per_second.count) == 300
    assert operation.errors == {"dropped": 300}


RING = server.Ring("NORMAL", frozenset(one.address for one in SERVERS), frozenset(), {"one": 3})


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (RING, None),
        (server.Ring("JOINING", RING.live, frozenset(), {"one": 3}), "the server is JOINING"),
        (
            server.Ring("NORMAL", RING.live - {"10.0.0.1"}, frozenset(), {"one": 3}),
            "1 of 3 servers are not up and normal",
        ),
        (server.Ring("NORMAL", RING.live, frozenset({"10.0.0.2"}), {"one": 3}), "not up and normal: 10.0.0.2"),
        (
            server.Ring("NORMAL", RING.live | {"10.9.9.9"}, frozenset(), {"one": 3}),
            "of another ring are connected: 10.9.9.9",
        ),
        (server.Ring("NORMAL", RING.live, frozenset(), {"one": 2, "two": 1}), "2 versions of the schema"),
    ],
)
def test_the_ring_is_whole_when_all_are_up_and_normal_with_one_schema(seen: Any, message: str | None) -> None:
    problem = seen.missing(SERVERS)
    assert problem is None if message is None else message in problem


class _Jolokia(Quiet):
    def do_POST(self) -> None:
        questions = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(200, json.dumps([_answer(one) for one in questions]).encode())


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    if "no-such" in question["mbean"]:
        return {"status": 404, "error": "InstanceNotFound"}
    if question["mbean"] == server.SERVICE:
        return {"status": 200, "value": {"OperationMode": "JOINING"}}
    return {"status": 200, "value": question["mbean"].rpartition("name=")[2]}


def test_totals_of_a_server_are_read_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(ThreadingHTTPServer(("127.0.0.1", 0), _Jolokia)) as served:
        monkeypatch.setattr(cluster, "AGENT_PORT", served.server_address[1])
        assert server.totals("127.0.0.1")["applied"] == "WriteLatency"
        with pytest.raises(server.RefusedError, match="InstanceNotFound"):
            server.ask("127.0.0.1", [server.count("no-such")])
        assert server.mode("127.0.0.1") == "JOINING"
    assert server.mode("127.0.0.1") == ""
    with pytest.raises(server.SilentError, match="no answer from"):
        server.totals("127.0.0.1")


def test_a_process_is_known_by_when_it_began_too() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        process = server.Process(child.pid, server.began(child.pid))
        assert process.is_alive
        assert not server.Process(child.pid, "1").is_alive
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not process.is_alive, "it has ended, and nobody has asked how"


# Drivers


def test_latte_writes_the_keys_of_its_driver(tmp_path: Path) -> None:
    line = drive.line(phase(tmp_path, {"rate": 300, "threads": 16}), 61.5, tmp_path / "x.hlog")
    options = dict(itertools.pairwise(line))
    assert (options["--start-cycle"], options["--end-cycle"]) == ("1000", "2000")
    assert (options["--duration"], options["--warmup"], options["--rate"]) == ("61500ms", "0", "300")
    assert (options["--consistency"], options["--request-timeout"]) == ("ONE", "5000ms")
    assert line[-3:] == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]
    assert "--rate" not in drive.line(phase(tmp_path, {}), 1, tmp_path / "x.hlog")


@pytest.mark.parametrize(("threads", "processors", "shares"), [(16, 2, (1, 16)), (200, 8, (3, 67)), (200, 2, (2, 100))])
def test_writes_under_way_are_shared_by_threads(threads: int, processors: int, shares: tuple[int, int]) -> None:
    assert drive.shares(threads, processors) == shares


def test_stress_writes_the_keys_of_its_driver(tmp_path: Path) -> None:
    (tmp_path / "cassandra" / "apache-cassandra-5.0.6" / "lib").mkdir(parents=True)
    measurement = phase(tmp_path, {"driver": "cassandra-stress", "rate": 300})
    line = drive.line(measurement, 61.5, tmp_path / "x.hlog")
    assert line[0].endswith("apache-cassandra-5.0.6/tools/bin/cassandra-stress")
    assert {"write", "cl=ONE", "no-warmup", "duration=62s", "seq=1001..2000", "threads=200", "fixed=300/s"} <= set(line)
    assert "replication(strategy=NetworkTopologyStrategy,dc1=3)" in line


STRESS, LATTE = "cassandra-stress", "latte"


@pytest.mark.parametrize(
    ("parameters", "has", "lacks"),
    [
        ({"driver": STRESS, "consistency": "LOCAL_QUORUM"}, ["write cl=LOCAL_QUORUM", "seq=1001..2000"], "ratio("),
        ({"driver": STRESS, "order": "random"}, ["write cl=ONE", "dist=UNIFORM(1001..2000)"], "seq="),
        ({"driver": STRESS, "pattern": "read"}, ["read cl=ONE", "seq=1001..1270"], "ratio("),
        (
            {"driver": STRESS, "pattern": "mixed", "reads_per_write": 3, "order": "random"},
            ["mixed ratio(write=1,read=3) cl=ONE", "dist=UNIFORM(1001..1270)"],
            "seq=",
        ),
        ({"driver": LATTE, "consistency": "QUORUM"}, ["--consistency QUORUM"], "--functions"),
        ({"driver": LATTE, "pattern": "read"}, ["--end-cycle 1270", "--functions read"], "random"),
        (
            {"driver": LATTE, "order": "random"},
            [
                *("-P random=1 -P first=1000 -P keys=1000", f"--start-cycle {1 << 40} --end-cycle {2 << 40}"),
            ],
            "--functions",
        ),
        (
            {"driver": LATTE, "pattern": "read", "order": "random"},
            ["--functions read -P random=1 -P first=1000 -P keys=270"],
            "run.rn",
        ),
    ],
)
def test_the_measured_phase_reads_or_writes_as_the_parameters_say(
    tmp_path: Path, parameters: dict[str, Any], has: list[str], lacks: str
) -> None:
    """Reads visit what the load has written; it has only written new rows, one after another."""
    (tmp_path / "cassandra" / "apache-cassandra-5.0.6" / "lib").mkdir(parents=True)
    measurement = phase(tmp_path, parameters)
    measurement.keep("loaded.json", 300)
    line = " ".join(drive.line(measurement, 10, tmp_path / "x.hlog"))
    assert [part for part in has if part not in line] == []
    assert lacks not in line
    load = " ".join(drive.line(dataclasses.replace(measurement, measured_seconds=0), 10, tmp_path / "x.hlog"))
    assert "2000" in load
    assert not {"read", "random=1", "mixed", "UNIFORM"} & set(re.split(r"[ (]", load))


def test_latte_cannot_separate_reads_from_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is clear before anything is installed, and in a point."""
    mixed = phase(tmp_path, {"pattern": "mixed"})
    for script in (drive, SCRIPTS["install"]):
        monkeypatch.setattr(script, "this_phase", lambda: mixed)
        with pytest.raises(SystemExit, match="set driver to cassandra-stress"):
            script.main()


def test_failures_of_reads_and_writes_are_apart(tmp_path: Path) -> None:
    measurement = phase(tmp_path, {"driver": STRESS})
    output = "Total errors              :      1,238 [READ: 4, WRITE: 1,234]\n"
    assert [sum(drive.failed(measurement, INTERVALS, output, kind)) for kind in ("write", "read")] == [1234, 4]


INTERVALS = [Interval("requests", AT - 1 + n / 2, 0.5, ((1000, 1999, 10),)) for n in range(24)]


def test_failures_count_in_the_second_of_their_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    samples = [{"req_error_count": n} for n in range(24)]
    (tmp_path / "measure.json").write_text(json.dumps({"result": {"log": samples}}))
    failures = drive.failed(phase(tmp_path, {}), INTERVALS, "")
    operation = Operation(per_second=PerSecond(AT, [0] * 10, [0] * 10))
    drive.add_failures(operation, INTERVALS, failures, AT, AT + 10)
    assert operation.errors == {"failed": sum(range(2, 22))}
    assert operation.per_second.errors == [2 * n + 1 for n in range(2, 22, 2)]


def test_the_load_before_the_measured_time_shows_over_time_alone(
    tmp_path: Path,
) -> None:
    measurement = dataclasses.replace(phase(tmp_path, {}), measured_from=AT + 2, measured_seconds=8, warm_up_seconds=2)
    operation = drive.recorded(measurement, INTERVALS, [1] * len(INTERVALS))
    assert (operation.times.count, operation.errors) == (160, {"failed": 16})
    assert operation.per_second.document() == {"from": AT, "count": [20] * 10, "errors": [2] * 10}
    assert operation.over_time is not None
    assert [operation.over_time.count(step) for step in range(10)] == [20] * 10


@pytest.mark.parametrize(
    ("parameters", "tags", "timing", "largest"),
    [
        ({"driver": "cassandra-stress", "rate": 300}, ["WRITE-st", "WRITE-rt"], "response", 5_000_000),
        ({"driver": "cassandra-stress", "rate": 0}, ["WRITE-st"], "service", 1),
        ({"driver": "latte", "rate": 300}, ["requests"], "service", 1),
    ],
)
def test_times_begin_when_a_write_was_due_if_the_generator_knows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parameters: dict[str, Any],
    tags: list[str],
    timing: str,
    largest: int,
) -> None:
    """Servers answer in a microsecond, but writes were sent five seconds late."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROOP_RESULTS", str(tmp_path))
    measuring = phase(tmp_path, {**parameters, "load_seconds": 9})
    late = [Interval("WRITE-rt", one.start, one.seconds, ((5 * 10**9, 5 * 10**9, 10),)) for one in INTERVALS]
    by_tag = {"WRITE-st": INTERVALS, "requests": INTERVALS, "WRITE-rt": late}
    read_tags: list[str] = []

    def chosen(_: object, tag: str, problems: list[str]) -> list[Interval]:
        read_tags.append(tag)
        return by_tag[tag]

    monkeypatch.setattr(drive, "this_phase", lambda: measuring)
    monkeypatch.setattr(drive, "line", lambda *_: [])
    monkeypatch.setattr(drive, "run", lambda *_: "")
    monkeypatch.setattr(drive, "failed", lambda *_: [0] * len(INTERVALS))
    monkeypatch.setattr(drive.hdr_log, "chosen", chosen)
    monkeypatch.setattr(drive.subprocess, "run", lambda *_, **__: None)
    drive.main()
    (written,) = tmp_path.glob("operations-*.json")
    write = operations.parse(json.loads(written.read_text())["operations"])["write"]
    assert read_tags == tags
    assert (write.timing, write.tools, write.times.count) == (timing, {parameters["driver"]}, 200)
    assert write.times.max == pytest.approx(largest, rel=0.001)
    if timing == "response":
        assert write.service is not None
        assert (write.service.count, write.service.max) == (200, 1)


def test_failures_of_stress_are_one_number(tmp_path: Path) -> None:
    measurement = phase(tmp_path, {"driver": "cassandra-stress"})
    output = "Total partitions          :    100 [WRITE: 100]\nTotal errors              :      1,234 [WRITE: 1,234]\n"
    failures = drive.failed(measurement, INTERVALS, output)
    assert sum(failures) == 1234
    operation = Operation(per_second=PerSecond(AT, [0] * 10, [0] * 10))
    drive.add_failures(operation, INTERVALS, failures, AT, AT + 10)
    assert operation.per_second.errors == [0] * 9 + [1234]
    assert sum(drive.failed(measurement, INTERVALS, "")) == 0


LATTE_LOG = ROOT / "tests" / "unit" / "measure" / "logs" / "latte-0.29.0.hlog"


def test_a_damaged_line_of_its_log_costs_no_other_and_fails_the_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = LATTE_LOG.read_bytes()
    at = content.rindex(b"HISTF", 0, content.rindex(b"Tag=requests")) + 40
    (tmp_path / "measure.json").write_text(json.dumps({"result": {"log": [{"req_error_count": 1}] * 50}}))
    began = next(iter(hdr_log.read(LATTE_LOG, []))).start
    measuring = dataclasses.replace(
        phase(tmp_path, {"load_seconds": 9}), measured_from=began + 1, measured_seconds=1, warm_up_seconds=0
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROOP_RESULTS", str(tmp_path))
    monkeypatch.setattr(drive, "this_phase", lambda: measuring)
    monkeypatch.setattr(drive, "run", lambda *_: "")

    def latte(*_: object, stdout: BinaryIO, **__: object) -> None:
        stdout.write(content[:at] + b"\xe4" + content[at + 1 :])

    monkeypatch.setattr(subprocess, "run", latte)
    with pytest.raises(SystemExit, match=r"measure\.hlog:[0-9]+: the histogram is damaged"):
        drive.main()
    (file,) = tmp_path.glob("operations-*.json")
    assert operations.parse(json.loads(file.read_text())["operations"])["write"].times.count > 0


def test_load_that_does_not_cover_the_measured_time_is_reported() -> None:
    assert drive.uncovered(INTERVALS, AT, AT + 10) is None
    assert "began 1.0 s after" in drive.uncovered(INTERVALS, AT - 2, AT + 10)
    assert "ended 2.0 s before" in drive.uncovered(INTERVALS, AT, AT + 13)


def test_totals_are_those_of_all_phases(tmp_path: Path) -> None:
    measurement = phase(tmp_path, {})
    drive.keep_totals(measurement, 100, 1)
    drive.keep_totals(measurement, 50, 0)
    assert measurement.read("writes.json") == {"writes": 150, "failed": 1}


# Both


@pytest.mark.parametrize(
    ("coordinated", "applied", "expected"),
    [
        (150, 450, []),
        (149, 450, ["the drivers wrote 150 rows, but the servers coordinated 149"]),
        (150, 449, ["the servers applied 449 writes instead of 3 times 150: 7 were dropped"]),
    ],
)
def test_servers_are_held_against_drivers(coordinated: int, applied: int, expected: list[str]) -> None:
    drivers = count.added([{"writes": 100, "failed": 0}, {"writes": 50, "failed": 0}])
    seen = {"coordinated": coordinated, "applied": applied, "dropped": 7}
    assert count.differences(drivers, seen, 3) == expected


def test_a_server_that_is_lost_is_named_and_the_others_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = phase(tmp_path, {})
    lost = one.servers[1].address

    def totals(address: str) -> dict[str, int]:
        if address == lost:
            raise server.SilentError(f"no answer from {address}")
        return {"coordinated": 1}

    monkeypatch.setattr(server, "totals", totals)
    counts, silent = count.totals_of(one)
    assert count.added(counts) == {"coordinated": len(one.servers) - 1}
    assert silent == [f"no answer from {lost}, so its counts are missing"]


@pytest.mark.skipif(python39() is None, reason="there is no Python 3.9")
def test_scripts_can_be_read_by_the_nodes_python() -> None:
    command = [str(python39()), "-c", f"import {', '.join(SCRIPTS)}"]
    environment = {"PYTHONPATH": f"{folder('cassandra-write')}:{ROOT / 'functions'}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_all_scripts_of_the_file_are_there() -> None:
    assert {"install", "start", "drive", "verify", "measure", "count"} <= set(SCRIPTS)
    assert sys.modules.get("cluster") is not cluster, "names as common as these must not stay importable"


# Maintenance

maintenance = SCRIPTS["maintenance"]


class _Tasks:
    """Answers like a server, and keeps the names of what it has to do."""

    def __init__(self, status: list[str]) -> None:
        self.operations: list[str] = []
        self._status = status

    def ask(self, address: str, questions: list[dict[str, Any]], seconds: float = 0) -> list[Any]:
        name = questions[0]["operation"].partition("(")[0]
        self.operations.append(name)
        return [{"repairAsync": 7, "getParentRepairStatus": self._status}.get(name)]


@pytest.mark.parametrize(
    ("task", "status", "operations", "successes", "errors"),
    [
        ("none", [], [], None, {}),
        ("compaction", [], ["forceKeyspaceFlush", "forceKeyspaceCompaction"], 1, {}),
        ("repair", ["COMPLETED"], ["repairAsync", "getParentRepairStatus"], 1, {}),
        ("repair", ["FAILED", "no replica"], ["repairAsync", "getParentRepairStatus"], 0, {"failed": 1}),
    ],
)
def test_a_server_compacts_or_repairs_while_it_is_measured(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    status: list[str],
    operations: list[str],
    successes: int | None,
    errors: dict[str, int],
) -> None:
    tasks = _Tasks(status)
    monkeypatch.setattr(server, "ask", tasks.ask)
    measurement = dataclasses.replace(phase(tmp_path, {"maintenance": task}), measured_from=time.time())
    one = maintenance.Maintenance(measurement)
    one.start()
    until = time.monotonic() + 30
    while successes is not None and not one._ended and time.monotonic() < until:
        time.sleep(0.01)
    recorded = one.stop()
    assert tasks.operations[:2] == operations
    if successes is None:
        assert recorded == {}
    else:
        assert (recorded[task].times.count, recorded[task].errors) == (successes, errors)
        assert (sum(recorded[task].per_second.count), sum(recorded[task].per_second.errors)) == (
            successes,
            1 - successes,
        )


def test_drivers_beyond_the_set_number_of_clients_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(drive, "this_phase", lambda: phase(tmp_path, {"clients": 1}, rank=1))
    drive.main()
    assert capsys.readouterr().out == "only 1 of 2 drivers send requests now\n"


def test_the_row_with_which_stress_creates_the_schema_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = dataclasses.replace(phase(tmp_path, {"driver": STRESS}, rank=0), name="schema", measured_seconds=0)
    lines: list[list[str]] = []
    monkeypatch.setattr(drive, "this_phase", lambda: schema)
    monkeypatch.setattr(drive, "run", lambda phase, line: lines.append(line))
    (tmp_path / "cassandra" / "apache-cassandra-5.0.6" / "lib").mkdir(parents=True)
    drive.main()
    assert "n=1" in lines[0]
    assert schema.read("writes.json") == {"writes": 1, "failed": 0}
