"""Lists the faults: the ways in which Troop hits an instance. A fault is one module here, and one entry in a table.

There are two kinds: terminations, and lasting faults inside an instance. Everything that depends on the method of an
event reads these tables: policy, settings, API, command, the calls to AWS, permissions and documents.
"""

from __future__ import annotations

from troop.faults.blackhole import BLACKHOLE
from troop.faults.cpu import CPU
from troop.faults.crash import CRASH
from troop.faults.disk import DISK
from troop.faults.drain import DRAIN
from troop.faults.fault import Fault
from troop.faults.io import IO
from troop.faults.kill import KILL
from troop.faults.lasting_fault import LastingFault
from troop.faults.latency import LATENCY
from troop.faults.loss import LOSS
from troop.faults.memory import MEMORY
from troop.faults.shutdown import SHUTDOWN

FAULTS: tuple[Fault, ...] = (CRASH, SHUTDOWN, DRAIN)
"""The terminations."""

LASTING: tuple[LastingFault, ...] = (CPU, MEMORY, IO, DISK, KILL, LATENCY, LOSS, BLACKHOLE)
"""The lasting faults."""


def names() -> tuple[str, ...]:
    """Lists the names of all faults."""
    return (*(fault.name for fault in FAULTS), *(fault.name for fault in LASTING))


def find_fault(name: str) -> Fault | None:
    """Returns a termination by its name; None if this version does not have it."""
    return next((fault for fault in FAULTS if fault.name == name), None)


def find_lasting(name: str) -> LastingFault | None:
    """Returns a lasting fault by its name; None if this version does not have it."""
    return next((fault for fault in LASTING if fault.name == name), None)


def tools() -> tuple[str, ...]:
    """Lists the programs and kernel modules that the lasting faults need, each once: the probe looks for them."""
    return tuple(dict.fromkeys(tool for fault in LASTING for tool in fault.tools))


def services() -> frozenset[str]:
    """Returns the AWS services that the terminations call."""
    return frozenset(service for fault in FAULTS for service in fault.services)
