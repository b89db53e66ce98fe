"""The command against an API in memory that answers as the deployed one does."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner, Result

from cli.app import app
from cli.client import connection
from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.client.connection import Connection
from cli.client.deployment import Deployment
from cli.commands import terminate
from cli.shared import context, watching
from cli.web.proxy import Proxy
from tests import serving
from tests.unit.cli.bench_runs import TEXT
from tests.unit.cli.web.proxying import Api as ProxiedApi
from tests.unit.cli.web.proxying import Running
from troop.chaos.api.event_models import EventOut
from troop.chaos.events import Event, in_words
from troop.chaos.outlook import NO_GROUPS, Outlook
from troop.chaos.units import is_unit, unit_to_url
from troop.risks.rules import RULES as TABLE
from troop.shared import moments, zones

ARN = "arn:aws:execute-api:eu-central-1:111122223333:abc123/v1"
SOURCES = ("takes_part", "until", "probability", "reason", "owner")


READ = {"at": "2026-11-20T03:23:00.000Z", "subjects": {"unit": 2, "volume": 1}, "unread": [], "unrecorded": 0}
"""The last reading of the account, as in the response of GET /risks."""


EXEMPTION = {"reason": "moves soon", "until": "2027-03-31", "by": "arn:ada", "at": "2026-11-19T10:00:00.000Z"}


def risk(rule: str, subject: str, severity: str, kind: str = "unit", **more: Any) -> dict[str, Any]:
    """Returns a risk as in the response of GET /risks."""
    return {
        "rule": rule,
        "subject": subject,
        "kind": kind,
        "severity": severity,
        "owner": "",
        "evidence": {"zone": "a"},
        "first_seen": "2026-11-18T03:23:00.000Z",
        "last_seen": "2026-11-20T03:23:00.000Z",
        "gone_since": None,
        "unknown": "",
        "monthly": None,
        "confirmed": None,
        "exemption": None,
    } | more


ESTIMATE: dict[str, Any] = {
    "expected": 0.1234,
    "most": 1.5,
    "currency": "USD",
    "budget": None,
    "billing": "per-second",
    "unknown": [],
    "warnings": [],
    "problems": [],
    "cells": [
        {
            "cell": "c001",
            "label": "",
            "seconds": 600,
            "expected": 0.1234,
            "most": 1.5,
            "items": [
                {
                    "what": "drivers, c7g.large, on-demand",
                    "quantity": 0.333333,
                    "unit": "node-hour",
                    "price": 0.0725,
                    "amount": 0.024167,
                }
            ],
        }
    ],
}


def change(unit: str | None, at: str = "2026-11-20T10:00:00.000Z", **values: Any) -> dict[str, Any]:
    """Returns a change as in GET /changes; ``unit`` is None for the switch, ``values`` has (old, new)."""
    changed = {key: {"old": old, "new": new} for key, (old, new) in values.items()}
    caller = "arn:aws:sts::111122223333:assumed-role/Owners/ada"
    return {"unit": unit, "at": at, "caller": caller, "changes": changed}


def event(unit: str, day: str = "2026-11-20", status: str = "RECOVERED", **more: Any) -> dict[str, Any]:
    return {
        "id": f"{day}~{unit}",
        "event_id": f"{day}#{unit}",
        "unit": unit,
        "day": day,
        "status": status,
        "at": f"{day}T10:00:00.000Z",
        "group": f"{unit}-v1",
        "instance_id": "i-0abc",
        "zone": "eu-central-1a",
        "method": "crash",
        "recovery_seconds": 12.5 if status == "RECOVERED" else None,
        "detail": "",
    } | more


TARGETS = "arn:aws:elasticloadbalancing:eu-central-1:111122223333:targetgroup/web/6d0ecf831eec9f09"


def judged(unit: str = "web", **more: Any) -> dict[str, Any]:
    """Returns an event of this version: it has recovered in about three minutes, and its alarm went off meanwhile."""
    at = "2026-11-20T10:{}.000Z".format
    states = [{"at": at("00:01"), "state": "OK"}, {"at": at("01:30"), "state": "ALARM"}]
    values: dict[str, Any] = {
        "terminated_at": at("00:01"),
        "recovered_at": at("03:11"),
        "recovery_seconds": 190.0,
        "recovery_at_least": 187.0,
        "short_at": at("03:08"),
        "settles_at": at("06:11"),
        "stages": {
            "noticed": at("00:05"),
            "launched": at("00:10"),
            "running": None,
            "in_service": at("01:11"),
            "healthy": [{"source": TARGETS, "at": at("03:11")}, {"source": "classic", "at": None}],
        },
        "hypothesis": {"success_alarms": ["errors"], "stop_alarms": ["latency"], "recovery_within": 300},
        "verdict": {
            "value": "BROKEN",
            "why": "alarm errors went off",
            "at": at("03:14"),
            "since": at("00:01"),
            "until": at("03:14"),
            "alarms": [{"name": "errors", "states": states, "doubt": ""}],
        },
        "abort": {"at": at("01:30"), "alarm": "errors"},
    }
    return event(unit, **{**values, **more})


RULES = [
    {"name": rule.name, "severity": rule.severity.value, "title": rule.title, "remedy": rule.remedy} for rule in TABLE
]


@dataclass
class FakeApi:
    """Units (by name: item, groups, unrecovered), events and decisions (newest first), the switch and health.

    Attributes:
        calls: (method, path, query or body) of every request.
        estimate: what a run would cost.
        refusals: what to answer instead, by (method, path); a list is answered one by one.
    """

    units: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    risks: list[dict[str, Any]] = field(default_factory=list)
    reading: dict[str, Any] | None = None
    switch: dict[str, Any] = field(default_factory=lambda: {"halted": False, "leashed": True})
    checks: list[dict[str, Any]] = field(default_factory=list)
    ticks: dict[str, Any] = field(default_factory=dict)
    time_zones: str | None = zones.VERSION
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    estimate: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(ESTIMATE))
    refusals: dict[tuple[str, str], list[Answer]] = field(default_factory=dict)

    def add(
        self,
        unit: str,
        *,
        groups: int = 1,
        unrecovered: str | None = None,
        left_for: str = "unrecovered",
        protected: str | None = None,
        problem: str = "",
        outlook: Mapping[str, Any] | None = None,
        **item: Any,
    ) -> None:
        self.units[unit] = {
            "item": item,
            "groups": groups,
            "unrecovered": unrecovered,
            "left_for": left_for if unrecovered else None,
            "version": len(item),
            "protected": protected,
            "problems": [problem] if problem else [],
            "outlook": outlook,
        }

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        self.calls.append((method, path, dict(body or query or {})))
        if refusals := self.refusals.get((method, path)):
            return refusals.pop(0) if len(refusals) > 1 else refusals[0]
        if path in ("benchmarks/estimate", "fleets/estimate"):
            return Answer(200, self.estimate)
        kind, _, rest = path.partition("/")
        name = unquote(rest.replace("~", "%"))
        if kind == "events" and rest:
            one = next((e for e in self.events if e["id"] == rest), None)
            return Answer(200, one) if one else Answer(404, {"message": f"there is no event {name!r}"})
        if kind == "events":
            return self._page("events", [e for e in self.events if _matches(e, query or {})], query or {})
        if kind == "changes":
            chosen = dict(query or {})
            unit, since = chosen.get("unit"), chosen.get("since", "")
            matches = [c for c in self.log if unit in (None, c["unit"]) and c["at"] >= since]
            return self._page("changes", [c for c in matches if "switch" not in chosen or c["unit"] is None], chosen)
        if kind == "decisions":
            filters = {key: value for key, value in (query or {}).items() if key in ("unit", "day")}
            matches = [d for d in self.decisions if all(d[key] == value for key, value in filters.items())]
            return self._page("decisions", matches, query or {})
        if kind == "groups" and not rest:
            rows = [self._row(unit, n) for unit, state in self.units.items() for n in range(1, state["groups"] + 1)]
            return self._page("groups", rows, query or {})
        if kind == "groups":
            return self._unit(method, name, dict(body or {}))
        if kind == "policies":
            items = {unit: state["item"] for unit, state in self.units.items() if state["item"]}
            listed = [
                {"unit": unit, "id": unit_to_url(unit) if is_unit(unit) else None, "item": {"unit": unit, **item}}
                for unit, item in items.items()
            ]
            return self._page("policies", listed, query or {})
        if kind == "risks" and method == "GET":
            rows = [one for one in self.risks if (query or {})["gone"] == "true" or not one["gone_since"]]
            page = self._page("risks", rows, query or {})
            return Answer(page.status, {"reading": self.reading, "rules": RULES, **page.body})
        if kind == "risks":
            return Answer(200, {**self.risks[0], **(body or {})})
        if kind == "switch":
            self.switch |= {k: v for k, v in (body or {}).items() if k != "reason"}
            return Answer(200, dict(self.switch))
        grades = [check["status"] for check in self.checks]
        worst = next((grade for grade in ("fail", "warn") if grade in grades), "ok")
        return Answer(200, {"status": worst, "time_zones": self.time_zones, "checks": self.checks, **self.ticks})

    def changes(self) -> list[tuple[str, Any]]:
        """The changes that were asked for: (path, body)."""
        return [(path, body) for method, path, body in self.calls if method == "PATCH"]

    def _page(self, name: str, rows: list[Any], query: Mapping[str, str]) -> Answer:
        start, limit = int(query.get("cursor", 0)), int(query["limit"])
        following = str(start + limit) if start + limit < len(rows) else None
        return Answer(200, {name: rows[start : start + limit], "cursor": following})

    def _unit(self, method: str, name: str, body: dict[str, Any]) -> Answer:
        if method == "PATCH":
            if name not in self.units:
                self.add(name, groups=0)
            stored = self.units[name]
            if body.pop("version", stored["version"]) != stored["version"]:
                return Answer(409, {"statusCode": 409, "message": f"{name} was changed by somebody else"})
            if body.pop("unrecovered", None) is False:
                stored["unrecovered"] = stored["left_for"] = None
            stored["item"] = {k: v for k, v in (stored["item"] | body).items() if v is not None}
            stored["version"] += 1
        if name not in self.units:
            return Answer(404, {"statusCode": 404, "message": f"nothing is known of {name}"})
        state = self.units[name]
        item = state["item"]
        values: dict[str, Any] = {"takes_part": not item.get("opt_out"), "until": None, "probability": 0.2}
        values |= {"min_healthy": 2, "reason": "", "owner": ""}
        values |= {key: item[key] for key in SOURCES if key in item}
        policy = {k: {"value": v, "source": "item" if k in item else "settings"} for k, v in values.items()}
        if {"opt_in", "opt_out"} & item.keys():
            policy["takes_part"]["source"] = policy["until"]["source"] = "item"
        if tag := state["protected"]:
            policy["takes_part"] = {"value": False, "source": f"tag {tag}"}
        elif state["problems"]:
            policy["takes_part"] = {"value": False, "source": "malformed"}
        members = [f"{name}-v{n}" for n in range(1, state["groups"] + 1)]
        return Answer(
            200,
            {
                "unit": name,
                "id": name,
                "known": bool(state["groups"]),
                "groups": [{"group": g, "desired": 3, "protected": state["protected"]} for g in members],
                "policy": policy,
                "problems": state["problems"],
                "missing_alarms": [a for a in item.get("stop_alarms") or () if a.startswith("no")],
                "version": state["version"],
                "item": {"unit": name, "schema": 1, **item} if item else {},
                "unrecovered": state["unrecovered"],
                "left_for": state["left_for"],
                "last_day": None,
                "outlook": self._outlook(name),
                "next_possible": self._outlook(name)["next_possible"],
                "decision": {"tick": "2026-11-20T10:00:00.000Z", "reason": "not-rolled", "detail": "0.9 >= 0.2"},
                "events": [e for e in self.events if e["unit"] == name][:5],
                "changes": [
                    {
                        "at": "2026-11-19T10:00:00.000Z",
                        "caller": "arn:aws:iam::111122223333:user/ada",
                        "changes": {"owner": {"old": None, "new": "ada"}},
                    }
                ],
            },
        )

    def _row(self, unit: str, number: int) -> dict[str, Any]:
        state = self.units[unit]
        problems = state["problems"] if number == 1 else []  # of the tags of its first group
        return {
            "group": f"{unit}-v{number}",
            "unit": unit,
            "takes_part": not state["item"].get("opt_out") and not state["protected"] and not problems,
            "protected": state["protected"],
            "probability": 0.2,
            "min_healthy": 2,
            "calendar": "default",
            "method": "crash",
            "owner": state["item"].get("owner", ""),
            "reason": state["item"].get("reason", ""),
            "until": state["item"].get("until"),
            "sources": {},
            "problems": problems,
            "desired": 3,
            "in_service": 3,
            "unrecovered": state["unrecovered"],
            "last_day": None,
            "outlook": self._outlook(unit),
        }

    def _outlook(self, unit: str) -> dict[str, Any]:
        """As the API computes it, of what a test can set; or what the test gives."""
        state = self.units[unit]
        if state["outlook"]:
            return dict(state["outlook"])
        item = state["item"]
        until, because = (
            f"{word}{item[key]}" if item.get(key) else "" for key, word in (("until", " until "), ("reason", ": "))
        )
        lasting = {
            "protected": state["protected"] and f"{unit}-v1 is tagged {state['protected']}",
            "malformed": "; ".join(state["problems"]),
            "opted-out": item.get("opt_out") and f"opted out by item{until}{because}",
            "unrecovered": state["unrecovered"] and f"did not recover from {in_words(state['unrecovered'])}",
            NO_GROUPS: not state["groups"] and "no Auto Scaling group belongs to it",
        }
        reason = next((reason for reason, detail in lasting.items() if detail), None)
        possible = None if reason else datetime(2026, 11, 23, 14, tzinfo=UTC)
        one = Outlook(reason is None, reason, str(lasting.get(reason or "", "")), possible)
        return {
            "state": one.state,
            "takes_part": one.takes_part,
            "reason": one.reason,
            "why": one.why,
            "next_possible": moments.iso(possible) if possible else None,
        }


def _matches(event: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    filters = {key: value for key, value in query.items() if key in ("unit", "group", "status")}
    judged = query.get("verdict") in (None, (event.get("verdict") or {}).get("value"))
    inside = query.get("since", "") <= event["at"] < query.get("until", "9")
    return judged and inside and all(event[key] == value for key, value in filters.items())


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between two looks."""
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(terminate, "_POLL_SECONDS", 0.0)


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person presses Ctrl-C in the first pause."""

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupt)


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def client(api: FakeApi) -> TroopClient:
    where = "Troop in account 111122223333, region eu-central-1"
    return TroopClient(api, ARN, where, sleep=lambda _: None, tell=connection.distinct_notes())


Run = Callable[..., Result]


@pytest.fixture
def run(client: TroopClient, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command: words, and ``typed`` for what a person types (None: nobody is there)."""
    deployment = Deployment("Troop", "eu-central-1", "111122223333", {"ApiUrl": "https://api/v1/"}, ARN)
    monkeypatch.setattr(connection, "connect", lambda options: Connection(deployment, client))
    monkeypatch.setenv("TZ", "UTC")

    def run(*words: str, typed: str | None = None) -> Result:
        monkeypatch.setattr(context, "interactive", lambda: typed is not None)
        return CliRunner().invoke(app, list(words), input=typed)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A benchmark's, with its script beside it."""
    (tmp_path / "read.py").write_text("print()\n")
    (tmp_path / "benchmark.yaml").write_text(TEXT)
    return tmp_path / "benchmark.yaml"


@pytest.fixture
def ok(run: Run) -> Callable[..., Any]:
    """Runs the command with --json, which must succeed: the document it prints."""

    def ok(*words: str) -> Any:
        result = run(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return ok


@pytest.fixture
def running() -> Iterator[Running]:
    api, log = ProxiedApi(), list[str]()
    with serving.running(Proxy(api, 0, log.append)) as proxy:
        yield Running(proxy, api, log)


def answered(stored: Event) -> dict[str, Any]:
    """Returns a stored event as GET /events/{id} answers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("troop.shared.wiring.environment.recovery_timeout", lambda: timedelta(minutes=30))
        document: dict[str, Any] = EventOut.from_event(stored).model_dump(mode="json")
    return document
