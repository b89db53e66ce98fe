"""Measures the ceiling of the application of web-scale: requests per second of one core, with its authentication calls.

    python -m perf.web_app [--seconds 10]

wrk sends requests with 32 connections directly to the web service, which calls the authentication service for each one;
memcached has the data. All run on this machine. The ceiling is requests per second of *processor time* of both services
together, user and system. So it does not depend on what else the machine does. memcached and wrk are not in it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from local import web

FOLDER = web.BENCHMARK / "flights"
ADDRESS = "127.93.0.1"
PORTS = {"web": 7081, "authentication": 7082, "data": 7211}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
QUERY = "/flights?from=FRA&to=JFK&day=1&back=2"
SCRIPT = """
requests, n = {}, 0
init = function()
  for i = 1, 6 do requests[i] = wrk.format("GET", "%s") end
  requests[7] = wrk.format("GET", "/bookings")
  local headers = {["Content-Type"] = "application/x-www-form-urlencoded", ["Cookie"] = wrk.headers["Cookie"]}
  requests[8] = wrk.format("POST", "/session", headers, "user=user2&password=password-of-user2")
end
request = function() n = n %% #requests + 1; return requests[n] end
"""
MIXES = {"query-flights": 6, "the mix": 8}
"""Requests in the rotation of the script. The mix: six queries, one list of bookings, one login."""


def processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """Returns user and system time of a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def log_in() -> str:
    """Returns the cookie of a session."""
    connection = http.client.HTTPConnection(ADDRESS, PORTS["web"], timeout=30)
    connection.request("POST", "/session", urlencode({"user": "user1", "password": "password-of-user1"}), FORM)
    response = connection.getresponse()
    response.read()
    connection.close()
    return str(response.getheader("Set-Cookie")).split(";")[0]


def load(services: Sequence[subprocess.Popen[bytes]], cookie: str, count: int, seconds: int, folder: Path) -> str:
    """Returns a line of the table for the first ``count`` requests of the rotation."""
    script = folder / "requests.lua"
    script.write_text((SCRIPT % QUERY).replace("#requests", str(count)), encoding="utf-8")
    words = ["-t1", "-c32", f"-d{seconds}s", "-s", str(script), "-H", f"Cookie: {cookie}"]
    before, began = [processor_seconds(one) for one in services], time.monotonic()
    done = subprocess.run(
        ["wrk", *words, f"http://{ADDRESS}:{PORTS['web']}"], capture_output=True, text=True, check=True
    )
    took, used = (
        time.monotonic() - began,
        [processor_seconds(one) - old for one, old in zip(services, before, strict=True)],
    )
    match = re.search(r"(\d+) requests in", done.stdout)
    if match is None or "Non-2xx" in done.stdout:
        sys.exit(done.stdout)
    rates = [int(match[1]) / one for one in (took, sum(used), *used)]
    return "".join(f"| {rate:,.0f} " for rate in rates) + "|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    seconds = parser.parse_args().seconds
    if (problem := web.missing()) or (problem := None if web.which("wrk") else "apt-get install wrk"):
        sys.exit(f"a program is missing: {problem}")
    with tempfile.TemporaryDirectory() as name:
        folder, program, started = Path(name), str(Path(name) / "flights"), []
        build = [web.which("go") or "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "."]
        subprocess.run(build, cwd=FOLDER, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        roster = {"nodes": [{"role": role, "rank": 0, "address": ADDRESS} for role in PORTS]}
        (folder / "roster.json").write_text(json.dumps(roster), encoding="utf-8")
        common = ["--roster", str(folder / "roster.json")]
        data = [web.which("memcached") or "", "-l", ADDRESS, "-p", str(PORTS["data"]), "-U", "0", "-u", "nobody"]
        commands = [
            data,
            *([program, role, *common, f"--listen={ADDRESS}:{PORTS[role]}"] for role in PORTS if role != "data"),
        ]
        try:
            started = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
            time.sleep(1)
            subprocess.run([program, "fill", *common, "--days=5", "--customers=100"], check=True)
            cookie = log_in()
            print("| requests | reached a second | a core of both services | of web alone | of authentication alone |")
            for mix, count in MIXES.items():
                print(f"| {mix} {load(started[1:], cookie, count, seconds, folder)}", flush=True)
        finally:
            for process in started:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
