"""Assigns the ranks of a standing fleet's nodes, and keeps them across replacement.

A rank belongs to one node at a time. When its node is gone, the next new node of the role takes it, if possible one in
the same zone. A node keeps its rank until it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from troop.bench.definition.roster import FORMAT, UNKNOWN_UNCERTAINTY, Member, Node, make_roster


@dataclass(frozen=True)
class Seat(Member):
    """A rank, and the node that has it, or had it last.

    Attributes:
        is_present: whether the node is still there; otherwise the rank waits for another node.
        predecessor: the address of the node that had the rank before; empty for the first one.
        of: the number of ranks that the role had when this one began. It never changes, so what follows from a rank
            and this number, such as a token, stays the same in a role of another size. 0 if it is not known yet.
    """

    is_present: bool = True
    predecessor: str = ""
    of: int = 0


@dataclass(frozen=True)
class Ranks:
    """The ranks of a fleet.

    Attributes:
        seats: ordered by role and rank.
        is_complete: whether every rank has had a node. Until then, nodes wait with their setup.
    """

    seats: tuple[Seat, ...] = ()
    is_complete: bool = False


def assign(ranks: Ranks, desired: Mapping[str, int], nodes: Sequence[Node]) -> Ranks:
    """Returns the ranks for the nodes that are there now.

    The ranks of a role begin when all of its nodes are there, so that they alternate between zones like those of a
    benchmark. If a role grows, new nodes get new ranks. If it shrinks, the ranks beyond its size end with their nodes.

    Args:
        desired: the number of nodes by role.
        nodes: those that are there, in any order. One without an address gets no rank yet, but does not lose one.
    """
    seats: list[Seat] = []
    for role, count in sorted(desired.items()):
        own = [seat for seat in ranks.seats if seat.role == role]
        seats += _role_seats(own, count, [node for node in nodes if node.role == role])
    roles = {seat.role for seat in seats}
    is_complete = all(role in roles for role, count in desired.items() if count)
    return Ranks(tuple(seats), ranks.is_complete or is_complete)


def is_settled(ranks: Ranks, desired: Mapping[str, int]) -> bool:
    """Checks whether every rank has a node."""
    present = [seat for seat in ranks.seats if seat.is_present]
    return ranks.is_complete and len(present) == sum(desired.values()) == len(ranks.seats)


def _role_seats(own: Sequence[Seat], count: int, nodes: Sequence[Node]) -> list[Seat]:
    located = [node for node in nodes if node.address]
    if not own:
        members = make_roster(located).members[:count] if len(located) >= count else ()
        return [Seat(**asdict(member), of=count) for member in members]
    there = {node.id for node in nodes}
    seats = [
        replace(seat, is_present=seat.id in there, of=seat.of or len(own))  # an earlier version did not record it
        for seat in own
        if seat.rank < count or seat.id in there
    ]
    seated = {seat.id for seat in seats}
    waiting = sorted((node for node in located if node.id not in seated), key=lambda node: (node.zone, node.id))
    for number, seat in enumerate(seats):
        if waiting and not seat.is_present:
            node = next((one for one in waiting if one.zone == seat.zone), waiting[0])
            waiting.remove(node)
            seats[number] = _seat(node, seat.rank, seat.of, seat.address)
    free = sorted(set(range(count)) - {seat.rank for seat in seats})
    seats += [_seat(node, rank, count) for node, rank in zip(waiting, free, strict=False)]
    return sorted(seats, key=lambda seat: seat.rank)


def _seat(node: Node, rank: int, of: int, predecessor: str = "") -> Seat:
    return Seat(
        node.id,
        node.role,
        rank,
        node.zone,
        node.address,
        node.instance_type,
        node.purchase,
        predecessor=predecessor,
        of=of,
    )


def to_document(ranks: Ranks) -> dict[str, Any]:
    """Converts to the roster that nodes read, which is also the stored document; the reverse of
    :func:`from_document`.
    """
    return {
        "format": FORMAT,
        "clock": {"uncertainty_seconds": UNKNOWN_UNCERTAINTY},
        "complete": ranks.is_complete,
        "nodes": [asdict(seat) for seat in ranks.seats],
    }


def from_document(document: Mapping[str, Any]) -> Ranks:
    """Reads a document that :func:`to_document` has built."""
    return Ranks(tuple(Seat(**seat) for seat in document["nodes"]), bool(document["complete"]))
