"""Starts this node's server and waits until it sees the whole ring. Seeds start first, then all others at once.

Parameters: ``heap_mib``, 0 for a part of the memory; ``ring_delay_ms``, how long a server listens before it joins the
ring; ``ring_seconds``, the limit for all of it. ``cassandra`` has further settings of
``cassandra.yaml``; ``java`` lists further options of the JVM.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import cluster
import server
from node import Phase, this_phase

FILES = 1_048_576
"""The limit of open files for a server."""


def main() -> None:
    phase = this_phase()
    until = time.monotonic() + float(phase.parameters["ring_seconds"])
    if phase.address not in cluster.seeds(phase.servers):
        server.await_seeds(phase, until)
    process = server.keep_started(phase, launch(phase))
    print(f"Cassandra is process {process.pid}, at {phase.address}")
    server.await_ring(phase, until)
    for one in phase.servers:
        print(f"UN  {one.address}  {one.zone}  {one.token}")


def launch(phase: Phase, changes: Mapping[str, Any] = MappingProxyType({}), java: Sequence[str] = ()) -> int:
    """Starts the server, which outlives this script, and returns its process id.

    Args:
        changes: of ``cassandra.yaml``; None leaves a setting out.
        java: further options of the JVM.
    """
    conf, logs = phase.shared / "conf", phase.shared / "logs"
    for folder in (conf, logs):
        folder.mkdir(exist_ok=True)
    data = phase.read("folders.json")
    timeout = int(phase.parameters["write_timeout_ms"])
    settings = cluster.configuration(phase.own, phase.servers, data, timeout)
    settings.update(phase.parameters.get("cassandra") or {})
    settings.update(changes)
    settings = {key: value for key, value in settings.items() if value is not None}
    (conf / "cassandra.yaml").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    (conf / "cassandra-rackdc.properties").write_text(cluster.rack(phase.own), encoding="utf-8")
    (conf / "logback.xml").write_text(cluster.LOGGING, encoding="utf-8")
    (phase.shared / "triggers").mkdir(exist_ok=True)
    library = phase.home / "lib"
    folders = {"conf": str(conf), "logs": str(logs), "storage": data[0], "triggers": str(phase.shared / "triggers")}
    folders["jamm"] = str(next(library.glob("jamm-*.jar")))
    heap = cluster.heap_mib(memory_mib(), int(phase.parameters["heap_mib"]))
    options = cluster.java_options(
        heap,
        str(phase.artifacts / "jolokia"),
        phase.own,
        folders,
        int(phase.parameters["ring_delay_ms"]),
        [*(str(option) for option in phase.parameters.get("java") or ()), *java],
    )
    command = ["java", *options, "-cp", f"{conf}:{library}/*", "org.apache.cassandra.service.CassandraDaemon"]
    with (logs / "console.log").open("wb") as console:
        process = subprocess.Popen(
            command,
            cwd=phase.shared,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # otherwise the script's time limit would end it
            preexec_fn=_more_files,
        )
    return process.pid


def memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // cluster.MIB


def _more_files() -> None:
    with contextlib.suppress(ValueError, OSError):  # without the permission, the existing limits apply
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with contextlib.suppress(OSError):  # the agent marks scripts to be killed first, but not a server
        Path("/proc/self/oom_score_adj").write_text("0", encoding="ascii")


if __name__ == "__main__":
    main()
