"""GET /events and GET /events/{id}: filters, pages of bounded cost, refusals that say what to do."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from handlers import api
from tests.unit.account.account import FRIDAY, OVERDUE, Account, calls, changing
from tests.unit.account.asking import ask
from tests.unit.chaos.build import (
    EARLIER_ITEM,
    NOT_OVER,
    TARGETS,
    event,
    injected,
    injection,
    judged,
    replaced,
    running,
    still_there,
)
from troop.chaos.aws import event_queries
from troop.chaos.aws.event_items import to_item
from troop.chaos.aws.event_queries import EXAMINED, READS
from troop.chaos.events import Event, Status, to_url
from troop.chaos.injection import EndRequest
from troop.chaos.replacements import Build, Replacement
from troop.chaos.verdict import VerdictValue
from troop.shared.api import cursors


def _event(number: int, unit: str = "web", status: Status = Status.RECOVERED, **more: Any) -> Event:
    values: dict[str, Any] = {
        "event_id": f"{FRIDAY}#{unit}{number:05d}",
        "unit": unit,
        "day": FRIDAY,
        "status": status,
        "at": OVERDUE + timedelta(minutes=number),
        "group": unit,
        "instance_id": f"i-{number:017x}",
        "terminated_at": OVERDUE + timedelta(minutes=number),
    }
    return event(**(values | more))


def _put(account: Account, *events: Event) -> None:
    for start in range(0, len(events), 25):
        requests = [{"PutRequest": {"Item": to_item(e)}} for e in events[start : start + 25]]
        account.dynamodb.batch_write_item(RequestItems={"Events": requests})


def _get(path: str, **query: Any) -> tuple[int, Any]:
    return ask("GET", path, **query)


def _numbers(body: Any) -> list[int]:
    return [int(e["instance_id"].removeprefix("i-"), 16) for e in body["events"]]


def test_newest_first_with_everything_a_reader_needs(account: Account) -> None:
    build, after = Build("lt-1:3", "c7g.large", "ami-1"), Replacement("i-2", Build("lt-1:3", "c7g.large", "ami-2"))
    recovered_at = OVERDUE + timedelta(minutes=1, seconds=42)
    _put(account, _event(0), _event(1, owner="team-web", recovered_at=recovered_at, build=build, replacement=after))
    status, body = _get("/events")
    assert status == 200
    assert _numbers(body) == [1, 0]
    assert body["cursor"] is None
    assert body["events"][0] == {
        "id": "2026-11-20~web00001",
        "event_id": "2026-11-20#web00001",
        "unit": "web",
        "owner": "team-web",
        "day": "2026-11-20",
        "status": "RECOVERED",
        "at": "2026-11-20T22:47:00.000Z",
        "group": "web",
        "instance_id": "i-00000000000000001",
        "zone": "us-west-2a",
        "method": "crash",
        "fault": "crash",
        "rolled": 0.1,
        "probability": 0.2,
        "desired": 3,
        "execution": "arn:execution",
        "deadline": "2026-11-20T20:10:00.000Z",
        "hit_at": "2026-11-20T22:47:00.000Z",
        "terminated_at": "2026-11-20T22:47:00.000Z",
        "recovers_from": "2026-11-20T22:47:00.000Z",
        "recover_by": "2026-11-20T23:17:00.000Z",
        "recovered_at": "2026-11-20T22:47:42.000Z",
        "recovery_seconds": 42.0,
        "recovery_at_least": 0.0,
        "recovery": "recovered in 42 s",
        "short_at": None,
        "stages": None,
        "hypothesis": None,
        "settles_at": None,
        "verdict": None,
        "abort": None,
        "os_shutdown": None,
        "benchmark": "",
        "injection": None,
        "detail": "",
        "launch_failure": "",
        "build": {"template": "lt-1:3", "instance_type": "c7g.large", "image": "ami-1"},
        "replacement": {
            "instance_id": "i-2",
            "build": {"template": "lt-1:3", "instance_type": "c7g.large", "image": "ami-2"},
            "differences": ["image"],
            "summary": "i-2 has the same template version and type, and another image (ami-2 instead of ami-1)",
        },
    }
    assert (body["events"][1]["build"], body["events"][1]["replacement"]) == (None, None), "of an earlier version"


def test_an_event_tells_its_stages_its_verdict_and_what_led_to_it(account: Account) -> None:
    _put(account, judged())
    status, body = _get(f"/events/{to_url('2026-11-20#web')}")
    assert status == 200
    assert (body["short_at"], body["recovered_at"]) == ("2026-11-20T20:03:08.000Z", "2026-11-20T20:03:12.000Z")
    assert (body["recovery_at_least"], body["recovery_seconds"]) == (186.0, 190.0)
    assert body["stages"] == {
        "noticed": "2026-11-20T20:00:06.000Z",
        "launched": "2026-11-20T20:00:11.000Z",
        "running": None,
        "in_service": "2026-11-20T20:01:12.000Z",
        "healthy": [
            {"source": TARGETS, "at": "2026-11-20T20:03:12.000Z"},
            {"source": "web-classic", "at": None},
        ],
    }
    assert body["hypothesis"] == {
        "success_alarms": ["web-errors"],
        "stop_alarms": ["web-latency"],
        "recovery_within": 300,
    }
    assert body["verdict"] == {
        "value": "BROKEN",
        "why": "web-errors was in ALARM from 20:01:30 to 20:02:30 UTC",
        "at": "2026-11-20T20:03:15.000Z",
        "since": "2026-11-20T20:00:02.000Z",
        "until": "2026-11-20T20:06:12.000Z",
        "alarms": [
            {
                "name": "web-errors",
                "states": [
                    {"at": "2026-11-20T20:00:02.000Z", "state": "OK"},
                    {"at": "2026-11-20T20:01:30.000Z", "state": "ALARM"},
                    {"at": "2026-11-20T20:02:30.000Z", "state": "OK"},
                ],
                "doubt": "",
            }
        ],
    }
    assert body["settles_at"] == "2026-11-20T20:06:12.000Z"
    assert body["abort"] == {"at": "2026-11-20T20:01:30.000Z", "alarm": "web-errors"}


def test_a_lasting_fault_tells_its_probes_its_command_and_its_proof(account: Account) -> None:
    _put(account, injected())
    body = _get(f"/events/{to_url('2026-11-20#web')}")[1]
    assert (body["method"], body["status"], body["terminated_at"]) == ("latency", "RECOVERED", None)
    assert (body["hit_at"], body["recovers_from"]) == ("2026-11-20T20:00:05.000Z", "2026-11-20T20:01:11.000Z")
    assert (body["recovery_seconds"], body["recover_by"]) == (3.0, "2026-11-20T20:31:11.000Z")
    assert body["recovery"] == "was whole when latency was over"
    record = body["injection"]
    clean = {"boot": "b007" * 9, "qdiscs": 0, "drops": 0, "stress": 0, "rollbacks": 0, "hosts": 0}
    clean |= {"used": 41.0, "running": None, "missing": []}
    assert record["before"] == {
        "sent_at": "2026-11-20T20:00:01.000Z",
        "answered_at": "2026-11-20T20:00:04.000Z",
        "reading": clean,
        "failure": "",
    }
    assert record["after"]["reading"] == clean
    assert (record["parameters"]["delay"], record["seconds"], record["ends_by"]) == (
        "200",
        60,
        "2026-11-20T20:01:35.000Z",
    )
    assert (record["command_status"], record["over_at"]) == ("Success", "2026-11-20T20:01:08.000Z")
    assert (record["presence"], record["finding"]) == ("GONE", "a probe found no trace of it")
    proof = {"by": "probe", "at": "2026-11-20T20:01:11.000Z", "why": "a probe found no trace of it"}
    assert (record["proof"], record["end_request"], record["unproven"]) == (proof, None, "")


def test_a_lasting_fault_that_runs_is_not_proven_to_be_over(account: Account) -> None:
    request = EndRequest(OVERDUE, "chaos was halted")
    _put(account, running(injection=injection(end_request=request, unproven="the instance is protected", **NOT_OVER)))
    (body,) = _get("/events", status="RUNNING")[1]["events"]
    assert (body["recovers_from"], body["recover_by"], body["recovery_seconds"]) == (None, None, None)
    assert body["injection"]["presence"] == "UNKNOWN"
    assert body["injection"]["end_request"] == {"at": "2026-11-20T22:46:00.000Z", "why": "chaos was halted"}
    assert (body["injection"]["unproven"], body["injection"]["proof"]) == ("the instance is protected", None)


def test_an_instance_that_was_replaced_recovers_from_its_termination(account: Account) -> None:
    _put(account, replaced(injection=still_there(packages=("jq",))))
    body = _get(f"/events/{to_url('2026-11-20#web')}")[1]
    assert body["recovers_from"] == body["terminated_at"] == "2026-11-20T20:02:45.000Z"
    assert body["injection"]["presence"] == "PRESENT"
    assert body["injection"]["finding"] == "a probe found qdiscs 1, before 0, rollbacks 2, before 0"
    assert (body["injection"]["proof"]["by"], body["injection"]["packages"]) == ("replaced", ["jq"])


def test_an_item_of_an_earlier_version_has_neither_stages_nor_a_verdict(account: Account) -> None:
    account.put("Events", dict(EARLIER_ITEM))
    status, body = _get("/events")
    assert (status, body["malformed"]) == (200, [])
    (one,) = body["events"]
    assert (one["recovery_seconds"], one["recovery_at_least"]) == (72.0, 0.0)
    assert {one[key] for key in ("stages", "hypothesis", "verdict", "settles_at", "abort", "short_at")} == {None}
    assert _get(f"/events/{one['id']}") == (200, one)
    assert _get("/groups/old")[1]["events"] == [one]


def test_an_empty_table_is_an_empty_page(account: Account) -> None:
    assert _get("/events") == (200, {"events": [], "malformed": [], "cursor": None})


def test_filters(account: Account) -> None:
    events = [
        _event(n, "web" if n % 2 else "db", Status.UNRECOVERED if n % 3 == 0 else Status.RECOVERED) for n in range(12)
    ]
    _put(account, *events)

    def numbers(**query: Any) -> list[int]:
        status, body = _get("/events", **query)
        assert status == 200, body
        return _numbers(body)

    assert numbers(unit="web") == [11, 9, 7, 5, 3, 1]
    assert numbers(status="UNRECOVERED") == [9, 6, 3, 0]
    assert numbers(unit="web", status="UNRECOVERED") == [9, 3]
    assert numbers(since="2026-11-20T22:50:00Z", until="2026-11-20T22:53:00Z") == [6, 5, 4]
    assert numbers(since="2026-11-20T14:50:00-08:00", unit="db", limit=2) == [10, 8]
    assert numbers(since="2026-11-20T22:50:00Z", until="2026-11-20T22:50:00Z") == []
    assert numbers(unit="nobody") == []


def test_events_by_their_verdict(account: Account) -> None:
    verdict = judged().verdict
    assert verdict
    held = replace(verdict, value=VerdictValue.HELD)
    _put(account, _event(0, verdict=held), _event(1, verdict=verdict), _event(2), _event(3, "db", verdict=verdict))

    def numbers(**query: Any) -> list[int]:
        return _numbers(_get("/events", **query)[1])

    assert numbers(verdict="BROKEN") == [3, 1]
    assert numbers(verdict="BROKEN", unit="db", status="RECOVERED") == [3]
    assert numbers(verdict="HELD") == [0]
    assert numbers(verdict="UNKNOWN") == []
    assert _get("/events", verdict="broken")[0] == 400


def test_events_of_a_group_whatever_its_unit(account: Account) -> None:
    _put(account, *(_event(n, group="web-v1" if n % 2 else "web-v2") for n in range(6)), _event(6, "db"))

    def numbers(**query: Any) -> list[int]:
        return _numbers(_get("/events", **query)[1])

    assert numbers(group="web-v1") == [5, 3, 1]
    assert numbers(group="web-v1", unit="web", status="RECOVERED", limit=1) == [5]
    assert numbers(group="web-v1", unit="db") == []
    assert numbers(group="web-v1", status="UNRECOVERED") == []
    _, first = _get("/events", group="web-v2", limit=2)
    assert _numbers(first) == [4, 2]
    assert numbers(group="web-v2", limit=2, cursor=first["cursor"]) == [0]
    assert _get("/events", group="web-v1", cursor=first["cursor"])[0] == 400


def test_a_page_of_large_events_is_one_query(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """DynamoDB ends a query after 1 MB, here earlier; four times as much JSON is more than Lambda accepts."""
    monkeypatch.setattr("moto.dynamodb.models.table.RESULT_SIZE_LIMIT", 3000)
    _put(account, *(_event(n, verdict=judged().verdict) for n in range(12)))
    for query in ({}, {"status": "RECOVERED"}):
        seen: list[int] = []
        cursor: dict[str, str] = {}
        while not seen or cursor:
            with calls(monkeypatch) as operations:
                _, body = _get("/events", limit=100, **query, **cursor)
            assert operations == ["Query"]
            seen += _numbers(body)
            cursor = {"cursor": body["cursor"]} if body["cursor"] else {}
        assert seen == list(range(11, -1, -1))


def test_pages_join_into_the_whole_whatever_their_size(account: Account) -> None:
    # Three events of the same moment, so that a page can end between them.
    events = [_event(n, at=OVERDUE + timedelta(minutes=n // 3)) for n in range(20)]
    _put(account, *events)
    whole = _numbers(_get("/events")[1])
    assert sorted(whole) == list(range(20))
    for size in (1, 3, 7, 20):
        seen: list[int] = []
        cursor = None
        while True:
            status, body = _get("/events", limit=size, **({"cursor": cursor} if cursor else {}))
            assert status == 200
            assert len(body["events"]) <= size
            seen += _numbers(body)
            if not (cursor := body["cursor"]):
                break
        assert seen == whole, size


def test_events_that_come_while_a_reader_pages_shift_nothing(account: Account) -> None:
    _put(account, *[_event(n) for n in range(4)])
    first = _get("/events", limit=2)[1]
    _put(account, _event(9))
    assert _numbers(first) + _numbers(_get("/events", limit=2, cursor=first["cursor"])[1]) == [3, 2, 1, 0]


def test_a_page_reads_a_bounded_number_however_rare_the_status(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_queries, "EXAMINED", 20)
    total = READS * 20 + 15
    _put(account, _event(0, status=Status.UNRECOVERED), *[_event(n) for n in range(1, total)])
    examined: list[int] = []
    assert EXAMINED == 250
    count = changing("Query", lambda answer: examined.append(answer["ScannedCount"]))
    with calls(monkeypatch, count) as operations:
        status, body = _get("/events", status="UNRECOVERED", limit=1)
    assert (status, body["events"]) == (200, [])
    assert body["cursor"], "an empty page that is not the last"
    assert operations == ["Query"] * READS
    assert examined == [20] * READS
    body = _get("/events", status="UNRECOVERED", limit=1, cursor=body["cursor"])[1]
    assert _numbers(body) == [0]

    examined.clear()
    with calls(monkeypatch, count) as operations:
        assert len(_get("/events", limit=15)[1]["events"]) == 15
    assert (operations, examined) == (["Query"], [15])


def test_cursors_are_opaque_and_bound_to_their_listing(account: Account) -> None:
    _put(account, *[_event(n) for n in range(3)])
    cursor = _get("/events", limit=1, unit="web")[1]["cursor"]
    assert "web" not in cursor
    assert _numbers(_get("/events", limit=2, unit="web", cursor=cursor)[1]) == [1, 0]
    status, body = _get("/events", limit=1, cursor=cursor)
    assert status == 400
    assert body["message"] == "cursor belongs to a listing with other parameters: repeat those, or start without it"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"limit": 0}, ["limit", "must be at least 1"]),
        ({"limit": 101}, ["limit", "must be at most 100"]),
        ({"limit": "many"}, ["limit", "is 'many', must be a whole number"]),
        ({"status": "DEAD"}, ["status", "'LEASHED'", "'ABANDONED'"]),
        ({"since": "yesterday"}, ["since", "valid datetime"]),
        ({"since": "2026-11-20T22:50:00"}, ["since", "timezone"]),
        ({"since": "0001-01-01T00:00:00+14:00"}, ["query.since: is out of range", "between the years 1 and 9999"]),
        ({"unit": ""}, ["unit", "at least 1 character"]),
        ({"unit": "x" * 256}, ["unit", "at most 255 characters"]),
        ({"since": "2026-11-21T00:00:00Z", "until": "2026-11-20T00:00:00Z"}, ["until is before since", "swap"]),
        ({"cursor": "no"}, ["cursor does not come from this API", "start again without it"]),
        ({"cursor": "ä"}, ["cursor does not come from this API"]),
        ({"cursor": "x" * 1025}, ["cursor", "at most 1024 characters"]),
    ],
)
def test_refusals_say_what_to_do(account: Account, query: dict[str, Any], words: list[str]) -> None:
    status, body = _get("/events", **query)
    assert status == 400, body
    assert body["statusCode"] == 400
    for word in words:
        assert word in body["message"]


@pytest.mark.parametrize("position", ["9999-99", "2026-11-20T22:46:00.000Z", "#x", "2026-11-20T22:46:00.000Z#", "\x00"])
def test_a_forged_cursor_is_refused(account: Account, position: str) -> None:
    """DynamoDB would answer a start outside the range with an error of its own."""
    _put(account, _event(0), _event(1))
    real = base64.urlsafe_b64decode(_get("/events", limit=1)[1]["cursor"] + "==")
    digest = real[: real.index(b"2026-")]
    forged = base64.urlsafe_b64encode(digest + position.encode()).decode().rstrip("=")
    status, body = _get("/events", cursor=forged)
    assert (status, body["message"]) == (400, cursors.UNKNOWN)


@pytest.mark.parametrize("unit", ["web", "web/api v1", "ünïcode~%#?", "a" * 255])
def test_one_event_by_the_id_the_listing_gives(account: Account, unit: str) -> None:
    stored = _event(0, unit, event_id=f"{FRIDAY}#{unit}")
    _put(account, stored)
    (listed,) = _get("/events")[1]["events"]
    assert listed["id"] == to_url(stored.event_id)
    assert _get(f"/events/{listed['id']}") == (200, listed)


@pytest.mark.parametrize("segment", ["2026-11-20~nobody", "nonsense", "~", "%23", "x" * 1000, "~FF~FF"])
def test_unknown_event_is_a_404_that_names_the_list(account: Account, segment: str) -> None:
    status, body = _get(f"/events/{segment}")
    assert status == 404
    assert body["message"].endswith("GET /events lists the events")


@pytest.mark.parametrize("path", ["/other", "/events/a/b", "/groups/\x9b", '/events/"', "/"])
def test_other_paths_are_a_404_that_explains_the_spelling(account: Account, path: str) -> None:
    status, body = _get(path)
    assert (status, body["message"]) == (404, api.NO_ROUTE)


def test_events_of_any_day_sort_by_time(account: Account) -> None:
    old = _event(1, event_id="2025-01-02#web", day=date(2025, 1, 2), at=OVERDUE - timedelta(days=687))
    _put(account, _event(0), old)
    assert _numbers(_get("/events")[1]) == [0, 1]
