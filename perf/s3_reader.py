"""Measures the ceiling of the reader of the benchmark s3-range-read: requests per second of one core.

    python -m perf.s3_reader [--seconds 5] [--rounds 3] [--threads 1 50 200] [--warm-up 4]

One process reads ranges over several numbers of connections, by the functions of benchmarks/s3-range-read: it chooses,
signs, reads and records. A server in another process answers at once, over HTTP and over TLS. The ceiling is reads per
second of *processor time* of the reading process, user and system together. So it does not depend on the speed of the
server. A node with n cores reads at most n times as much, because read.py starts a process on each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from perf import ROOT
from tests.unit.tls import certificate

FOLDER = ROOT / "benchmarks" / "s3-range-read"
SIZE, OBJECTS = 1 << 20, 1000
LENGTHS = 1024, 10240
_RANGE = re.compile(rb"range: ?bytes=(\d+)-(\d+)\r\n", re.IGNORECASE)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    body = bytes(max(LENGTHS))
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            bounds = _RANGE.search(request)
            assert bounds is not None
            count = 1 + int(bounds.group(2)) - int(bounds.group(1))
            head = f"HTTP/1.1 206 Partial Content\r\nContent-Length: {count}\r\nServer: stub\r\n\r\n".encode()
            writer.write(head + body[:count])
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def serve(bundle: str | None, sender: Any) -> None:
    """Serves ranges on a free port of 127.0.0.1 until the process is ended."""

    async def run() -> None:
        context = None
        if bundle:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(bundle)
        server = await asyncio.start_server(_answer, "127.0.0.1", 0, ssl=context, backlog=1024)
        sender.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


READS = """
import json, multiprocessing, os, resource, sys, threading, time
sys.path[:0] = [{folder!r}, {functions!r}]
import read
from objects import store
from s3 import Listed
from pathlib import Path
parameters = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text())
objects = (Listed(f"part-{{n:08d}}.parquet", {size}) for n in range({objects}))
store(Path(os.environ["TROOP_SHARED"]), objects, parameters["max_bytes"], {objects})
result, sender = multiprocessing.Pipe(duplex=False)
used = []
def use():
    for moment in (0, float(os.environ["TROOP_MEASURED_SECONDS"])):
        time.sleep(max(0, float(os.environ["TROOP_MEASURED_FROM"]) + moment - time.time()))
        now = resource.getrusage(resource.RUSAGE_SELF)
        used.append((time.monotonic(), now.ru_utime + now.ru_stime))
watching = threading.Thread(target=use)
watching.start()
read.process(0, 1, parameters["threads"], parameters, (0, 1), multiprocessing.Value("i", 0, lock=False), sender)
watching.join()
(began, before), (ended, after) = used
print(json.dumps({{"totals": result.recv(), "cpu": after - before, "elapsed": ended - began}}))
"""


def reads(url: str, bundle: Path | None, threads: int, length: int, warm_up: float, seconds: float) -> dict[str, Any]:
    """Reads in a process of its own. Returns its counts, its processor time and its time."""
    with tempfile.TemporaryDirectory() as folder:
        parameters = {"bucket": "data", "min_bytes": 0, "max_bytes": length, "threads": threads}
        Path(folder, "parameters.json").write_text(json.dumps(parameters), encoding="utf-8")
        variables = {
            "NODE": "i-1",
            "PARAMETERS": f"{folder}/parameters.json",
            "SHARED": folder,
            "RESULTS": folder,
            "MEASURED_FROM": str(time.time() + warm_up),
            "MEASURED_SECONDS": str(seconds),
            "WARM_UP_SECONDS": str(warm_up),
        }
        environment = {
            "PATH": os.environ["PATH"],
            "AWS_ENDPOINT_URL": url,
            "AWS_DEFAULT_REGION": "us-west-2",
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": "t" * 1000,  # as long as a role's
            **({"AWS_CA_BUNDLE": str(bundle)} if bundle else {}),
            **{f"TROOP_{name}": value for name, value in variables.items()},
        }
        script = READS.format(folder=str(FOLDER), functions=str(ROOT / "functions"), size=SIZE, objects=OBJECTS)
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        counts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each case, of which the median counts")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 50, 200])
    parser.add_argument("--warm-up", type=float, default=4.0, help="seconds until all have connected")
    options = parser.parse_args()
    print(f"{'':10} {'threads':>7} {'bytes':>6} {'reads/s a core':>14} {'us a read':>9} {'reads/s':>8} {'busy':>5}")
    with tempfile.TemporaryDirectory() as folder:
        bundle = certificate(Path(folder))
        for scheme in ("http", "https"):
            is_tls = scheme == "https"
            result, sender = multiprocessing.Pipe(duplex=False)
            server = multiprocessing.Process(target=serve, args=(str(bundle) if is_tls else None, sender), daemon=True)
            server.start()
            url = f"{scheme}://127.0.0.1:{result.recv()}"
            try:
                for threads in options.threads:
                    for length in LENGTHS:
                        rounds = [
                            reads(url, bundle if is_tls else None, threads, length, options.warm_up, options.seconds)
                            for _ in range(options.rounds)
                        ]
                        assert all(one["totals"][1] == 0 for one in rounds), "some reads failed"
                        each = median(one["cpu"] / one["totals"][0] for one in rounds)
                        rate = median(one["totals"][0] / options.seconds for one in rounds)
                        busy = median(one["cpu"] / one["elapsed"] for one in rounds)
                        print(
                            f"{scheme:10} {threads:7} {length:6} {1 / each:14,.0f} {1e6 * each:9.0f} {rate:8,.0f} "
                            f"{busy:5.0%}",
                            flush=True,
                        )
            finally:
                server.terminate()
                server.join()


if __name__ == "__main__":
    main()
