"""`troop risks` and `troop exempt`: which risks people see, what they cost, and who accepts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cli.shared.errors import Exit
from tests.unit.cli.conftest import EXEMPTION, READ, FakeApi, Run, risk

VOLUME = risk("unattached-volume", "vol-1", "low", "volume", monthly={"amount": 8.8, "currency": "USD"})
ADDRESS = risk("unused-address", "eipalloc-1", "low", "address")
TEMPLATE = risk("unused-template", "lt-1", "low", "launch template")
ALONE = risk("one-zone", "web", "high", owner="shop", confirmed="2026-11-19#web")
ACCEPTED = risk("no-alarm", "db", "medium", exemption=EXEMPTION)
GONE = risk("no-room", "web", "medium", gone_since="2026-11-19T03:23:00.000Z")


@pytest.fixture
def risks(api: FakeApi) -> FakeApi:
    api.risks, api.reading = [VOLUME, ADDRESS, TEMPLATE, ACCEPTED, GONE, ALONE], READ
    return api


def subjects(document: Any) -> list[str]:
    return [one["subject"] for one in document["risks"]]


def test_the_worst_risks_come_first_and_exempt_ones_are_hidden(ok: Callable[..., Any], risks: FakeApi) -> None:
    assert subjects(ok("risks")) == ["web", "vol-1", "eipalloc-1", "lt-1"]
    assert subjects(ok("risks", "--exempt", "--gone")) == ["web", "db", "vol-1", "eipalloc-1", "lt-1", "web"]
    assert ok("risks")["reading"] == READ


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--severity", "high"], ["web"]),
        (["--owner", "SHOP"], ["web"]),
        (["--unit", "web"], ["web"]),
        (["--unit", "vol-1"], []),
        (["--rule", "unattached-volume"], ["vol-1"]),
        (["--sort", "subject"], ["eipalloc-1", "lt-1", "vol-1", "web"]),
    ],
)
def test_filters_choose_risks(ok: Callable[..., Any], risks: FakeApi, words: list[str], expected: list[str]) -> None:
    assert subjects(ok("risks", *words)) == expected


def test_the_table_has_evidence_advice_and_what_leftovers_cost(run: Run, risks: FakeApi) -> None:
    risks.reading = READ | {"unread": ["images could not be read: AccessDenied"], "unrecorded": 3}
    result = run("risks")
    assert "zone: a" in result.stdout
    assert "2026-11-19#web" in result.stdout
    assert "one-zone: All groups of the unit are in one availability zone. Give the group subnets" in result.stdout
    lines = result.stderr.splitlines()
    assert lines[0].startswith("read 2026-11-20 03:23:00 UTC: 2 units, 1 volume")
    assert lines[1:] == [
        "not known: images could not be read: AccessDenied",
        "3 more risks not recorded, of the lowest severities",
        "leftovers: at most $8.80 a month",
        "the price of 1 leftover is unknown",
    ]
    prices = {line.split()[2]: line for line in result.stdout.splitlines() if line.startswith("low")}
    assert ("$8.80" in prices["vol-1"], "unknown" in prices["eipalloc-1"]) == (True, True)
    assert "unknown" not in prices["lt-1"]


def test_before_the_first_reading_it_says_when_that_comes(run: Run, api: FakeApi) -> None:
    assert "once a day, at 3:23 UTC" in run("risks").stderr


def test_pages_are_read_to_the_end(ok: Callable[..., Any], api: FakeApi) -> None:
    api.risks, api.reading = [risk("one-zone", f"web-{n:04d}", "high") for n in range(501)], READ
    assert len(ok("risks")["risks"]) == 501
    assert [query.get("cursor") for _, _, query in api.calls] == [None, "500"]


def test_an_exemption_needs_a_reason_and_an_end(run: Run, risks: FakeApi) -> None:
    result = run("exempt", "one-zone", "web", "--until", "2027-03-31", "--reason", "moves soon")
    assert result.stdout == "web: one-zone exempt until 2027-03-31: moves soon\n"
    body = {"rule": "one-zone", "subject": "web", "exemption": {"reason": "moves soon", "until": "2027-03-31"}}
    assert risks.calls == [("PATCH", "risks", body)]
    assert run("exempt", "one-zone", "web", "--end").stdout == "web is no longer exempt from one-zone\n"
    assert risks.calls[1][2] == body | {"exemption": None}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["one-zone", "web", "--reason", "soon"], "needs --until DAY and --reason TEXT"),
        (["one-zone", "web", "--until", "2027-03-31", "--reason", " "], "needs --until DAY and --reason TEXT"),
        (["one-zone", "web", "--until", "soon", "--reason", "soon"], "must be a day"),
        (["one-zone", "web", "--end", "--reason", "soon"], "leave out --until and --reason"),
        (["one-zon", "web", "--end"], "it must be spelled one-zone"),
    ],
)
def test_a_wrong_exemption_asks_nothing_of_the_api(run: Run, api: FakeApi, words: list[str], problem: str) -> None:
    result = run("exempt", *words)
    assert (result.exit_code, api.calls) == (Exit.USAGE, [])
    assert problem in " ".join(result.stderr.split())
