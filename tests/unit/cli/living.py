"""The health, work and repairs of a fleet as the API answers them."""

from __future__ import annotations

from typing import Any

WORK = {
    "at": "2026-11-20T15:30:00.000Z",
    "submitted": 10_000,
    "done": 8120,
    "waiting": 1800,
    "in_work": 78,
    "dead": 2,
    "oldest_seconds": 185,
    "may_lack_tasks": False,
    "done_an_hour": 4210.5,
    "cost_per_job": 0.000312,
}


def check(name: str, status: str, **more: Any) -> dict[str, Any]:
    values = {"nodes": 1, "node_ids": ["i-0abc"], "value": None, "threshold": None, "detail": "", "todo": ""}
    return {"name": name, "status": status, "actionable": True, **values, **more}


LATENCY = check(
    "latency", "fail", nodes=5, node_ids=["i-1", "i-2", "i-3", "i-4"], value=251.5, threshold=200.0,
    detail="p99 is above the limit", todo="look at the log of the server",
)  # fmt: skip
DISK = check("disk", "warn", value=81.0, threshold=80.0, detail="81 % full", todo="delete old files")
HEALTH = [
    {
        "role": "workers",
        "ok": 8,
        "warn": 1,
        "fail": 5,
        "silent": 1,
        "new": 0,
        "draining": 2,
        "checks": [LATENCY, DISK, check("answer", "ok", nodes=8)],
    }
]
REPAIRS = [
    {
        "at": "2026-11-20T15:20:00.000Z",
        "node": "i-1",
        "role": "workers",
        "do": "restart",
        "number": 2,
        "reason": "latency failed 3 times",
    }
]
WITHHELD = [{"role": "workers", "reason": "its work needs 90 nodes, but limits allow 80"}]
