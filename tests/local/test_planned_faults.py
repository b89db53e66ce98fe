"""Planned faults in a real kernel, by the agent: its network and its crash, as a client of the kernel sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from local.launcher import obstacle
from local.project import ROOT

CUT_SECONDS, SLOW_SECONDS, DELAY_MS, SLACK = 4.0, 4.0, 200, 0.6
NODE = r"""#!/bin/sh
export TROOP_NODE_HOME="$PWD" AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1
exec "$PYTHON" - <<'END'
import json, os, pathlib, socket, threading, time
from agent import network, power

def serve(listening):
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()

def answer(connection):
    while data := connection.recv(1):
        connection.sendall(data)

def during(name, seconds, begin, *arguments):
    begin("10.0.0.1", *arguments)
    moments[name] = [time.time()]
    time.sleep(seconds)
    moments[name].append(time.time())
    network.restore("10.0.0.1")
    moments["after " + name] = [time.time(), time.time() + 3]
    time.sleep(3)

network.prepare("10.0.0.1")
threading.Thread(target=serve, args=(socket.create_server(("10.0.0.1", 7000)),), daemon=True).start()
moments = {"before": [time.time() + 1, time.time() + 3]}
time.sleep(3)
during("cut", CUT_SECONDS, network.cut)
during("slow", SLOW_SECONDS, network.slow, DELAY_MS)
moments["off"] = [time.time()]
pathlib.Path("moments").write_text(json.dumps(moments))
power.crash()
END
"""
CLIENT = r"""
import json, pathlib, socket, sys, time

seen, ended = [], pathlib.Path(sys.argv[1])
connection = None
while not ended.exists() or time.time() < ended.stat().st_mtime + 2:
    at = time.time()
    try:
        if connection is None:
            connection = socket.create_connection(("10.0.0.1", 7000), 0.5)
        connection.settimeout(0.5)
        connection.sendall(b"x")
        took = time.time() - at if connection.recv(1) else "closed"
    except TimeoutError:
        took, connection = None, connection and connection.close()
    except ConnectionError:
        took, connection = "closed", connection and connection.close()
    except OSError:
        took = None
    seen.append([at, took])
    time.sleep(0.02)
print(json.dumps(seen))
"""
MACHINE = r"""
import os, pathlib, subprocess, sys
from local.account import kernels
from local.account.network import Networks, enter

home, client, path = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
networks = Networks()
member = networks.add("member", "10.0.0.2", "cell", [])
node = networks.add("node", "10.0.0.1", "cell", [], kernel=True)
environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHON": sys.executable, "PYTHONPATH": path}
line = kernels.command(home, "10.0.0.1", environment, [])
words = [sys.executable, "-c", client, str(home / "moments")]
with subprocess.Popen(words, preexec_fn=lambda: enter(member)) as client:
    try:
        with (home / "console.log").open("wb") as console:
            subprocess.run(
                line, stdin=subprocess.DEVNULL, stdout=console, timeout=300, preexec_fn=lambda: enter(node)
            )
        client.wait(60)
    finally:
        client.kill()
"""
_OBSTACLE = obstacle("network") or obstacle("kernels")


@pytest.mark.skipif(bool(_OBSTACLE), reason=f"no kernel to boot: {_OBSTACLE}")
def test_a_client_notices_a_cut_a_slow_network_and_a_crash(tmp_path: Path) -> None:
    script = tmp_path / "user-data"
    text = NODE.replace("CUT_SECONDS", str(CUT_SECONDS)).replace("SLOW_SECONDS", str(SLOW_SECONDS))
    script.write_text(text.replace("DELAY_MS", str(DELAY_MS)))
    script.chmod(0o700)
    path = f"{ROOT}:{ROOT / 'functions'}"
    line = [sys.executable, "-c", MACHINE, str(tmp_path), CLIENT, path]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
    assert (tmp_path / "moments").exists(), done.stdout + done.stderr + (tmp_path / "console.log").read_text()
    moments = json.loads((tmp_path / "moments").read_text())
    seen: list[tuple[float, Any]] = json.loads(done.stdout.splitlines()[-1])

    def within(name: str) -> list[Any]:
        """Returns how long the client's requests took; the kernel's clock differs a little from the machine's."""
        first, last = moments[name]
        return [took for at, took in seen if first + SLACK <= at < last - SLACK]

    quick = within("before")
    assert len(quick) > 5
    assert None not in quick
    assert set(within("cut")) == {None}
    assert DELAY_MS / 1000 <= median(within("slow")) < DELAY_MS / 1000 + max(0.15, 5 * median(quick))
    for name in ("after cut", "after slow"):
        assert median(took for took in within(name) if took is not None) < DELAY_MS / 1000
    # A machine that is off closes no connection.
    assert {took for at, took in seen if at > moments["off"][0] + SLACK} == {None}
    assert "closed" not in [took for at, took in seen if at > moments["before"][0]]
    assert (tmp_path / "off").exists()
