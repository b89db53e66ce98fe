"""`troop report`: the report of a period as one page and a JSON file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.chaos import period_reader
from cli.chaos.period_reader import Reading, outcome_of, units_now
from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.client.connection import Connection
from cli.client.deployment import Deployment
from cli.commands import report
from cli.forecasts import live_account
from cli.shared import aws, settings_files, show, times
from cli.shared.context import Options
from cli.shared.errors import CliError, Exit
from cli.shared.settings_files import TriedSettings
from tests.unit.cli.commands.test_risks import ACCEPTED, ADDRESS, ALONE, GONE, VOLUME
from tests.unit.cli.conftest import READ, FakeApi, Run, event, risk

DECISION_DAYS = report.decision_days
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
RETENTION = 30


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(times, "now", lambda: NOW)
    monkeypatch.setattr(report, "decision_days", lambda *_: RETENTION)
    return tmp_path


def judged(unit: str, day: str, value: str, **more: Any) -> dict[str, Any]:
    return event(unit, day, verdict={"value": value, "why": f"{unit} was {value}"}, settles_at=None) | more


def queries(api: FakeApi, path: str) -> list[dict[str, str]]:
    return [query for _, called, query in api.calls if called == path]


def test_page_and_json_file_have_the_same_numbers(run: Run, api: FakeApi, here: Path) -> None:
    api.add("web", owner="team-web")
    api.add("idle", owner="team-web")
    api.add("out", opt_out=True, reason="migration")
    api.events = [
        judged("web", "2026-11-20", "HELD", owner="team-web", recovery_seconds=80.0),
        judged("web", "2026-11-19", "BROKEN", owner="team-web"),
        event("web", "2026-10-01"),  # of an earlier version
    ]
    result = run("report")
    assert result.exit_code == 0, result.output
    page = here / "troop-report-2026-08-22-2026-11-20.html"
    document = json.loads(page.with_suffix(".json").read_text())
    assert page.name in result.stdout
    assert "3 terminations of 1 unit, 1 HELD, 1 BROKEN, 1 without a verdict" in result.stdout
    assert {key: document["totals"][key] for key in ("terminations", "held", "broken", "unjudged")} == {
        "terminations": 3,
        "held": 1,
        "broken": 1,
        "unjudged": 1,
    }
    assert [one["unit"] for one in document["never_hit"]] == ["idle", "out"]
    assert [(one["unit"], one["why"]) for one in document["opted_out"]] == [("out", "opted out by item: migration")]
    assert [(one["unit"], one["failed"]["day"], one["held"]["day"]) for one in document["mended"]] == [
        ("web", "2026-11-19", "2026-11-20")
    ]
    text = page.read_text()
    for words in (*document["letter"], *document["expired"], "web was BROKEN", "opted out by item: migration"):
        assert words in text
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", text), "the page loads nothing and runs nothing"


def test_risks_of_the_period_are_in_the_document_and_in_the_letter(ok: Callable[..., Any], api: FakeApi) -> None:
    api.risks, api.reading = [ALONE, VOLUME, ACCEPTED, GONE], READ
    document = ok("report", "--from", "2026-11-01", "--to", "2026-11-20")
    assert document["risks"]["holding"] == {"high": 1, "medium": 0, "low": 1}
    assert [one["rule"] for one in document["risks"]["appeared"]] == ["one-zone", "no-room", "unattached-volume"]
    assert [one["rule"] for one in document["risks"]["gone"]] == ["no-room"]
    assert document["letter"][1:] == [
        "Risks: 1 high, 1 low; 3 appeared, 1 gone; 1 exempt. Leftovers cost at most 8.80 USD a month.",
        "Risks of shop; appeared: one-zone of web.",
        "Risks of no owner; appeared: no-room of web, unattached-volume of vol-1; gone: no-room of web.",
    ]
    assert ok("report", "--from", "2026-11-19", "--to", "2026-11-20")["risks"]["appeared"] == []


def test_a_letter_says_what_of_the_risks_is_not_known(ok: Callable[..., Any], api: FakeApi) -> None:
    old = {"at": "2026-11-01T03:23:00.000Z", "unread": ["images could not be read: AccessDenied"], "unrecorded": 3}
    unknown = risk("missing-image", "web", "high", unknown="the image that it launches next is not known")
    api.risks, api.reading = [unknown, VOLUME, ADDRESS], READ | old
    lines = ok("report", "--from", "2026-11-01", "--to", "2026-11-02")["letter"][1:]
    assert lines == [
        "Risks: 1 high, 2 low. Leftovers cost at most 8.80 USD a month; the price of 1 leftover is unknown.",
        "The account was last read at 2026-11-01T03:23:00Z: later changes of risks are not known.",
        "1 of these risks could not be checked, and count as before.",
        "Not known: images could not be read: AccessDenied.",
        "3 more risks not recorded, of the lowest severities.",
    ]


def test_a_report_without_a_reading_of_risks_says_so(ok: Callable[..., Any], api: FakeApi) -> None:
    for refusal in ([], [Answer(403, {"message": "Missing Authentication Token"})]):
        api.refusals = {("GET", "risks"): refusal} if refusal else {}
        document = ok("report")
        assert document["risks"] is None
        assert "There is no reading of risks" in document["expired"][-1]


def test_query_spans_the_period_and_the_year_before_it(ok: Callable[..., Any], api: FakeApi) -> None:
    api.add("web")
    document = ok("report", "--from", "2026-07-01", "--to", "2026-09-30")
    assert queries(api, "events") == [
        {"since": "2025-07-01T00:00:00.000Z", "until": "2026-10-01T00:00:00.000Z", "limit": "100"}
    ]
    assert (document["first"], document["last"], document["letter"]) == (
        "2026-07-01",
        "2026-09-30",
        ["2026-07-01 to 2026-09-30: no hits."],
    )


def test_reading_stops_once_nothing_before_the_period_can_matter(ok: Callable[..., Any], api: FakeApi) -> None:
    days = [str(date(2026, 11, 20) - timedelta(days=n)) for n in range(360)]
    api.events = [event("web", day) for day in days]
    assert ok("report", "--from", "2026-11-01")["events_read"] == 100
    # Five units of which each has one recovery in 50 days need all that there is.
    api.events = [event(f"unit-{n % 50}", day) for n, day in enumerate(days)]
    assert ok("report", "--from", "2026-11-01")["events_read"] == 360


def test_recoveries_before_the_period_are_compared_with(ok: Callable[..., Any], api: FakeApi) -> None:
    slow = event("web", "2026-11-20", recovery_seconds=200.0)
    api.events = [slow, *(event("web", f"2026-10-{day}") for day in range(20, 10, -1))]
    document = ok("report", "--from", "2026-11-01")
    assert [(one["unit"], one["seconds"], one["usual_seconds"]) for one in document["slower"]] == [("web", 200.0, 12.5)]
    assert document["totals"]["terminations"] == 1


@pytest.mark.parametrize(
    ("events", "retention", "expected"),
    [
        ([], 90, ["Events do not expire: all of the period are read."]),
        ([], None, [
            "Events do not expire: all of the period are read.",
            "Decisions, which say why a unit was skipped, expire after troop:decision_retention_days.",
        ]),
        ([event("web", "2026-11-19")], RETENTION, [
            "Events do not expire. The deployment has none before 2026-11-19T10:00:00Z.",
            "Decisions before 2026-10-21 have expired: why a unit was skipped then can no longer be read.",
            "CloudWatch has forgotten what alarms did before 2026-10-21. The states that led to a verdict are stored "
            "with its event.",
            "1 termination of earlier versions: without a verdict, and without stages.",
        ]),
        ([judged("web", "2026-11-19", "HELD"), event("web", "2026-08-01")], 365, [
            "Events do not expire: all of the period are read.",
            "CloudWatch has forgotten what alarms did before 2026-10-21. The states that led to a verdict are stored "
            "with its event.",
        ]),
    ],
    ids=["all", "settings unknown", "young", "old"],
)  # fmt: skip
def test_report_says_what_can_no_longer_be_read(
    ok: Callable[..., Any],
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
    events: list[dict[str, Any]],
    retention: int | None,
    expected: list[str],
) -> None:
    monkeypatch.setattr(report, "decision_days", lambda *_: retention)
    api.events, api.reading = events, READ
    first = "2026-11-18" if retention == 90 else "2026-10-01"
    assert ok("report", "--from", first)["expired"] == expected


def test_too_many_events_are_cut_off_and_the_report_says_so(
    ok: Callable[..., Any], api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(period_reader, "MOST_READ", 100)
    api.events = [event(f"unit-{n}", "2026-11-19") for n in range(300)]
    document = ok("report")
    assert document["totals"]["terminations"] == document["events_read"] == 100
    assert document["expired"][0] == (
        "Only the newest 100 events are read, since 2026-11-19T10:00:00Z: shorten the period."
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--from 2026-11-21 --to 2026-11-20", "--from 2026-11-21 is after --to 2026-11-20"),
        ("--to 2030-01-01", "2029-10-03 to 2030-01-01 has not begun: choose days until today"),
        ("--from 20x", "--from is '20x': must be a day, YYYY-MM-DD, today or yesterday"),
        ("--to 2026-02-30", "--to is '2026-02-30'"),
        ("--json -o q.html", "--json prints the document: remove --open and -o"),
        ("--json --open", "--json prints the document: remove --open and -o"),
        ("-o q.json", "-o q.json is the name of the page"),
    ],
)
def test_wrong_usage(run: Run, api: FakeApi, here: Path, words: str, message: str) -> None:
    result = run("report", *words.split())
    assert (result.exit_code, api.calls, list(here.iterdir())) == (Exit.USAGE, [], [])
    assert message in " ".join(result.stderr.split())


def test_files_have_the_name_of_the_option(run: Run, api: FakeApi, here: Path) -> None:
    assert run("report", "-o", "q4.html").exit_code == 0
    assert sorted(path.name for path in here.iterdir()) == ["q4.html", "q4.json"]
    denied = run("report", "-o", "no/such/q4.html")
    assert (denied.exit_code, "no/such/q4.json cannot be written" in denied.stderr) == (Exit.FAILED, True)


def test_link_with_the_usual_name_is_not_followed(run: Run, here: Path) -> None:
    (here / "troop-report-2026-08-22-2026-11-20.html").symlink_to(here / "other")
    assert run("report").exit_code == Exit.FAILED
    assert not (here / "other").exists()


def test_refusal_of_the_api_leaves_no_file(run: Run, api: FakeApi, here: Path) -> None:
    api.refusals["GET", "groups"] = [Answer(403, {"Message": "User: x is not authorized to perform: y"})]
    assert run("report").exit_code == Exit.FORBIDDEN
    assert list(here.iterdir()) == []


def test_person_hears_how_far_the_events_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 4.0, 6.0, 7.0, 8.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr(show, "has_reader", lambda: True)
    tell = report.progress()
    for events in (100, 200, 300):
        tell(Reading(events, NOW))
    assert capsys.readouterr().err.count("read 200 events, back to 2026-11-20") == 1


@pytest.mark.parametrize("permitted", [True, False])
def test_retention_of_decisions_is_that_of_the_deployed_settings_if_they_can_be_read(
    monkeypatch: pytest.MonkeyPatch, client: TroopClient, permitted: bool
) -> None:
    def settings(*_: Any) -> TriedSettings:
        if not permitted:
            raise CliError(Exit.FORBIDDEN, "may not read the template")
        return settings_files.load(None)

    monkeypatch.setattr(aws, "make_session", lambda *_: None)
    monkeypatch.setattr(live_account, "deployed_settings", settings)
    conn = Connection(Deployment("Troop", "eu-central-1", "111122223333", {}, "arn"), client)
    assert DECISION_DAYS(Options("Troop", None, None), conn) == (90 if permitted else None)


def test_event_of_an_older_deployment_is_read() -> None:
    older = outcome_of(event("web"))
    assert (older.owner, older.verdict, older.stages, older.seconds) == ("", "unjudged", {}, 12.5)
    assert outcome_of(event("web", settles_at="2026-11-20T10:05:00.000Z", verdict=None)).verdict == "pending"


def group(unit: str, **more: Any) -> dict[str, Any]:
    row = {"unit": unit, "owner": "", "takes_part": True, "protected": None, "problems": [], "until": None}
    return row | {"outlook": {"state": "taking part", "reason": None, "why": ""}} | more


OUT = {"takes_part": False, "outlook": {"state": "opted out", "reason": "opted-out", "why": "opted out by item"}}


@pytest.mark.parametrize(
    ("groups", "endless"),
    [
        ([group("web")], False),
        ([group("web", **OUT)], True),
        ([group("web", **OUT | {"until": "2026-12-01"})], False),
        ([group("web", **OUT | {"until": "2026-12-01"}), group("web", **OUT)], True),
        ([group("web", **OUT | {"until": "2026-12-01"}), group("web", **OUT | {"protected": "troop:fleet"})], False),
        ([group("web", takes_part=False, outlook={"state": "x", "reason": "not-opted-in", "why": ""})], False),
    ],
)
def test_opt_outs_without_an_end(groups: list[dict[str, Any]], endless: bool) -> None:
    (unit,) = units_now(groups)
    assert unit.endless is endless
