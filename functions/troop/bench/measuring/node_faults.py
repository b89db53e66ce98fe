"""Reads what nodes say about the faults that they carry out, and decides which losses of nodes these explain. Pure.

Nodes write their documents, so everything in them is checked. What a node must do when, the released barrier says: a
node can neither excuse itself by a fault that nobody has planned, nor move one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from troop.bench.definition.planned_fault import CRASH
from troop.bench.definition.roster import LONGEST_ERROR
from troop.measure.redaction import redacted

FORMAT = "troop.fault/1"

CANNOT_UNDO = "could not undo"
"""The beginning of the reason of a node that crashes because it cannot undo a fault, or what has begun of one."""


class FaultState(StrEnum):
    """How far a node is with a fault. DONE: it has begun, and has ended if it ends. FAILED: it could not begin."""

    PLANNED = "PLANNED"
    BEGUN = "BEGUN"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True)
class NodeFault:
    """What a node says about one fault.

    Attributes:
        began_at, ended_at: seconds since 1970, by the common clock; None if it has not, or does not end.
        why: why it has FAILED, or why the node crashes; None for neither.
    """

    state: FaultState
    began_at: float | None = None
    ended_at: float | None = None
    why: str | None = None

    @property
    def cannot_end(self) -> bool:
        """Whether the node crashes, because it cannot end the fault."""
        return self.why is not None and self.why.startswith(CANNOT_UNDO)


Reports = Mapping[str, Mapping[int, NodeFault]]
"""What nodes say, by node and by the fault's number."""


def parse(node: str, step: str, document: Any) -> dict[int, NodeFault]:
    """Returns what a document of a node says, by the fault's number; nothing if it cannot be read.

    Args:
        node: from the object's key, which is authoritative: the document must agree with it.
        step: likewise.
    """
    try:
        if (document["format"], document["id"], document["phase"]) != (FORMAT, node, step):
            return {}
        return {int(one["number"]): _fault(one) for one in document["faults"]}
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return {}


def _fault(document: Mapping[str, Any]) -> NodeFault:
    why = document.get("why")
    return NodeFault(
        FaultState(document["state"]),
        _moment(document.get("began_at")),
        _moment(document.get("ended_at")),
        None if why is None else redacted(str(why))[:LONGEST_ERROR],
    )


def _moment(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not math.isfinite(seconds := float(value)):
        raise ValueError
    return seconds


def announced(planned: Iterable[Mapping[str, Any]], reports: Reports) -> dict[str, float]:
    """Returns the nodes whose documents announce that they crash, each with the moment from which it may be lost.

    Args:
        planned: the faults of a released barrier.
    """
    moments: dict[str, float] = {}
    for fault in planned:
        for node in fault["nodes"]:
            its = reports.get(node, {}).get(fault["number"])
            if its and (its.cannot_end or (fault["method"] == CRASH and its.state is not FaultState.FAILED)):
                moments[node] = min(fault["begin_at"], moments.get(node, math.inf))
    return moments


def excused(missing: Mapping[str, float], moments: Mapping[str, float]) -> frozenset[str]:
    """Returns the missing nodes whose loss a planned fault explains.

    Args:
        missing: since when a check has missed each node, in seconds since 1970.
        moments: see :func:`announced`.
    """
    return frozenset(node for node, since in missing.items() if node in moments and since >= moments[node])


@dataclass(frozen=True)
class Carried:
    """How all nodes of one fault have carried it out.

    Attributes:
        nodes: their documents in the fault's order; a crashed node began when the fault was planned, unless it says
            more.
        unfinished: nodes that have not said how it went.
        failures: reasons of nodes that failed, each with the node's id; or that there were too few nodes.
    """

    nodes: Mapping[str, NodeFault]
    unfinished: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def why(self) -> str | None:
        """Why the fault has FAILED; None if it has not."""
        return "; ".join((*self.failures, *(f"{node} did not say how it went" for node in self.unfinished))) or None


def carried(fault: Mapping[str, Any], reports: Reports, lost: Collection[str]) -> Carried:
    """Returns how the nodes have carried out a fault of a released barrier.

    Args:
        lost: the nodes that are gone.
    """
    nodes: dict[str, NodeFault] = {}
    unfinished, failures = [], [] if fault["nodes"] else ["fewer nodes are left than it is to hit"]
    for node in fault["nodes"]:
        its = reports.get(node, {}).get(fault["number"])
        if its is None:
            unfinished.append(node)
            continue
        if fault["method"] == CRASH and node in lost and its.state is not FaultState.FAILED:
            began_at = fault["begin_at"] if its.began_at is None else its.began_at
            its = NodeFault(FaultState.DONE, began_at)
        nodes[node] = its
        if its.state is FaultState.FAILED or its.cannot_end:
            failures.append(f"{node}: {its.why or 'without a reason'}")
        elif its.state is not FaultState.DONE:
            unfinished.append(node)
    return Carried(nodes, tuple(unfinished), tuple(failures))


def all_carried(
    planned: Iterable[Mapping[str, Any]], reports: Reports, lost: Collection[str]
) -> Iterator[tuple[int, Carried]]:
    """Yields the number of each fault of a released barrier, and how its nodes have carried it out."""
    for fault in planned:
        yield fault["number"], carried(fault, reports, lost)
