"""A node from its first boot to its last phase, by what it leaves in the results bucket."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent.barrier import Address
from agent.errors import AgentError
from agent.expiry import GRACE_SECONDS
from agent.session import Session
from tests.patience import PATIENCE, eventually
from tests.unit.agent.fake_account import METADATA, FakeAccount
from tests.unit.agent.node import AWAIT_SAMPLES, BUCKET, CELL, ID, ROLE, RUN, Node, alive, key
from tests.unit.agent.pythons import python39
from troop.bench.definition import names
from troop.measure import summary as summaries

READER = """
import json, os
from troop.measure.recorder import Recorder

now = float(os.environ["TROOP_START_AT"]) + 0.25
with Recorder.of_this_phase() as recorder:
    recorder.now = lambda: now
    while now < recorder.measured_until:
        recorder.ok("read", 0.002, 100)
        now += 0.5
    recorder.error("late", "timeout")
print(json.dumps({name: value for name, value in os.environ.items() if name.startswith("TROOP_")}))
print(json.load(open(os.environ["TROOP_PARAMETERS"])), os.getcwd())
"""
PREPARE = "#!/bin/sh\necho prepared $TROOP_RANK\necho files $(ulimit -Sn)\necho mask $(umask)\n"
"""Reads twice a second by a clock of its own, so that the figures depend on no machine's speed."""
MEASURE: dict[str, Any] = {"script": "read.py", "warm_up_seconds": PATIENCE, "measured_seconds": 2}
"""A node may be late by the whole warm-up."""


def begin(node: Node, *phases: str, files: dict[str, str]) -> None:
    """Boots it, and lets it through no barrier."""
    node.benchmark(*({"name": phase} for phase in phases), files=files)
    node.join()


