"""The reader of groups: once for all views, page by page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.shared.errors import CliError
from cli.web import groups_reader
from cli.web.groups_reader import GroupsReader
from tests.patience import PATIENCE
from tests.unit.cli.conftest import FakeApi

PAGE = 50


@dataclass
class Desk:
    """A reader at a settable moment, with an API that can hold back pages."""

    reader: GroupsReader
    api: FakeApi
    at: datetime = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
    held: dict[str, threading.Event] = field(default_factory=dict)

    def pages(self) -> list[str]:
        """Lists where the pages begin that were read."""
        return [query.get("cursor", "0") for _, path, query in self.api.calls if path == "groups"]

    def all(self, reading: str = "", known: int = 0) -> list[dict[str, Any]]:
        """Returns what a view gets that asks until there are no more."""
        rows: list[dict[str, Any]] = []
        while True:
            answer = self.reader.after(known, reading)
            if answer["reading"] != reading:
                rows, known = [], 0
            rows += answer["groups"]
            reading, known = answer["reading"], known + len(answer["groups"])
            if not answer["more"]:
                return rows


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    api = FakeApi()
    for number in range(3 * PAGE + 1):
        api.add(f"unit-{number:03d}")
    client = TroopClient(api, "arn", "Troop", sleep=lambda _: None)
    desk = Desk(GroupsReader(client), api)
    desk.reader.now = lambda: desk.at
    request: Callable[..., Answer] = api.request

    def held(method: str, path: str, query: Any = None, body: Any = None) -> Answer:
        if hold := desk.held.get((query or {}).get("cursor", "0")):
            hold.wait(PATIENCE)
        return request(method, path, query, body)

    monkeypatch.setattr(api, "request", held)
    return desk


def test_all_views_together_read_each_page_once(desk: Desk) -> None:
    with ThreadPoolExecutor() as pool:
        views = [pool.submit(desk.all), pool.submit(desk.all), pool.submit(desk.reader.first, 1000)]
        answers = [[row["unit"] for row in view.result(PATIENCE)] for view in views]
    assert answers[0] == answers[1] == answers[2] == [f"unit-{n:03d}" for n in range(3 * PAGE + 1)]
    assert len(desk.reader.first(10)) == 10
    assert desk.pages() == ["0", "50", "100", "150"]


def test_the_first_page_does_not_wait_for_the_others(desk: Desk) -> None:
    desk.held["50"] = threading.Event()
    answer = desk.reader.after(0)
    assert (len(answer["groups"]), answer["more"], answer["at"]) == (PAGE, True, "2026-11-23T12:00:00.000Z")
    desk.held["50"].set()
    assert len(desk.all(answer["reading"], PAGE)) == 2 * PAGE + 1


def test_a_change_and_a_minute_cause_another_reading(desk: Desk) -> None:
    before = desk.reader.after(0)["reading"]
    assert len(desk.all()) == 3 * PAGE + 1
    desk.at += timedelta(seconds=60)
    assert desk.reader.after(0)["reading"] == before
    desk.reader.forget()
    changed = desk.reader.after(PAGE, before)
    assert changed["reading"] != before
    assert changed["groups"][0]["unit"] == "unit-000"  # the groups that the caller has are of another reading
    desk.all()
    desk.at += timedelta(seconds=61)
    last = desk.reader.after(0)
    assert last["at"] == "2026-11-23T12:02:01.000Z"
    assert desk.reader.after(0, fresh=True)["reading"] != last["reading"]


def test_more_than_one_step_is_read_when_somebody_asks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_reader, "STEP", PAGE)
    answer = desk.reader.after(0)
    assert desk.pages() == ["0"]
    desk.at += timedelta(minutes=9)
    following = desk.reader.after(PAGE, answer["reading"])  # however old: the list goes on where it ended
    assert (following["reading"], following["groups"][0]["unit"]) == (answer["reading"], "unit-050")
    assert desk.pages() == ["0", "50"]


def test_view_after_an_error_reads_again(desk: Desk) -> None:
    broken = Answer(400, {"statusCode": 400, "message": "cursor has expired: start again without it"})
    desk.held["50"] = threading.Event()
    answer = desk.reader.after(0)
    desk.api.refusals["GET", "groups"] = [broken]
    desk.held["50"].set()
    with pytest.raises(CliError, match="cursor has expired"):
        desk.all(answer["reading"], PAGE)
    with pytest.raises(CliError, match="cursor has expired"):
        desk.reader.first(PAGE)
    del desk.api.refusals["GET", "groups"]
    assert len(desk.all(answer["reading"], PAGE)) == 3 * PAGE + 1
