"""Lists the faults: the ways in which Troop hits an instance. A fault is one module here, and one entry in the table.

Everything that depends on the method of a termination reads this table: policy, settings, API, command, the call to
AWS, permissions and documents.
"""

from __future__ import annotations

from troop.faults.crash import CRASH
from troop.faults.drain import DRAIN
from troop.faults.fault import Fault
from troop.faults.shutdown import SHUTDOWN

FAULTS: tuple[Fault, ...] = (CRASH, SHUTDOWN, DRAIN)
"""All faults, from the harshest to the gentlest."""


def names() -> tuple[str, ...]:
    """Lists the names of the faults, from the harshest to the gentlest."""
    return tuple(fault.name for fault in FAULTS)


def find_fault(name: str) -> Fault | None:
    """Returns a fault by its name; None if this version does not have it."""
    return next((fault for fault in FAULTS if fault.name == name), None)


def gentleness(name: str) -> int:
    """Returns the place of a fault in the table: the higher, the gentler."""
    return names().index(name)


def services() -> frozenset[str]:
    """Returns the AWS services that the faults call."""
    return frozenset(service for fault in FAULTS for service in fault.services)