def hard_limit() -> int | str:
    """Of open files, as a shell says it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return "unlimited" if hard == resource.RLIM_INFINITY else hard


def pythons() -> list[str]:
    return [sys.executable, *filter(None, [python39()])]


@pytest.mark.parametrize("python", pythons())
def test_node_registers_waits_measures_and_ends(account: FakeAccount, tmp_path: Path, python: str) -> None:
    node = Node(account, tmp_path, python)
    try:
        begin(
            node,
            "prepare",
            "measure",
            files={"prepare.sh": PREPARE, "read.py": READER + AWAIT_SAMPLES},
        )
        registered = node.registration()
        node.barrier("prepare", script="prepare.sh")
        prepared = summaries.parse(node.summary("prepare"))
        start_at = time.time() + 2
        node.barrier("measure", start_at=start_at, **MEASURE)
        measured = summaries.parse(node.summary("measure"))
        code = node.over()
    finally:
        node.end()

    assert code == 0, node.console()
    assert {
        name: registered[name] for name in ("format", "id", "role", "zone", "address", "instance_type", "image")
    } == {
        "format": "troop.node/1",
        "id": ID,
        "role": ROLE,
        "zone": METADATA["placement/availability-zone"],
        "address": "127.0.0.1",
        "instance_type": "c7g.large",
        "image": METADATA["ami-id"],
    }
    assert abs(registered["clock"]["offset_seconds"]) <= registered["clock"]["uncertainty_seconds"]
    assert account.requests["GET", "presigned"] > 6, "several looks at the clock make its doubt small"
    assert (prepared.outcome, prepared.rank, prepared.measured_from) == ("ok", 3, None)
    assert gzip.decompress(node.output("prepare")) == f"prepared 3\nfiles {hard_limit()}\nmask 0022\n".encode()
    assert node.home.stat().st_mode & 0o777 == 0o700, "what is in it is nobody else's"

    assert (measured.outcome, measured.reason, measured.exit_code) == ("ok", None, 0)
    assert measured.started_at >= start_at
    assert measured.measured_from == pytest.approx(start_at + PATIENCE, abs=1e-3)
    assert measured.warm_up_seconds == PATIENCE
    read = measured.operations["read"]
    assert (read.times.count, sum(read.per_second.count)) == (4, 4 + 2 * PATIENCE), "the warm-up shows over time"
    assert read.over_time is not None
    assert sum(map(read.over_time.count, range(read.over_time.steps))) == sum(read.per_second.count)
    assert read.bytes == 400
    assert "late" not in measured.operations
    assert measured.samples is not None
    assert any(measured.samples.series["memory_used"])
    assert measured.clock is not None

    first, rest = gzip.decompress(node.output("measure")).decode().splitlines()
    environment = json.loads(first)
    expected = {
        "RUN": RUN,
        "CELL": CELL,
        "ROLE": ROLE,
        "RANK": "3",
        "NODE": ID,
        "ADDRESS": "127.0.0.1",
        "PHASE": "measure",
    }
    assert {name: environment[f"TROOP_{name}"] for name in expected} == expected
    assert float(environment["TROOP_START_AT"]) == pytest.approx(start_at, abs=1e-3)
    assert float(environment["TROOP_MEASURED_SECONDS"]) == 2
    assert environment["TROOP_FILES"] == str(node.home / "files")
    assert rest.startswith("{'threads': 4, 'keys': ['a', 'b']}")


def test_only_the_phases_of_its_role_are_its_own(node: Node) -> None:
    node.benchmark({"name": "serve", "roles": ["servers"]}, {"name": "prepare"}, files={"run.py": ""})
    node.join()
    node.barrier("prepare")
    assert node.summary("prepare")["outcome"] == "ok"
    assert node.over() == 0
    assert not [name for name in node.account.objects if "phases/serve" in name]


@pytest.mark.parametrize("role", [ROLE, "others"])
def test_scripts_learn_only_the_targets_of_their_role(node: Node, role: str) -> None:
    shop = {"host": "internal-shop", "port": 443, "ports": ["443"], "addresses": []}
    show = "import os\nprint(open(os.environ['TROOP_TARGETS']).read(), end='')\n"
    targets = {"shop": {"load_balancer": "shop", "ports": ["443"], "roles": [role]}}
    node.account.put(key(f"targets/{role}.json"), {"format": "troop.targets/1", "targets": {"shop": shop}})
    node.benchmark({"name": "show"}, files={"run.py": show}, targets=targets)
    node.join()
    node.barrier("show")
    assert node.summary("show")["outcome"] == "ok"
    shown = json.loads(gzip.decompress(node.output("show")))
    assert shown == {"format": "troop.targets/1", "targets": {"shop": shop} if role == ROLE else {}}


def test_the_end_is_the_end(node: Node) -> None:
    begin(node, "prepare", files={"run.py": ""})
    node.barrier("prepare", "end")
    assert node.over() == 0
    assert not [name for name in node.account.objects if "/phases/" in name]


def test_a_node_of_a_standing_fleet_sets_itself_up_by_itself_and_stays(node: Node) -> None:
    """It waits for nobody, registers when it is ready, and what its script has left running goes on."""
    script = "#!/bin/sh\nsleep 300 > /dev/null 2>&1 &\necho $! > $TROOP_SHARED/pid\necho rank=$TROOP_RANK.\n"
    setup = {"name": "setup", "script": "setup.sh", "timeout": 300}
    node.benchmark(setup, files={"setup.sh": script}, standing=True)
    node.boot()
    assert node.registration()["role"] == ROLE
    assert summaries.parse(node.summary("setup")).outcome == "ok"
    assert gzip.decompress(node.output("setup")) == b"rank=.\n"
    left = int((node.home / "shared" / "pid").read_text())
    try:
        assert alive(left)
        eventually(lambda: "waiting until the fleet ends" in node.console())
        node.terminate()  # it has stayed until then
        assert node.over() == 1
        assert "error" not in node.registration(), "it was ready, and is gone"
    finally:
        os.kill(left, signal.SIGKILL)


def ranked(*ids: str, complete: bool = True) -> bytes:
    """The roster of a standing fleet, by rank."""
    nodes = [{"id": one, "role": ROLE, "rank": n, "is_present": True} for n, one in enumerate(ids)]
    return json.dumps({"format": "troop.roster/1", "complete": complete, "nodes": nodes}).encode() + b"\n"


def test_a_node_of_a_standing_fleet_with_ranks_waits_for_its_own(node: Node) -> None:
    """It sets itself up once it has one, and later reads who else comes and goes."""
    setup = {"name": "setup", "script": "setup.sh", "timeout": 300}
    script = '#!/bin/sh\necho rank=$TROOP_RANK.\nread -r all < $TROOP_ROSTER\necho "$all"\n'
    node.benchmark(setup, files={"setup.sh": script}, standing=True, ranks=True)
    node.account.objects[key("roster.json")] = ranked("i-other", ID, complete=False)
    node.boot()
    eventually(lambda: "waiting for a rank" in node.console())
    assert "setup" not in node.console().partition("waiting for a rank")[2]
    node.account.objects[key("roster.json")] = ranked("i-other", ID)
    assert node.registration()["role"] == ROLE
    assert gzip.decompress(node.output("setup")) == b"rank=1.\n" + ranked("i-other", ID)
    node.account.objects[key("roster.json")] = ranked("i-another", ID)
    eventually(lambda: b"i-another" in (node.home / "roster.json").read_bytes())
    node.reboot()
    assert node.over() == 0, node.console()
    assert node.registration()["error"] == "the node rebooted", "it is no longer ready, though it is on the roster"


def test_a_ready_node_survives_a_roster_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    """As after minutes without S3: it serves, and the next look may succeed."""

    class Unreachable:
        def fetch(self, _address: object) -> bytes:
            raise AgentError("no answer from S3")

    session = Session.__new__(Session)
    session._waiter = Unreachable()  # type: ignore[assignment]
    session._refresh_roster(Address(None, "roster.json"))  # type: ignore[arg-type]
    assert "cannot read the roster: no answer from S3" in "".join(capsys.readouterr())


def test_a_node_that_cannot_set_itself_up_says_so(node: Node) -> None:
    setup = {"name": "setup", "script": "setup.sh", "timeout": 300}
    node.benchmark(setup, files={"setup.sh": "#!/bin/sh\necho no bucket\nexit 3\n"}, standing=True)
    node.boot()
    registered = node.registration()
    assert registered["error"] == "setup.sh ended with exit code 3; its last output: no bucket"
    assert summaries.parse(node.summary("setup")).outcome == "failed"
    assert node.over() == 1


# ------------------------------------------------------------------ faults


HANGS = "import time; time.sleep(300)"
LOSES = "print('the server has died'); raise SystemExit(75)"
LEAVES_RUBBISH = """
import json, os
good = {"format": "troop.separate/1", "tool": "wrk", "rows": [{"operation": "get", "count": 7}]}
for name, document in {"operations": {}, "separate-1": {}, "separate-2": good}.items():
    with open(f"{os.environ['TROOP_RESULTS']}/{name}.json", "w") as file:
        json.dump(document, file)
