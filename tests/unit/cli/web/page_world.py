"""Runs the page's server with an API in memory, for tests in a browser."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.forecasts import calendar_ahead, group_files
from cli.forecasts.calendar_ahead import Basis
from cli.shared import settings_files
from cli.shared.settings_files import TriedSettings
from cli.web.overview_reader import OverviewReader
from cli.web.page_benchmarks import PageBenchmarks
from cli.web.page_server import PageServer
from cli.web.proxy import HOST
from tests.unit.cli.conftest import FakeApi, event
from tests.unit.cli.living import HEALTH, WITHHELD, WORK
from troop.chaos.facts import Account, Switch
from troop.chaos.units import unit_to_url
from troop.shared import moments

ABOUT = {"deployment": "Troop", "account": "111122223333", "region": "eu-central-1", "local": False}
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
RUN = "20261121-150312-1f0c9b2e"

CALENDARS = {
    "default": {
        "time_zone": "Europe/Vienna",
        "open": "09:00",
        "close": "15:00",
        "country": "AT",
        "freezes": [{"from": "2026-12-14", "to": "2026-12-18", "reason": "Year-end closing"}],
        "extra_dates": [
            {"date": "2026-11-27", "name": "Company outing"},
            {"date": "1st FRI of DEC", "name": "Inventory", "close": "12:00"},
        ],
    },
    "night": {"time_zone": "America/New_York", "open": "01:00", "close": "04:00"},
}


def run(**more: Any) -> dict[str, Any]:
    """Returns a run as in the response of GET /benchmarks."""
    return {
        "run": RUN,
        "name": "cassandra-write",
        "status": "SUCCEEDED",
        "reason": None,
        "at": "2026-11-21T15:03:12.000Z",
        "expires_at": "2026-11-21T19:03:12.000Z",
        "requested_by": "arn:aws:iam::111122223333:user/ada",
        "execution": None,
        "closed_at": "2026-11-21T15:20:00.000Z",
        "ended_at": "2026-11-21T15:21:03.000Z",
        "estimate": {"expected": 1.31, "most": 4.4, "currency": "USD", "budget": 5},
        "cost": {"amount": 1.2875, "currency": "USD", "items": [], "unknown": []},
        "size": "study",
        "cells": 2,
        "nodes": 9,
    } | more


def living_fleet(**more: Any) -> dict[str, Any]:
    """Returns a fleet whose nodes report, and that has a queue, as in GET /fleets."""
    role = {"role": "workers", "desired": 15, "in_service": 15, "ready": 15, "failed": 0, "starting": 0, "leaving": 0}
    fields = {key: value for key, value in run(status="RUNNING", ended_at=None, cost=None).items() if key != "run"}
    life = {"health": HEALTH, "work": WORK, "repaired": 3, "withheld": WITHHELD}
    return fields | {"fleet": RUN, "name": "night-workers", "roles": [role]} | life | more


def line(view: dict[str, Any]) -> dict[str, Any]:
    """Returns a run's line as in the response of GET /benchmarks/history. A view can have the ``baseline`` of its run,
    which did 20,000 operations a second.
    """
    baseline = view.get("baseline", {})
    run = {key: view["run"][key] for key in ("run", "name", "at", "size", "status")}
    figures: dict[tuple[str, ...], list[list[float | None]]] = {}
    for cell in view["cells"]:
        for row in cell["results"] or [] if cell["status"] == "SUCCEEDED" else []:
            key = (cell["label"], row["phase"], "", row["role"], row["operation"])
            values = [row["per_second"], *(row[f"{name}_ms"] for name in ("mean", "p50", "p99")), None, 0.0]
            figures.setdefault(key, []).append(values)
    names = ("variant", "phase", "point", "role", "operation")
    return run | {
        "troop": "0.1.0",
        "versions": {},
        "cost": None,
        "baseline": baseline,
        "figures": [
            {
                **dict(zip(names, key, strict=True)),
                "values": values,
                "baseline": [[20_000.0, 1.7, 1.7, 1.7, None, 0.0]] * len(values) if baseline else [],
            }
            for key, values in figures.items()
        ],
    }


def schedule(**more: Any) -> dict[str, Any]:
    """Returns a schedule as in the response of GET /benchmarks/schedules."""
    return {
        "name": "nightly",
        "expression": "rate(1 day)",
        "time_zone": "UTC",
        "benchmark": "cassandra-write",
        "size": "study",
        "expected": 1.31,
        "most": 4.4,
        "currency": "USD",
        "created_at": "2026-11-01T09:00:00.000Z",
        "created_by": "arn:aws:iam::111122223333:user/ada",
        "next_at": "2026-11-24T03:00:00.000Z",
        "last_at": "2026-11-23T03:00:00.000Z",
        "last_run": RUN,
        "last_refusal": None,
    } | more


def cell(number: int, label: str, status: str = "SUCCEEDED", **more: Any) -> dict[str, Any]:
    row = {
        "phase": "write",
        "role": "drivers",
        "operation": "insert",
        "count": 1_250_000 * number,
        "per_second": 20_833.3 * number,
        "errors": {"timeout": 3} if number == 2 else {},
        "bytes_per_second": 21_000_000.0,
        **{
            f"{name}_ms": 1.7 * step * number
            for step, name in enumerate(("mean", "p50", "p90", "p95", "p99", "max"), 1)
        },
    }
    return {
        "cell": f"c{number:03d}",
        "label": label,
        "variant": {"scale": label, "values": {}, "repetition": 1},
        "attempt": 1,
        "status": status,
        "phase": "over" if status == "SUCCEEDED" else "write",
        "steps": [
            {"phase": "launch", "at": "2026-11-21T15:04:00.000Z"},
            {"phase": "over", "at": "2026-11-21T15:19:05.000Z"},
        ],
        "reason": None if status == "SUCCEEDED" else "i-0abc was lost",
        "results": [row] if status == "SUCCEEDED" else None,
        "results_left_out": False,
        "cost": {"amount": 0.64, "currency": "USD", "items": [], "unknown": []},
    } | more


TARGETS = "arn:aws:elasticloadbalancing:eu-central-1:111122223333:targetgroup"


def termination(unit: str, day: str = "2026-11-20", status: str = "RECOVERED", **more: Any) -> dict[str, Any]:
    """Returns an event with everything that GET /events/{id} has of a recovery: it took 65 s, and its alarms were OK.

    A value None leaves the key's value out of the record, as of earlier versions.
    """

    def at(seconds: float) -> str:
        return moments.iso(moments.parse(f"{day}T10:00:00.000Z") + timedelta(seconds=seconds))

    alarms = [{"name": name, "states": [{"at": at(0), "state": "OK"}], "doubt": ""} for name in (f"{unit}-5xx", "slow")]
    return (
        event(unit, day, status)
        | {
            "terminated_at": at(0),
            "recover_by": at(1800),
            "recovered_at": at(65),
            "recovery_seconds": 65.0,
            "recovery_at_least": 61.0,
            "short_at": at(61),
            "launch_failure": "",
            "stages": {
                "noticed": at(2.5),
                "launched": at(4),
                "running": at(21),
                "in_service": at(42),
                "healthy": [{"source": f"{TARGETS}/{unit}-tg/73e2d6bc24d8a067", "at": at(63)}],
            },
            "hypothesis": {"success_alarms": [f"{unit}-5xx", "slow"], "stop_alarms": ["disk"], "recovery_within": 120},
            "settles_at": at(245),
            "verdict": {
                "value": "HELD",
                "why": "the group recovered within 2 minutes, and no success alarm went off",
                "at": at(247),
                "since": at(0),
                "until": at(245),
                "alarms": alarms,
            },
            "abort": None,
        }
        | more
    )


def report_answer(etag: str, moment: str = "2026-11-21T15:21:40.000Z") -> Answer:
    """Returns a response of GET /benchmarks/{run}/report."""
    document = {"run": RUN, "format": "html", "created_at": moment, "etag": etag, "size": 4_096}
    return Answer(302, document, headers={"Location": "https://bucket.example/r"})


def live_answer(*cells: dict[str, Any], seconds: int = 0, **more: Any) -> dict[str, Any]:
    """Returns a response of GET /benchmarks/{run}/live, so many seconds after a merge."""
    at = "2026-11-21T15:10:00.000Z"
    return {
        "run": RUN,
        "status": "RUNNING",
        "state": "measuring" if cells else "waiting",
        "message": "nodes report what they measure" if cells else "nothing is measured yet",
        "now": moments.iso(moments.parse(at) + timedelta(seconds=seconds)),
        "at": at if cells else None,
        "unread": 0,
        "cells": list(cells),
    } | more


FIGURES = {"per_second": 20_000.4, "errors_per_second": 0.2, "p50_ms": 1.7, "p99_ms": 9.3}
CPU = {"reporting": 2, "expected": 3, "cpu_percent": 71.2, "cpu_percent_max": 88.0, "iowait_percent": 3.4}


def live_cell(merges: int = 20, **more: Any) -> dict[str, Any]:
    """Returns a cell of that response. Its history has a gap."""
    end = moments.parse("2026-11-21T15:10:00.000Z")
    history = [
        {
            "at": moments.iso(end - timedelta(seconds=15 * ago + (120 if ago > merges // 2 else 0))),
            "phase": "write",
            "per_second": 20_000.0 + 900 * (ago % 5),
            "errors_per_second": 40.0 * (ago % 3),
            "p50_ms": 1.7,
            "p99_ms": 9.0 + ago % 4,
        }
        for ago in range(merges - 1, -1, -1)
    ]
    operation = {"role": "drivers", "operation": "insert"}
    return {
        "cell": "c001",
        "label": "n6",
        "phase": "write",
        "point": None,
        "is_measured": True,
        "seconds_left": 245.0,
        "warm_up_seconds_left": 0.0,
        "total": FIGURES,
        "operations": [{**FIGURES, **operation}, {**FIGURES, **operation, "operation": "select"}],
        "roles": [{**CPU, "role": "servers", "reporting": 6, "expected": 6}, {**CPU, "role": "drivers"}],
        "history": history,
    } | more


@dataclass
class World(FakeApi):
    """An API that also has benchmarks. ``runs`` by id, as in GET /benchmarks/{run}; ``fleets`` as in GET /fleets;
    ``schedules`` as in GET /benchmarks/schedules; ``live`` as in GET /benchmarks/{run}/live.
    """

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    fleets: list[dict[str, Any]] = field(default_factory=list)
    schedules: list[dict[str, Any]] = field(default_factory=list)
    report: Answer = field(default_factory=lambda: report_answer("1"))
    live: dict[str, Any] = field(default_factory=lambda: live_answer())

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        kind, _, rest = path.partition("/")
        if kind == "switch" and (body or {}).get("halted") is False:
            self.switch.pop("itself", None)
        if kind == "events" and rest and (method, path) not in self.refusals:
            self.calls.append((method, path, dict(query or {})))
            matches = [event for event in self.events if event["id"] == rest]
            return Answer(200, matches[0]) if matches else Answer(404, {"statusCode": 404, "message": "no such event"})
        if (kind, rest) == ("fleets", "") and (method, path) not in self.refusals:
            self.calls.append((method, path, dict(query or {})))
            return self._page("fleets", self.fleets, query or {})
        if kind != "benchmarks" or rest == "estimate" or (method, path) in self.refusals:
            return super().request(method, path, query, body)
        self.calls.append((method, path, dict(body or query or {})))
        if not rest:
            return self._page("runs", [document["run"] for document in self.runs.values()], query or {})
        if rest == "history":
            return self._page("lines", [line(one) for one in self._ended((query or {})["name"])], query or {})
        if rest == "schedules":
            listed = {"schedules": self.schedules, "off": False, "month": "2026-11", "cost": 4.4, "budget": None}
            return Answer(200, listed)
        if rest.endswith("/report"):
            receipt = {"run": RUN, "requested_at": "2026-11-22T09:00:00.000Z"}
            return self.report if method == "GET" else Answer(202, receipt)
        if rest.endswith("/live"):
            return Answer(200, self.live)
        if rest not in self.runs:
            return Answer(404, {"statusCode": 404, "message": f"there is no run {rest}", "code": "no-such-run"})
        if method == "DELETE":
            self.runs[rest]["run"]["status"] = "STOPPING"
            return Answer(202, self.runs[rest]["run"])
        return Answer(200, self.runs[rest])

    def _ended(self, name: str) -> list[dict[str, Any]]:
        """Returns the runs of a benchmark that have results, newest first."""
        every = [one for one in self.runs.values() if one["run"]["name"] == name]
        ended = [one for one in every if one["run"]["status"] in ("SUCCEEDED", "PARTIAL") and one["run"]["ended_at"]]
        return sorted(ended, key=lambda one: str(one["run"]["at"]), reverse=True)

    def _row(self, unit: str, number: int) -> dict[str, Any]:
        row, item = super()._row(unit, number), self.units[unit]["item"]
        sources = dict.fromkeys(("takes_part", "probability", "min_healthy", "calendar", "method"), "settings")
        if "opt_out" in item:
            sources["takes_part"] = "item"
        strength = {"in_service": self.units[unit].get("in_service", 3), "left_for": self.units[unit]["left_for"]}
        return row | strength | {"id": unit_to_url(unit), "sources": sources}


@lru_cache
def _deployed(names: tuple[str, ...]) -> tuple[TriedSettings, Account]:
    settings = {"calendars": CALENDARS, "probability": 0.35, "leashed": True, "max_per_day": 50}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file.json"
        file.write_text(json.dumps(settings))
        tried = settings_files.load(file)
        file.write_text(json.dumps([{"name": name, "desired": 4} for name in names]))
        return tried, group_files.load(file).account(tried.chaos)


class Ahead:
    """A forecast from a fixed moment, with groups of a file."""

    def __init__(self, world: FakeApi, *names: str) -> None:
        self.settings, self.account = _deployed(names)
        self.world, self.salt, self.forgotten = world, b"salt", 0

    def __call__(self, weeks: int, *, unleashed: bool) -> Mapping[str, Any]:
        return calendar_ahead.document(self.basis(), NOW, weeks, unleashed=unleashed)

    def now(self) -> datetime:
        return NOW

    def basis(self) -> Basis:
        switch = Switch(halted=self.world.switch["halted"], leashed=self.world.switch["leashed"])
        return Basis(replace(self.account, switch=switch), self.settings, self.salt, "you may not read it")

    def forget(self) -> None:
        self.forgotten += 1


def page_server(
    world: FakeApi,
    ahead: Ahead,
    log: list[str],
    fetch: Callable[[str], bytes] | None = None,
    port: int = 0,
    host: str = HOST,
) -> PageServer:
    client = TroopClient(
        world, "arn:aws:execute-api:eu-central-1:111122223333:abc123/v1", "Troop", sleep=lambda _: None
    )
    overview = OverviewReader(client, lambda: ahead.settings, ahead.basis)
    benchmarks = PageBenchmarks(client.benchmarks, lambda: None, lambda: NOW)
    return PageServer(client, ABOUT, ahead, overview, benchmarks, port, log.append, fetch, host)
