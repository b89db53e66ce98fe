"""Nodes of a standing fleet and what they report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from troop.bench.definition.living import RESTART, Heal, Health
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Member, Place, Standing
from troop.bench.living.digest import Watched, watched
from troop.bench.living.report import Check, Report, parse_report

NOW = datetime(2026, 11, 27, 18, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)

HEALTH = Health(8080, every=10, grace=120)
RESTARTS = Heal(after=3, do=RESTART, script="restart.sh", at_most=Decimal("0.1"))
REPLACES = Heal(after=3, at_most=Decimal("0.1"))


def fleet(size: int = 10, heal: Heal = REPLACES, **more: Any) -> Standing:
    """A fleet with the role workers, whose nodes report."""
    return Standing(
        {"workers": size},
        heals={"workers": heal},
        healths={"workers": HEALTH},
        watched=frozenset({"workers"}),
        **more,
    )


def document(**changes: Any) -> dict[str, Any]:
    """A report as an agent writes it."""
    health = {"status": "ok", "failures": 0, "failing_since": None, "detail": "", "checks": []}
    return {
        "format": "troop.report/1",
        "id": "i-1",
        "role": "workers",
        "at": NOW.timestamp(),
        "ready_at": LONG_AGO.timestamp(),
        "health": health | changes.pop("health", {}),
        "work": {"done": 0, "held": 0, "idle_since": None},
        "draining": False,
        "drained": False,
        "repair": None,
        "notice": None,
        **changes,
    }


def check(name: str = "answer", status: str = "fail", **more: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "value": None, "threshold": None, "detail": "", "todo": "", **more}


def parsed(changes: Mapping[str, Any] | None = None, at: datetime = NOW, node: str = "i-1") -> Report:
    return parse_report(node, at, json.dumps(document(**(changes or {}))).encode())


def node(number: int = 1, *checks: Check, ready_at: datetime = LONG_AGO, **report: Any) -> Watched:
    """A node whose report has these checks; its status is that of the worst one."""
    name = f"i-{number:03}"
    statuses = {one.status: one for one in checks}
    worst = max(statuses, key=lambda one: ["ok", "warn", "fail"].index(one), default=Report("", NOW).status)
    fields = {"status": worst, "checks": checks} | report
    return Watched(name, "workers", ready_at, timedelta(seconds=120), Report(name, fields.pop("at", NOW), **fields))


def seen(
    standing: Standing,
    nodes: Iterable[str],
    ready: Mapping[str, datetime],
    reports: Mapping[str, Report],
    now: datetime,
) -> tuple[Watched, ...]:
    """What a check sees of the nodes of a group that all serve."""
    members = tuple(Member(one, "a", "c7g.large", Place.SERVING) for one in nodes)
    group = GroupStatus("workers", len(members), len(members), members)
    return watched(standing, [group], {one: Node(one, "workers") for one in nodes}, ready, reports, now)
