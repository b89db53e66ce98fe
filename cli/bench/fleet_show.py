"""Formats standing fleets for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cli.bench import money as bench_money
from cli.bench import show as bench_show
from cli.shared import show
from cli.shared.listings import Column
from troop.bench.definition.definition import ON_DEMAND, SPOT, surge
from troop.bench.definition.money import shown
from troop.bench.fleets.refusals import is_vain

FLEET_COLUMNS = (
    Column("fleet", lambda fleet: fleet["fleet"]),
    Column("name", lambda fleet: fleet["name"]),
    Column("status", lambda fleet: fleet["status"]),
    Column("nodes", lambda fleet: _ready(fleet)),
    Column("began", lambda fleet: show.moment(fleet["at"]), lambda fleet: fleet["at"]),
    Column("expires", lambda fleet: show.moment(fleet["expires_at"]), lambda fleet: fleet["expires_at"]),
    Column("by", lambda fleet: bench_show.caller(fleet["requested_by"])),
    Column("reason", lambda fleet: show.first_line(fleet["reason"])),
)
FLEET_DROPPED = ("by", "began", "reason", "nodes")
"""The columns that a narrow terminal omits."""
NODE_COLUMNS = ("node", "role", "zone", "type", "bought", "in its group", "ready", "problem")


def role_state(role: Mapping[str, Any]) -> str:
    """Returns a role's state, such as ``workers: 3 of 5 in service, 2 ready``; with spot nodes or a backup also
    ``(3 on spot, 0 on demand)``.
    """
    bought = f" ({role['spot']} on spot, {role['on_demand']} on demand)" if role.get("spot") or _backed(role) else ""
    state = f"{role['role']}: {role['in_service']} of {role['desired']} in service{bought}, {role['ready']} ready"
    more = [f"{role[kind]} {kind}" for kind in ("starting", "leaving", "failed") if role[kind]]
    return ", ".join([state, *more])


def role_states(fleet: Mapping[str, Any]) -> str:
    return "; ".join(map(role_state, fleet["roles"]))


def is_complete(fleet: Mapping[str, Any]) -> bool:
    """Checks whether the fleet has exactly the desired nodes, all ready. Roles with a backup may have more nodes.

    A fleet that starts without nodes is complete when they were counted: then it is launched.
    """
    return fleet["seen_at"] is not None and all(map(_is_complete, fleet["roles"]))


def _is_complete(role: Mapping[str, Any]) -> bool:
    if _backed(role):
        return bool(role["desired"] <= role["ready"] and role["in_service"] <= role["desired"] + surge(role["desired"]))
    return bool(role["in_service"] == role["ready"] == role["desired"] and not role["starting"] and not role["leaving"])


def _backed(role: Mapping[str, Any]) -> bool:
    return bool(role.get("backup"))  # a deployment of an older version does not return it


def is_stuck(fleet: Mapping[str, Any]) -> bool:
    """Checks whether nothing is starting or leaving, and the setup of some nodes has failed."""
    roles = fleet["roles"]
    settled = all(
        role["in_service"] == role["ready"] + role["failed"] == role["desired"]
        and not role["starting"]
        and not role["leaving"]
        for role in roles
    )
    return settled and any(role["failed"] for role in roles)


def hopeless(view: Mapping[str, Any]) -> str | None:
    """Returns the first refusal that the next launch would meet too; None without one.

    A role whose missing nodes are all starting has no such refusal: earlier ones have passed. What spot refuses to a
    role with a backup does not count: the backup launches these nodes.
    """
    short = {r["role"] for r in view["fleet"]["roles"] if r["in_service"] + r["starting"] < r["desired"]}
    for refusal in view["refusals"]:
        role, _, words = refusal.partition(": ")  # the role's name can be any word
        if role.removesuffix(" on demand") in short and is_vain(words):
            return str(refusal)
    return None


def problem(view: Mapping[str, Any]) -> str:
    """Returns the problem of the first failed node, and the number of others."""
    failed_nodes = [node for node in view["nodes"] if node["problem"]]
    more = f"; and {len(failed_nodes) - 1} more" if len(failed_nodes) > 1 else ""
    return (
        f"{failed_nodes[0]['id']}: {failed_nodes[0]['problem']}{more}" if failed_nodes else "the setup of a node failed"
    )


def summary(fleet: Mapping[str, Any]) -> str:
    """Returns the state or outcome of a fleet: one line, and further lines of its reason."""
    reason, below = (
        f": {show.first_line(fleet['reason'])}" if fleet["reason"] else "",
        show.lines_below(fleet["reason"]),
    )
    staying = bench_show.stays(fleet)
    if fleet["ended_at"]:
        cost = f"; it cost {bench_money.total(fleet['cost'])}" if fleet.get("cost") else ""
        return f"{fleet['fleet']} {fleet['status']}{reason} ({staying or 'nothing is left of it'}{cost}){below}"
    also = f"; {staying}" if staying else ""
    return f"{fleet['fleet']} {fleet['status']}{reason}; {role_states(fleet)}{also}{below}"


def estimate(fleet: Mapping[str, Any]) -> str | None:
    """Returns a line with the expected cost; None if it was not recorded."""
    if not (expected := fleet.get("estimate")):
        return None
    if not expected["expected"]:
        return "cost unknown: none of its resources has a known price"
    until = f"until it expires at {show.moment(fleet['expires_at'])}"
    nodes = ", with its initial nodes" if fleet.get("scaled_at") else ""
    return f"expected to cost {shown(expected['expected'], expected['currency'], up=True)} {until}{nodes}"


def bought(view: Mapping[str, Any]) -> list[str]:
    """Returns a line about what was bought for each role so far, and one about what spot has saved; empty without spot
    nodes.
    """
    by_role: dict[str, list[str]] = {}
    for one in view.get("bought", []):
        nodes = f"{one['nodes']} {'node' if one['nodes'] == 1 else 'nodes'} on {_WORDS[one['purchase']]}"
        by_role.setdefault(one["role"], []).append(f"{nodes} ({one['hours']:,.2f} hours)")
    if not any(one["purchase"] == SPOT for one in view.get("bought", [])):
        return []
    lines = [f"{role} so far: {', '.join(parts)}" for role, parts in by_role.items()]
    cost = view.get("cost_so_far") or view["fleet"].get("cost")
    return [*lines, *([text] if (text := saved(cost)) else [])]


def saved(cost: Mapping[str, Any] | None) -> str | None:
    """Returns what spot nodes have saved; None if that is unknown."""
    if not cost or cost.get("on_demand") is None:
        return None
    listed, amount = (
        shown(value, cost["currency"]) for value in (cost["on_demand"], cost["on_demand"] - cost["amount"])
    )
    return f"saved by spot: {amount} of {listed}, the cost with all nodes on demand"


_WORDS = {SPOT: "spot", ON_DEMAND: "demand"}


def _ready(fleet: Mapping[str, Any]) -> str:
    return "" if fleet["ended_at"] else ", ".join(f"{r['role']} {r['ready']}/{r['desired']}" for r in fleet["roles"])


def node_rows(nodes: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            node["id"],
            node["role"],
            node["zone"],
            node["instance_type"],
            node.get("purchase"),
            node["place"],
            "yes" if node["ready"] else "no",
            node["problem"],
        )
        for node in nodes
    ]
