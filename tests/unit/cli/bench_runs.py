"""What the API says of a benchmark's run, for tests of `troop bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.client.api import Answer

if TYPE_CHECKING:  # it imports this
    from tests.unit.cli.conftest import FakeApi

ID = "20261120-150000-1f0c9b2e"
ONE = ("GET", f"benchmarks/{ID}")
START = ("POST", "benchmarks")
ESTIMATE = ("POST", "benchmarks/estimate")

TEXT = """\
name: reads
expires_after: 2h
fleets:
  drivers:
    count: 2
    instance_type: c7g.large
phases:
  - name: measure
    roles: [drivers]
    script: read.py
    measured: 5m
    timeout: 10m
parameters:
  threads: 32
sizes:
  smoke: {fleets.drivers.count: 1, parameters.threads: 4}
"""


def run_out(**more: Any) -> dict[str, Any]:
    return {
        "run": ID,
        "name": "reads",
        "status": "ADMITTED",
        "reason": None,
        "at": "2026-11-20T15:00:00.000Z",
        "expires_at": "2026-11-20T17:00:00.000Z",
        "requested_by": "arn:aws:iam::111122223333:user/ada",
        "nodes": 2,
        "execution": "arn",
        "closed_at": None,
        "ended_at": None,
    } | more


ROW = {
    "phase": "measure",
    "role": "drivers",
    "operation": "read",
    "count": 120_000,
    "per_second": 400.0,
    "errors": {"timeout": 3, "http-503": 2},
    "bytes_per_second": 2_200_000.0,
    "mean_ms": 12.34,
    "p50_ms": 11.0,
    "p90_ms": 20.0,
    "p95_ms": 25.0,
    "p99_ms": 101.5,
    "p99_9_ms": 300.0,
    "max_ms": 1234.0,
}  # fmt: skip


def run_document(*steps: str, results: Any = None, gone: bool = True, **run: Any) -> dict[str, Any]:
    """What GET /benchmarks/{run} says: a step a minute."""
    at = [{"phase": step, "at": f"2026-11-20T15:{n:02d}:00.000Z"} for n, step in enumerate(steps)]
    cell = {"cell": "c001", "status": "RUNNING", "phase": "", "steps": at, "reason": None, "results": results}
    moment = "2026-11-20T15:00:01.000Z"
    resource = {"cell": "c001", "kind": "instance", "name": "i-1", "planned_at": moment, "created_at": moment}
    return {
        "run": run_out(**run),
        "cells": [cell],
        "resources": [{**resource, "gone_at": "2026-11-20T15:09:00.000Z" if gone else None}],
    }


ENDED: dict[str, Any] = {"status": "SUCCEEDED", "ended_at": "2026-11-20T15:10:00.000Z"}


def going(api: FakeApi, *answers: dict[str, Any], first: int = 202) -> None:
    """What the API answers: to the request, and then to each look."""
    api.refusals[START] = [Answer(first, run_out())]
    api.refusals[ONE] = [Answer(200, answer) for answer in answers]
