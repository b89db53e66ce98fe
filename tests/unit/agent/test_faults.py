"""A node as the victim of planned faults, by what its document in the results bucket and its processes say."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import faults, power, processes
from agent.barrier import Fault, Release, read
from agent.errors import FaultError
from agent.faults import Victim
from agent.place import Place
from tests.patience import PATIENCE, eventually
from tests.unit.agent.fake_account import FakeAccount
from tests.unit.agent.node import ID, ROLE, Node, alive, key
from tests.unit.agent.test_phase import place  # noqa: F401 - a fixture
from tests.unit.agent.test_whole_node import pythons
from troop.measure.summary import Clock

SERVERS = """
import os, subprocess, sys

def note(kind):
    print(os.getpid(), file=open(os.environ["TROOP_SHARED"] + "/" + kind, "w"), flush=True)

if sys.argv[1:]:
    if os.fork():
        sys.exit()
    os.setsid()
    if os.fork():
        sys.exit()
    note("daemon.part")
    os.rename(os.environ["TROOP_SHARED"] + "/daemon.part", os.environ["TROOP_SHARED"] + "/daemon")
    os.execve("/bin/sleep", ["sleep", "300"], {})
server = subprocess.Popen(["sh", "-c", "while :; do sleep 300; done"], start_new_session=True)
print(server.pid, file=open(os.environ["TROOP_SHARED"] + "/server", "w"))
subprocess.run([sys.executable, __file__, "daemon"], check=True)
while not os.path.exists(os.environ["TROOP_SHARED"] + "/daemon"):
    pass
