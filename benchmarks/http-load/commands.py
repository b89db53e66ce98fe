"""Composes the command lines of k6, JMeter and Locust. A plan gets its properties in the way of its tool."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from node import Node

SAMPLES = "samples.jtl"
"""JMeter's log, in the folder of the phase."""
PYTHON = "python3.11"
"""The Python of Amazon Linux 2023's packages that Locust needs: it does not run on 3.9."""
LISTENER = "troop_listener.py"
"""The file that has Troop record Locust's requests, beside the plan."""
_LISTENS = """from locust import events

from troop.measure.collectors.locust_events import listen

listen(events)
"""

_SAVED = {
    "output_format": "csv",
    "print_field_names": "true",
    "timestamp_format": "ms",
    "label": "true",
    "time": "true",
    "successful": "true",
    "response_code": "true",
    "response_message": "true",
    "thread_name": "true",
    "bytes": "true",
    "autoflush": "false",
}
"""JMeter's properties of the log, which a plan's folder may have changed."""
_SAMPLES = {"sampleresult.timestamp.start": "true", "subresults.disable_renaming": "false"}
"""JMeter's properties that the log's reader relies on: when samples begin, and how requests of a sampler are named."""


@dataclass(frozen=True)
class Command:
    """A command with its additional environment.

    Attributes:
        accepted: exit codes besides 0 that are no failure.
    """

    words: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)
    accepted: dict[int, str] = field(default_factory=dict)


def k6(node: Node, samples: str) -> Command:
    """Returns the command that writes samples as CSV to the path ``samples``."""
    pairs = [word for name, value in node.properties().items() for word in ("-e", f"{name}={value}")]
    words = [
        *(str(node.software / "k6"), "run", "--quiet", "--no-color", "--address", "127.0.0.1:0"),
        *("--out", f"csv={samples}", *pairs, *node.arguments(), node.plan),
    ]
    return Command(
        words, K6_QUIET, {99: "thresholds of the plan were crossed", 110: "the plan marked the test as failed"}
    )


K6_QUIET = {
    "K6_CSV_TIME_FORMAT": "unix_micro",
    "K6_NO_USAGE_REPORT": "true",
    "K6_AUTO_EXTENSION_RESOLUTION": "false",
}
"""Nothing that needs the internet, and timestamps that separate the warm-up."""


def jmeter(node: Node) -> Command:
    """Returns the command that writes :data:`SAMPLES`."""
    home = next(node.software.glob("*/bin/ApacheJMeter.jar"), None)
    if home is None:
        sys.exit("the archive of JMeter has no bin/ApacheJMeter.jar in its folder")
    saved = [f"-Jjmeter.save.saveservice.{name}={value}" for name, value in _SAVED.items()]
    saved += [f"-J{name}={value}" for name, value in _SAMPLES.items()]
    pairs = [f"-J{name}={value}" for name, value in node.properties().items()]
    samples = Path.cwd() / SAMPLES
    words = [
        *("java", f"-Xmx{heap_mib(node)}m", "-Djava.awt.headless=true", "-jar", str(home)),
        *("-n", "-t", node.plan, "-l", str(samples), "-j", str(samples.with_name("jmeter.log"))),
        *("-Jjmeterengine.nongui.port=0", *saved, *pairs, *node.arguments()),
    ]
    return Command(words)


def heap_mib(node: Node) -> int:
    """Returns the parameter ``heap_mib``; with 0 half of the node's memory."""
    size = int(node.parameters.get("heap_mib") or 0)
    return size or max(256, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // 1024**2)


def locust(node: Node) -> Command:
    """Returns the command whose processes record each request by Troop's listener."""
    (node.work / LISTENER).write_text(_LISTENS, encoding="utf-8")
    words = [
        *(python(node), "-m", "locust", "-f", f"{node.plan},{LISTENER}", "--headless", "--only-summary"),
        *("--run-time", f"{node.seconds}s", "--exit-code-on-error", "0", *node.arguments()),
    ]
    path = os.pathsep.join([str(node.software), os.environ["PYTHONPATH"]])
    return Command(words, {**node.properties(), "PYTHONPATH": path})


def python(node: Node) -> str:
    """Returns the Python for Locust: with ``system: false`` the one of this script."""
    return PYTHON if node.parameters.get("system", True) else sys.executable