"""


@pytest.mark.parametrize(
    ("script", "barrier", "outcome", "reason"),
    [
        ("raise SystemExit('no bucket')", {}, "failed", "run.py ended with exit code 1; its last output: no bucket"),
        ("import os; os.kill(os.getpid(), 9)", {}, "failed", "run.py was killed by signal 9"),
        (HANGS, {"timeout_seconds": 0.7}, "timed-out", "run.py took longer than 0.7 s and was stopped"),
        (LOSES, {}, "lost", "the server has died"),
        ("", {"script": "missing.sh"}, "failed", "cannot run missing.sh: "),
        ("", {"start_at": 1.0}, "failed", "s after the common start"),
    ],
    ids=["fails", "crashes", "hangs", "loses", "missing", "late"],
)
def test_a_phase_that_fails_has_a_summary_with_the_reason(
    node: Node, script: str, barrier: dict[str, Any], outcome: str, reason: str
) -> None:
    begin(node, "prepare", files={"run.py": script})
    node.barrier("prepare", **barrier)
    summary = summaries.parse(node.summary("prepare"))
    assert (summary.outcome, summary.rank) == (outcome, 3)
    assert reason in str(summary.reason)
    assert gzip.decompress(node.output("prepare")) is not None


def test_operations_before_the_failure_of_a_script_are_stored(node: Node) -> None:
    begin(node, "measure", files={"read.py": READER + "raise SystemExit(3)\n"})
    node.barrier("measure", start_at=time.time(), **MEASURE)
    summary = summaries.parse(node.summary("measure"))
    assert (summary.outcome, summary.exit_code) == ("failed", 3)
    assert summary.operations["read"].times.count == 4


def test_unreadable_results_of_a_script_are_reported_by_file(node: Node) -> None:
    begin(node, "prepare", files={"run.py": LEAVES_RUBBISH})
    node.barrier("prepare")
    summary = summaries.parse(node.summary("prepare"))
    assert summary.outcome == "failed"
    for name in ("operations.json", "separate-1.json"):
        assert f"{name} of the script's results cannot be read: the format must be" in str(summary.reason)
    assert [(row.tool, row.operation, row.count) for row in summary.separate] == [("wrk", "get", 7)]


def test_a_node_that_is_shut_down_while_it_measures_says_that_it_is_lost(node: Node) -> None:
    begin(
        node,
        "prepare",
        files={"run.py": "import os, time\nopen('pid', 'x').write(str(os.getpid()))\ntime.sleep(300)\n"},
    )
    node.barrier("prepare")
    pid = node.home / "phases/prepare/pid"
    eventually(lambda: pid.exists() and pid.read_text())
    node.terminate()
    summary = summaries.parse(node.summary("prepare"))
    assert (summary.outcome, summary.exit_code) == ("lost", None)
    assert "shutting down" in str(summary.reason)
    assert not alive(int(pid.read_text()))
    assert node.over() == 1


def test_a_node_that_is_shut_down_while_it_waits_says_so_too(node: Node) -> None:
    begin(node, "prepare", files={"run.py": ""})
    eventually(lambda: "waiting for the release" in node.console())
    node.terminate()
    assert node.summary("prepare")["outcome"] == "lost"


def test_registration_reports_a_changed_artifact(node: Node) -> None:
    artifact = {"name": "data.bin", "sha256": hashlib.sha256(b"as staged").hexdigest()}
    node.benchmark({"name": "prepare"}, files={"run.py": ""}, artifacts=[artifact])
    node.account.put(f"{BUCKET}/{names.artifact_key(artifact['sha256'])}", b"as changed")
    node.boot()
    registered = node.registration()
    assert (registered["format"], registered["id"], registered["role"]) == ("troop.node/1", ID, ROLE)
    assert "artifact data.bin differs from the staged file" in registered["error"]
    assert node.over() == 1


def test_a_node_that_is_not_on_the_roster_does_nothing(node: Node) -> None:
    begin(node, "prepare", files={"run.py": ""})
    node.roster(node="i-of-another")
    node.barrier("prepare")
    summary = node.summary("prepare")
    assert (summary["outcome"], summary["reason"]) == ("failed", f"{ID} is not on the roster")


@pytest.mark.parametrize("python", pythons())
def test_a_node_that_reboots_in_a_phase_reports_it(account: FakeAccount, tmp_path: Path, python: str) -> None:
    node = Node(account, tmp_path, python)
    try:
        begin(node, "prepare", "measure", files={"run.py": "", "wait.sh": "#!/bin/sh\n: > begun\nexec sleep 1000\n"})
        registered = node.registration()
        node.barrier("prepare")
        assert node.summary("prepare")["outcome"] == "ok"
        node.barrier("measure", script="wait.sh")
        assert eventually(lambda: (node.home / "phases/measure/begun").exists())
        node.reboot()
        assert node.over() == 0, node.console()
    finally:
        node.end()
    summary = summaries.parse(node.summary("measure"))
    assert (summary.outcome, summary.reason) == ("lost", "the node rebooted")
    assert node.summary("prepare")["outcome"] == "ok", "what was over stays"
    assert node.registration() == registered, "the report needs it"
    assert "troop: the node rebooted" in node.console()


def test_a_node_that_reboots_before_the_first_phase_is_not_ready(node: Node) -> None:
    node.benchmark({"name": "prepare"}, files={"run.py": ""})
    node.boot()
    node.registration()
    node.reboot()
    assert node.over() == 0, node.console()
    assert node.registration()["error"] == "the node rebooted"


def test_artifacts_are_there_by_name(node: Node) -> None:
    content = b"many bytes"
    sha256 = hashlib.sha256(content).hexdigest()
    script = "import os; print(open(os.environ['TROOP_ARTIFACTS'] + '/tools/data.bin').read())"
    node.benchmark(
        {"name": "prepare"}, files={"run.py": script}, artifacts=[{"name": "tools/data.bin", "sha256": sha256}]
    )
    node.account.put(f"{BUCKET}/{names.artifact_key(sha256)}", content)
    node.boot()
    node.roster()
    node.barrier("prepare")
    assert node.summary("prepare")["outcome"] == "ok"
    assert gzip.decompress(node.output("prepare")) == content + b"\n"


def test_a_clock_that_is_wrong_starts_at_the_common_instant_all_the_same(node: Node) -> None:
    node.account.clock_ahead = 7200.0
    begin(node, "prepare", files={"run.py": ""})
    clock = node.registration()["clock"]
    assert clock["offset_seconds"] == pytest.approx(-7200, abs=clock["uncertainty_seconds"])
    start_at = time.time() + 7200 + 2
    node.barrier("prepare", start_at=start_at, warm_up_seconds=PATIENCE)
    summary = summaries.parse(node.summary("prepare"))  # which comes hours later if the node starts by its own clock
    assert summary.outcome == "ok", summary.reason
    assert summary.clock is not None
    assert summary.started_at >= start_at - 7200 - summary.clock.uncertainty_seconds


def test_a_run_that_expires_takes_its_nodes_along(node: Node) -> None:
    node.benchmark({"name": "prepare"}, files={"run.py": ""})
    for seconds in (4, 16, 64, 256):  # a busy machine may take longer to boot it
        node.boot(expires_at=int(time.time()) - GRACE_SECONDS + seconds)
        assert node.over() == 1
        assert "has expired" in node.console()
        if key(f"nodes/{ID}.json") in node.account.objects:
            break
    document = {**node.registration(), **json.loads(node.account.objects.get(key(f"phases/prepare/{ID}.json"), b"{}"))}
    assert "shutting down" in (document.get("reason") or document.get("error") or ""), (
        "it may have come before the first phase"
    )