"""
"""Leaves a server in a session of its own that would start its child again, and a daemon without an environment."""
SOON = 3.0


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    for path in (tmp_path / "home" / "shared").glob("*"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(os.getpgid(int(path.read_text())), signal.SIGKILL)


def begin(node: Node, *faults: dict[str, Any], script: str = SERVERS, more: str = "") -> dict[str, int]:
    """Boots it, and lets its first phase leave processes. Returns their ids."""
    node.benchmark(
        {"name": "start"},
        {"name": "measure", "roles": ["clients"], "faults": [{"role": ROLE, **fault} for fault in faults]},
        {"name": "last"},
        files={"run.py": script, "fault.py": more, "last.py": ""},
    )
    node.join()
    node.barrier("start")
    assert node.summary("start")["outcome"] == "ok"
    return {path.name: int(path.read_text()) for path in (node.home / "shared").iterdir()}


def hit(node: Node, method: str, lasts: float | None = None, *, after: float = SOON, **more: Any) -> float:
    """Releases the step with a fault. Returns its moment."""
    at = time.time() + after
    end_at = None if lasts is None else at + lasts
    fault = {"number": 2, "method": method, "begin_at": at, "end_at": end_at, "nodes": ["i-another", ID], **more}
    node.barrier("measure", script="no-file", start_at=at, faults=[fault], step_seconds=1)
    return at


def state_of(node: Node, state: str) -> dict[str, Any]:
    """Returns its only fault as soon as it has a state."""

    def fault() -> Any:
        body = node.account.objects.get(key(f"faults/measure/{ID}.json"))
        (fault,) = json.loads(body)["faults"] if body else [{}]
        return fault if fault.get("state") == state else None

    eventually(lambda: fault() is not None)
    only: dict[str, Any] = fault()
    return only


def letter(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture(params=pythons())
def node_of_each_python(account: FakeAccount, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Node]:
    node = Node(account, tmp_path, request.param)
    yield node
    node.end()


def test_stop_kills_all_that_scripts_have_left_and_the_node_goes_on(node_of_each_python: Node) -> None:
    node = node_of_each_python
    left = begin(node, {"method": "stop"})
    assert all(map(alive, left.values()))
    at = hit(node, "stop")
    planned = state_of(node, "PLANNED")
    assert time.time() < at, "it is announced before"
    assert all(map(alive, left.values()))
    assert planned == {
        **{"number": 2, "method": "stop", "state": "PLANNED", "begin_at": at},
        **{"began_at": None, "ended_at": None, "why": None},
    }
    done = state_of(node, "DONE")
    assert at <= done["began_at"] < at + 1
    assert not any(map(alive, left.values()))
    # The agent waits for what it has adopted: scripts would take the dead for living.
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left.values()))
    document = node.account.document(key(f"faults/measure/{ID}.json"))
    assert {name: document[name] for name in ("format", "id", "role", "phase")} == {
        "format": "troop.fault/1", "id": ID, "role": ROLE, "phase": "measure",
    }  # fmt: skip
    node.barrier("last", script="last.py")
    assert node.summary("last")["outcome"] == "ok"
    assert node.over() == 0
    assert not [name for name in node.account.objects if "phases/measure" in name], "it does not run the script"


def test_paused_processes_go_on_at_the_end(node: Node) -> None:
    left = begin(node, {"method": "pause", "for": 1})
    at = hit(node, "pause", 1)
    state_of(node, "BEGUN")
    assert {letter(pid) for pid in left.values()} == {"T"}
    done = state_of(node, "DONE")
    assert at + 1 <= done["ended_at"] < at + 2
    assert {letter(pid) for pid in left.values()} == {"S"}


def test_a_node_that_is_shut_down_while_it_is_paused_continues_its_processes(node: Node) -> None:
    left = begin(node, {"method": "pause", "for": 300})
    hit(node, "pause", 300)
    state_of(node, "BEGUN")
    node.terminate()
    assert node.summary("measure")["outcome"] == "lost"
    assert node.over() == 1
    assert {letter(pid) for pid in left.values()} == {"S"}


def test_a_crash_is_announced_and_leaves_nothing_but_its_mark(node: Node) -> None:
    left = begin(node, {"method": "crash"})
    hit(node, "crash")
    assert node.over() == -9
    assert not any(map(alive, left.values()))
    assert (node.home / "off").exists()
    assert state_of(node, "PLANNED")["method"] == "crash"
    assert not [name for name in node.account.objects if "phases/measure" in name]


TOUCHES = """
import os, json
word = os.environ["TROOP_FAULT"]
print(word, os.environ["TROOP_PHASE"], os.environ["TROOP_STEP_SECONDS"])
"""


def test_a_script_of_the_folder_begins_and_ends_a_fault(node: Node) -> None:
    begin(node, {"method": "script", "script": "fault.py", "for": 1}, script="", more=TOUCHES)
    at = hit(node, "script", 1, script="fault.py")
    done = state_of(node, "DONE")
    assert at + 1 <= done["ended_at"] < at + PATIENCE
    eventually(lambda: key(f"output/measure/{ID}.log.gz") in node.account.objects)
    assert gzip.decompress(node.output("measure")) == b"begin measure 1\nend measure 1\n"


def test_a_node_that_cannot_undo_a_fault_says_so_and_crashes(node: Node) -> None:
    fails = "import os, sys; sys.exit('it is stuck' if os.environ['TROOP_FAULT'] == 'end' else 0)"
    begin(node, {"method": "script", "script": "fault.py", "for": 1}, script="", more=fails)
    hit(node, "script", 1, script="fault.py")
    assert node.over() == -9
    fault = state_of(node, "BEGUN")
    assert fault["why"] == (
        "could not undo: fault.py ended with exit code 1 with TROOP_FAULT=end; its last output: it is stuck; the node "
        "crashes"
    )
    assert (node.home / "off").exists()


def test_the_reason_of_a_crash_has_what_failed_first(node: Node) -> None:
    fails = "import os, sys; sys.exit('no ' + os.environ['TROOP_FAULT'])"
    begin(node, {"method": "script", "script": "fault.py", "for": 1}, script="", more=fails)
    hit(node, "script", 1, script="fault.py")
    assert node.over() == -9
    why = state_of(node, "FAILED")["why"]
    assert why.startswith("could not undo: fault.py ended with exit code 1 with TROOP_FAULT=end")
    assert "; the node crashes; before: fault.py ended with exit code 1 with TROOP_FAULT=begin" in why


def test_without_a_stored_announcement_nothing_happens(node: Node) -> None:
    left = begin(node, {"method": "stop"})
    node.account.forbidden = key(f"faults/measure/{ID}.json")
    at = hit(node, "stop")
    eventually(lambda: "FAILED" in node.console())
    assert all(map(alive, left.values()))
    assert time.time() >= at
    node.account.forbidden = ""
    assert state_of(node, "FAILED")["why"] == "its announcement was not stored in time"


def test_a_release_after_the_moment_of_a_fault_is_too_late(node: Node) -> None:
    left = begin(node, {"method": "stop"})
    hit(node, "stop", after=-5)
    fault = state_of(node, "FAILED")
    assert fault["why"].startswith("this node was ready for it only ")
    assert fault["began_at"] is None
    assert all(map(alive, left.values()))


def test_a_fault_needs_processes(node: Node) -> None:
    begin(node, {"method": "stop"}, script="")
    hit(node, "stop")
    assert state_of(node, "FAILED")["why"] == "the scripts of earlier phases have left no process running"


def test_a_fault_happens_at_the_common_moment_also_by_a_wrong_clock(account: FakeAccount, node: Node) -> None:
    account.clock_ahead = 100.0
    begin(node, {"method": "stop"})
    at = hit(node, "stop", after=100 + SOON)
    assert abs(state_of(node, "DONE")["began_at"] - at) < 1
    assert abs(time.time() + 100 - at) < SOON + PATIENCE


def test_a_node_without_a_network_of_its_own_refuses_faults_of_it(node: Node) -> None:
    node.benchmark({"name": "measure", "roles": ["clients"], "faults": [{"zone": 1, "method": "cut"}]}, files={})
    node.boot()
    assert node.registration()["error"] == (
        "this node cannot have a fault of its network, which needs the packages iproute-tc and kernel-modules-extra: "
        "the address 127.0.0.1 is one of the machine that this node shares with others"
    )


def test_faults_of_other_nodes_and_units_do_not_concern_a_node(node: Node) -> None:
    faults: list[dict[str, Any]] = [
        {"unit": "web", "role": None, "method": "crash"},
        {"role": "servers", "method": "crash"},
    ]
    begin(node, *faults)
    node.barrier("last", script="last.py")
    assert node.summary("last")["outcome"] == "ok"
    assert node.over() == 0


def test_a_node_that_no_fault_hits_goes_on_at_once(node: Node) -> None:
    left = begin(node, {"method": "stop"})
    hit(node, "stop", after=PATIENCE, nodes=["i-another"])
    node.barrier("last", script="last.py")
    assert node.summary("last")["outcome"] == "ok"
    assert all(map(alive, left.values()))
    assert not [name for name in node.account.objects if "/faults/" in name]


def victim(place: Place, put: Any, *faults: Fault, clock: Clock | None = None) -> Victim:  # noqa: F811
    release = Release("none", 300, 0, 60, time.time(), faults=faults)
    return Victim(place, "measure", 0, release, clock, put)


def test_a_request_that_hangs_delays_no_fault(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    bodies: list[bytes] = []
    acts: list[float] = []

    def put(body: bytes) -> None:
        bodies.append(body)
        time.sleep(0.5 if len(bodies) > 1 else 0)

    monkeypatch.setattr(processes, "kill", lambda: acts.append(time.time()))
    now = time.time()
    first = Fault(1, "stop", now + 0.3, None, frozenset({"i-1"}))
    second = Fault(2, "stop", now + 0.4, None, frozenset({"i-1"}))
    victim(place, put, second, first).carry_out()
    assert [pytest.approx(one, abs=0.09) for one in acts] == [now + 0.3, now + 0.4]
    assert [one["state"] for one in json.loads(bodies[-1])["faults"]] == ["DONE", "DONE"], "the last state is stored"


def test_a_partly_begun_fault_is_undone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    bodies: list[bytes] = []
    acts: list[str] = []

    def fails() -> None:
        raise FaultError("3 processes do not halt")

    monkeypatch.setattr(processes, "pause", fails)
    monkeypatch.setattr(processes, "resume", lambda: acts.append("resume"))
    moment = time.time() + 0.2
    victim(place, bodies.append, Fault(1, "pause", moment, moment + 9, frozenset({"i-1"}))).carry_out()
    (fault,) = json.loads(bodies[-1])["faults"]
    assert (fault["state"], fault["why"], acts) == ("FAILED", "3 processes do not halt", ["resume"])


@pytest.mark.parametrize(
    ("word", "apart", "limit"), [("begin", 5, 4), ("end", 6, 4), ("begin", 1, 2), ("begin", None, 5)]
)
def test_a_script_that_hangs_is_killed_in_time_for_the_next_fault(
    place: Place,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    word: str,
    apart: int | None,
    limit: int,
) -> None:
    for name, seconds in (("SCRIPT", 5.0), ("LEAST_SCRIPT", 2.0), ("KILL", 0.5)):
        monkeypatch.setattr(faults, f"{name}_SECONDS", seconds)
    monkeypatch.setattr(processes, "kill", lambda: None)
    monkeypatch.setattr(power, "crash", lambda: None)
    (place.files / "fault.py").write_text(f"import os, time\nos.environ['TROOP_FAULT'] != '{word}' or time.sleep(60)")
    bodies: list[bytes] = []
    at = time.time() + 0.2
    all_of_them = [Fault(1, "script", at, at + 1 if word == "end" else None, frozenset({"i-1"}), "fault.py")]
    if apart is not None:
        all_of_them.append(Fault(2, "stop", at + apart, None, frozenset({"i-1"})))
    victim(place, bodies.append, *all_of_them).carry_out()
    first, *second = json.loads(bodies[-1])["faults"]
    assert f"fault.py took longer than {limit} s and was stopped with TROOP_FAULT={word}" in first["why"]
    assert [one["state"] for one in second] == ([] if apart is None else ["DONE" if apart > limit else "FAILED"])


def test_releases_without_faults_stay_readable() -> None:
    document = {
        **{"format": "troop.barrier/1", "state": "release", "script": "run.py", "timeout_seconds": 1},
        **{"warm_up_seconds": 0, "measured_seconds": 1, "start_at": None},
    }
    release = read(json.dumps(document).encode())
    assert isinstance(release, Release)
    assert (release.faults, release.step_seconds) == ((), None)
