"""What nodes reach in a whole run: each other, S3, the metadata service and the targets of their role, nothing else."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.launcher import obstacle
from tests.e2e.conftest import Deployment
from tests.e2e.test_bench_smoke import objects, troop

_OBSTACLE = obstacle("network")
pytestmark = pytest.mark.skipif(bool(_OBSTACLE), reason=f"reach is not enforced here: {_OBSTACLE}")

BENCHMARK = """
name: reach
expires_after: 1h
fleets:
  drivers: {count: 1, instance_type: c7g.large}
  servers: {count: 1, instance_type: c7g.large}
targets:
  app: {addresses: [127.0.0.1], ports: [TARGET], roles: [drivers]}
parameters: {target: TARGET, other: OTHER}
phases:
  - {name: connect, roles: [drivers, servers], script: connect.py, timeout: 2m}
"""
SCRIPT = """
import json, os, socket, ssl, threading, time, urllib.request
from urllib.parse import urlsplit

PORT = 9000


def read(name):
    with open(os.environ["TROOP_" + name]) as file:
        return json.load(file)


def connects(host, port, seconds=0):
    until = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((host, port), timeout=2) as one:
                if port == PORT:
                    return True
                one.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
                return bool(one.recv(1))
        except OSError:
            if time.monotonic() > until:
                return False
            time.sleep(0.1)


def has_certificate(url):
    context = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])
    with socket.create_connection((url.hostname, url.port), timeout=30) as plain:
        with context.wrap_socket(plain, server_hostname=url.hostname) as one:
            return bool(one.getpeercert())


def answers(url, **more):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **more), timeout=30) as answer:
            return answer.status == 200
    except OSError:
        return False


listening = socket.create_server((os.environ["TROOP_ADDRESS"], PORT))
threading.Thread(target=listening.accept, daemon=True).start()
parameters = read("PARAMETERS")
(peer,) = [node["address"] for node in read("ROSTER")["nodes"] if node["address"] != os.environ["TROOP_ADDRESS"]]
print(json.dumps({
    "role": os.environ["TROOP_ROLE"],
    "target": connects("127.0.0.1", parameters["target"]),
    "another port": connects("127.0.0.1", parameters["other"]),
    "elsewhere": connects("192.0.2.1", 80),
    "s3": has_certificate(urlsplit(os.environ["AWS_ENDPOINT_URL"])),
    "metadata": answers(
        os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"] + "/latest/api/token",
        method="PUT",
        headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"},
    ),
    "peer": connects(peer, PORT, 60),
}))
time.sleep(3)  # the peer connects, too
"""


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def services() -> Iterator[tuple[int, int]]:
    """The ports of two services of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as one, ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as two:
        for server in (one, two):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        yield one.server_port, two.server_port
        for server in (one, two):
            server.shutdown()


def test_a_role_reaches_its_targets_its_peers_and_s3_alone(
    smoke: Deployment, services: tuple[int, int], tmp_path: Path
) -> None:
    target, other = services
    (tmp_path / "benchmark.yaml").write_text(BENCHMARK.replace("TARGET", str(target)).replace("OTHER", str(other)))
    (tmp_path / "connect.py").write_text(SCRIPT)
    run = troop(smoke, "run", str(tmp_path))["run"]  # nodes have files, credentials and results through S3
    assert run["status"] == "SUCCEEDED", run
    printed = [gzip.decompress(one).splitlines()[-1] for one in objects(smoke, run["run"], "output/connect/")]
    reached = {one.pop("role"): one for one in map(json.loads, printed)}
    common = {"s3": True, "metadata": True, "peer": True}
    assert reached == {
        "drivers": {"target": True, "another port": False, "elsewhere": False} | common,
        "servers": {"target": False, "another port": False, "elsewhere": False} | common,
    }
