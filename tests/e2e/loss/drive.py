"""Sends requests to the servers in turn, in an open loop, whether or not they answer.

Prints the moments of all failures, by which a test checks what Troop has counted.
"""

from __future__ import annotations

import http.client
import itertools
import json
import sys
import threading
import time

from troop.measure.phase_environment import Phase
from troop.measure.recorder import Recorder

PORT = 8085
LONGEST = 1.0

phase = Phase.of_script()
servers = phase.nodes["servers"]
turn = itertools.count()
failed: list[float] = []


def problem(server: str) -> str | None:
    """Sends a request. Returns the kind of its failure; None if it succeeded."""
    connection = http.client.HTTPConnection(server, PORT, timeout=LONGEST)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except TimeoutError:
        return "timeout"
    except ConnectionRefusedError:
        return "refused"
    except (OSError, http.client.HTTPException):
        return "broken"
    finally:
        connection.close()
    return None


def work(recorder: Recorder) -> None:
    for due in schedule:
        started = time.perf_counter()
        kind = problem(servers[next(turn) % len(servers)])
        if kind is None:
            recorder.ok("get", time.perf_counter() - started, 2, due=due)
        else:
            recorder.error("get", kind, due=due)
            failed.append(recorder.now())


with Recorder.of_this_phase() as recorder:
    schedule = recorder.schedule(per_second=float(phase.parameters["rate"]))
    threads = [threading.Thread(target=work, args=(recorder,)) for _ in range(int(phase.parameters["threads"]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

measured = [one for one in failed if recorder.measured_from <= one < recorder.measured_until]
sys.stdout.write(json.dumps({"failed": measured}) + "\n")
