"""The digest: what each check makes of what was read, and what the whole says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import at, calendar, settings
from troop.chaos.cures import Cures
from troop.chaos.earlier_tables import EarlierTable
from troop.chaos.health import Check, Digest, Grade, digest
from troop.chaos.health_facts import Alarm, Children, HealthFacts, Runs, Schedule, Unread
from troop.chaos.self_halt import SelfHalt
from troop.chaos.strays import Stray, StrayRecord
from troop.shared.calendars import Calendar
from troop.shared.concurrency import Concurrency, needed
from troop.shared.settings import Settings

NOW = at("12:05")
LONG_AGO = NOW - timedelta(days=30)
ONE: Mapping[str, Calendar] = {"default": calendar()}
TWO: Mapping[str, Calendar] = {"default": calendar(), "night": calendar("night", open="20:00", close="22:00")}
DENIED = Unread("ClientError: AccessDenied")

TICKING = Schedule("Troop-default", enabled=True, ticks=True, changed=LONG_AGO)
WATCHDOG = Schedule("Troop-watchdog", enabled=True, ticks=False, changed=LONG_AGO)
SWEEP = Schedule("Troop-sweep", enabled=True, ticks=False, changed=LONG_AGO)
WELL = HealthFacts(
    schedules=(TICKING, WATCHDOG, SWEEP),
    runs=Runs(newest=at("12:00:02"), newest_succeeded=at("11:45:02")),
    children=Children(last_succeeded=at("10:35")),
    dead_letters=0,
    tables={"Events": "ACTIVE", "State": "ACTIVE"},
    left={},
)
HALT = SelfHalt(at("12:00"), "3 causes broke units within an hour", ("2026-11-20#web", "2026-11-20#it's"))
CURES = Cures(
    deployment="Troop",
    region="eu-central-1",
    machine="arn:aws:states:eu-central-1:123456789012:stateMachine:Chaos",
    schedule_group="Troop-Schedules",
    queue="https://sqs.eu-central-1.amazonaws.com/123456789012/Undelivered",
    group_tags="Troop-GroupTags",
    act_now="arn:aws:sns:eu-central-1:123456789012:ActNow",
    runbook="https://wiki/runbook",
)
NAMES = (
    *("schedules", "ticks-missing", "ticks-failed", "terminations-failed", "dead-letters", "tables"),
    *("units-unrecovered", "units-broken", "halted-itself", "calendars"),
)


def having(calendars: Mapping[str, Calendar]) -> Settings:
    return replace(settings(), calendars=calendars)


def digest_of(calendars: Mapping[str, Calendar] = ONE, now: datetime = NOW, **read: Any) -> Digest:
    """The digest of a deployment that does well, but for what is given."""
    return digest(replace(WELL, **read), having(calendars), 15, now, others=2, cures=CURES)


def check(name: str, *args: Any, **read: Any) -> Check:
    return next(c for c in digest_of(*args, **read).checks if c.name == name)


def test_stray_items_are_a_warning_with_the_nearest_unit() -> None:
    named = (Stray("Web", "web"), *(Stray(f"old{n}", None) for n in range(9)))
    stray = check("stray-items", strays=StrayRecord(count=12, named=named))
    assert (stray.status, stray.value) == (Grade.WARN, 12)
    assert stray.detail.startswith("no unit has the name 'Web' (nearest unit: 'web'), 'old0' (no unit is near), ")
    assert stray.detail.endswith("'old8' (no unit is near) and 2 more")
    assert check("stray-items", strays=StrayRecord()).status is Grade.OK
    assert check("stray-items", strays=Unread("no")).status is Grade.FAIL


def test_all_is_well() -> None:
    health = digest_of()
    assert (health.status, health.failing) == (Grade.OK, 0)
    assert tuple(c.name for c in health.checks) == NAMES
    assert not [c.todo for c in health.checks if c.todo]


def test_a_fresh_deployment_is_well_before_its_first_tick() -> None:
    fresh = replace(TICKING, changed=at("12:01")), WATCHDOG, SWEEP
    health = digest_of(schedules=fresh, runs=Runs())
    assert health.status is Grade.OK
    assert check("ticks-missing", schedules=fresh, runs=Runs()).detail.startswith("no tick has come yet")


@pytest.mark.parametrize(
    ("schedules", "value", "words"),
    [
        (
            (replace(TICKING, enabled=False), WATCHDOG, SWEEP),
            2,
            "2 of 3 schedules are enabled; disabled: Troop-default",
        ),
        ((TICKING, replace(WATCHDOG, enabled=False), SWEEP), 2, "disabled: Troop-watchdog"),
        ((TICKING, WATCHDOG), 2, "1 missing"),
        ((), 0, "0 of 3 schedules are enabled; 3 missing"),
    ],
)
def test_every_schedule_is_there_and_enabled(schedules: tuple[Schedule, ...], value: int, words: str) -> None:
    finding = check("schedules", schedules=schedules)
    assert (finding.status, finding.value, finding.threshold) == (Grade.FAIL, value, 3)
    assert words in finding.detail
    assert "halt" in finding.todo


def test_each_calendar_needs_a_schedule() -> None:
    assert check("schedules", TWO).status is Grade.FAIL
    more = replace(TICKING, name="Troop-night")
    assert check("schedules", TWO, schedules=(TICKING, more, WATCHDOG, SWEEP)).status is Grade.OK


@pytest.mark.parametrize(
    ("newest", "now", "missing"),
    [
        # With a tick at 12:00: the next one is due at 12:15, and missing when it has not come by 12:31.
        (at("12:00:02"), at("12:15"), 0),
        (at("12:00:02"), at("12:30:59"), 0),
        (at("12:00:02"), at("12:31"), 1),
        (at("12:00:02"), at("13:01"), 3),
        # A late delivery counts.
        (at("12:14:50"), at("12:30:59"), 0),
        # Whatever follows the last tick of the window is not missed, and neither is the weekend.
        (at("14:45:02"), at("23:00"), 0),
        (at("14:45:02"), at("09:15", at("12:00").date() + timedelta(days=3)), 0),
        (at("14:45:02"), at("09:16", at("12:00").date() + timedelta(days=3)), 1),
        # Never seen since the schedules were made, a week at the most.
        (None, at("09:16"), 22 + 4 * 24 + 1),
    ],
)
def test_ticks_that_are_due_and_do_not_come(newest: datetime | None, now: datetime, missing: int) -> None:
    finding = check("ticks-missing", now=now, runs=Runs(newest=newest))
    assert (finding.value, finding.status) == (missing, Grade.FAIL if missing else Grade.OK), finding.detail


def test_on_a_half_day_no_tick_is_missed_after_its_close() -> None:
    half = [{"date": "4th FRI of NOV", "name": "day after Thanksgiving", "close": "12:00"}]
    friday = at("12:00").date() + timedelta(days=7)
    last, now = at("11:45:02", friday), at("23:00", friday)
    assert check("ticks-missing", {"default": calendar(extra_dates=half)}, now=now, runs=Runs(newest=last)).value == 0
    assert check("ticks-missing", now=now, runs=Runs(newest=last)).value == 12


def test_no_tick_is_missing_before_the_schedules_were_created_or_changed() -> None:
    changed = replace(TICKING, changed=at("12:20"))
    late = at("12:46")
    assert check("ticks-missing", now=late, runs=Runs(newest=at("09:00"))).value == 14
    assert check("ticks-missing", now=late, runs=Runs(newest=at("09:00")), schedules=(changed, WATCHDOG)).value == 1
    other = replace(WATCHDOG, changed=at("12:40"))
    assert check("ticks-missing", now=late, runs=Runs(newest=at("09:00")), schedules=(TICKING, other)).value == 14


@pytest.mark.parametrize(
    ("succeeded", "status", "words"),
    [
        (None, Grade.FAIL, "none has succeeded since"),
        (at("11:00"), Grade.FAIL, "none has succeeded since"),
        (at("11:45"), Grade.WARN, "later ones succeeded"),
    ],
)
def test_failed_ticks_warn_once_later_ones_succeed(succeeded: datetime | None, status: Grade, words: str) -> None:
    finding = check("ticks-failed", runs=Runs(at("12:00"), succeeded, (at("11:30"), at("10:00"))))
    assert (finding.status, finding.value) == (status, 2)
    assert finding.detail.startswith("2 failed in the last 24 hours, the last at 2026-11-20T19:30:00Z")
    assert words in finding.detail


@pytest.mark.parametrize(
    ("succeeded", "status", "words"),
    [
        (None, Grade.FAIL, "none has succeeded since"),
        (at("10:30"), Grade.FAIL, "none has succeeded since"),  # in the same five minutes: who knows which was first
        (at("10:35"), Grade.WARN, "later ones succeeded"),
    ],
)
def test_a_tick_is_well_though_what_it_started_fails(succeeded: datetime | None, status: Grade, words: str) -> None:
    failing = Children(3, last_failed=at("10:30"), last_succeeded=succeeded)
    finding = check("terminations-failed", children=failing)
    assert (finding.status, finding.value, finding.threshold) == (status, 3, 0)
    assert finding.detail.startswith("3 failed in the last 24 hours, the last about 2026-11-20T18:30:00Z")
    assert words in finding.detail
    assert check("ticks-failed", children=failing).status is Grade.OK


def test_dead_letters() -> None:
    finding = check("dead-letters", dead_letters=3)
    assert (finding.status, finding.value, finding.detail) == (Grade.FAIL, 3, "3 could not be delivered")
    assert "ERROR_MESSAGE" in finding.todo


@pytest.mark.parametrize(
    ("status", "grade"),
    [("UPDATING", Grade.WARN), ("gone", Grade.FAIL), ("INACCESSIBLE_ENCRYPTION_CREDENTIALS", Grade.FAIL)],
)
def test_tables(status: str, grade: Grade) -> None:
    finding = check("tables", tables={"Events": "ACTIVE", "State": status})
    assert (finding.status, finding.value, finding.threshold) == (grade, 1, 2)
    assert finding.detail == f"State is {status}"


def test_units_out_of_chaos_are_named_but_not_all_of_very_many() -> None:
    finding = check("units-unrecovered", left={"web": "unrecovered", "db": "unrecovered"})
    assert (finding.status, finding.value, finding.detail) == (Grade.FAIL, 2, "out of chaos: db, web")
    finding = check("units-unrecovered", left={f"unit-{n:02}": "unrecovered" for n in range(13)})
    assert finding.value == 13
    assert finding.detail.endswith("unit-09 and 3 more")


def test_broken_units_have_a_check_of_their_own() -> None:
    left = {"web": "broken", "db": "unrecovered", "cache": "a reason of a later version"}
    broken, unrecovered = check("units-broken", left=left), check("units-unrecovered", left=left)
    assert (broken.status, broken.value, broken.detail) == (Grade.FAIL, 1, "out of chaos: web")
    assert (unrecovered.value, unrecovered.detail) == (2, "out of chaos: cache, db")
    assert check("units-broken", left={"db": "unrecovered"}).status is Grade.OK
    assert check("units-unrecovered", left={"web": "broken"}).status is Grade.OK


def test_a_deployment_that_halted_itself_needs_a_person() -> None:
    finding = check("halted-itself", self_halt=HALT)
    assert (finding.status, finding.value) == (Grade.FAIL, 1)
    assert finding.detail == "since 2026-11-20T20:00:00Z: 3 causes broke units within an hour"
    assert [shlex.split(command)[3:] for command in finding.commands] == [
        ["events", "2026-11-20#web"],
        ["events", "2026-11-20#it's"],
        ["resume"],
    ]
    assert check("halted-itself").status is Grade.OK


def test_calendars_without_an_open_day_for_weeks() -> None:
    frozen = calendar(freezes=[{"from": "2026-11-20", "to": "2026-12-10", "reason": "the move"}])
    finding = check("calendars", {"default": frozen, "other": calendar("other")})
    assert (finding.status, finding.value, finding.threshold) == (Grade.WARN, 1, 2)
    assert "default (frozen: the move)" in finding.detail
    thawing = calendar(freezes=[{"from": "2026-11-20", "to": "2026-12-09", "reason": "the move"}])
    assert check("calendars", {"default": thawing}).status is Grade.OK  # the 21st day is open
    off = calendar(
        extra_dates=[{"date": str(at("12:00").date() + timedelta(days=n)), "name": "off"} for n in range(21)]
    )
    finding = check("calendars", {"default": frozen, "off": off})
    assert (finding.status, finding.value) == (Grade.FAIL, 0)


READS = ("schedules", "runs", "children", "dead_letters", "tables", "left", "self_halt")


@pytest.mark.parametrize("failing", READS)
def test_failed_read_fails_its_checks_and_no_others(failing: str) -> None:
    read: dict[str, Any] = {failing: DENIED}
    health = digest_of(**read)
    unread = [c for c in health.checks if c.value is None]
    assert unread
    assert all(c.status is Grade.FAIL and "AccessDenied" in c.detail and c.todo for c in unread)
    assert health.status is Grade.FAIL
    assert all(c.status is Grade.OK for c in health.checks if c.value is not None)


moments = st.integers(0, 20 * 24 * 60).map(lambda minutes: NOW - timedelta(minutes=minutes))
observed = st.builds(
    HealthFacts,
    schedules=st.just(DENIED)
    | st.lists(st.builds(Schedule, st.text(), st.booleans(), st.booleans(), moments), max_size=4).map(tuple),
    runs=st.just(DENIED)
    | st.builds(Runs, st.none() | moments, st.none() | moments, st.lists(moments, max_size=3).map(tuple)),
    children=st.just(DENIED) | st.builds(Children, st.integers(0, 3), st.none() | moments, st.none() | moments),
    dead_letters=st.just(DENIED) | st.integers(0, 5),
    tables=st.just(DENIED) | st.dictionaries(st.text(), st.sampled_from(["ACTIVE", "UPDATING", "gone"]), max_size=4),
    left=st.just(DENIED) | st.dictionaries(st.text(), st.sampled_from(["unrecovered", "broken"]), max_size=20),
    self_halt=st.just(DENIED) | st.none() | st.builds(SelfHalt, moments, st.text(), st.lists(st.text()).map(tuple)),
)


@given(observed)
def test_every_observation_has_every_check_and_each_problem_its_advice(read: HealthFacts) -> None:
    health = digest(read, having(TWO), 15, NOW, others=2, cures=CURES)
    assert tuple(c.name for c in health.checks) == NAMES
    assert all(bool(c.todo) == (c.status is not Grade.OK) for c in health.checks)
    assert all(c.runbook.startswith("https://wiki/runbook#") for c in health.checks if c.commands and c.runbook)
    assert all(c.value is not None or c.status is Grade.FAIL for c in health.checks)
    worst = max((c.status for c in health.checks), key=list(Grade).index)
    assert health.status is worst
    assert health.failing == [c.status for c in health.checks].count(Grade.FAIL)


RINGING = (
    Alarm("ReaperFound", act_now=False, todo="docs/guides/runbook.md#reaper-found"),
    Alarm("TicksAborted", act_now=True, todo="docs/guides/runbook.md#ticks-failed"),
    Alarm("TicksFailed", act_now=True, todo="docs/guides/runbook.md#ticks-failed"),
)


@pytest.mark.parametrize(
    ("alarms", "status", "detail", "todo"),
    [
        ((), Grade.OK, "no alarm is on", ""),
        (RINGING[:1], Grade.WARN, "warning: ReaperFound", "follow docs/guides/runbook.md#reaper-found"),
        (
            RINGING,
            Grade.FAIL,
            "act now: TicksAborted, TicksFailed; warning: ReaperFound",
            "follow docs/guides/runbook.md#ticks-failed, docs/guides/runbook.md#reaper-found",
        ),
    ],
)
def test_alarms_that_are_on(alarms: tuple[Alarm, ...], status: Grade, detail: str, todo: str) -> None:
    finding = check("alarms", alarms=alarms)
    assert (finding.status, finding.value, finding.detail, finding.todo) == (status, len(alarms), detail, todo)


@pytest.mark.parametrize(("subscribers", "status"), [(0, Grade.WARN), (1, Grade.OK), (3, Grade.OK)])
def test_topic_without_subscribers_is_a_warning(subscribers: int, status: Grade) -> None:
    finding = check("subscribers", subscribers=subscribers)
    assert (finding.status, finding.value, finding.threshold) == (status, subscribers, 1)
    subscribe = (
        "aws sns subscribe --topic-arn arn:aws:sns:eu-central-1:123456789012:ActNow --protocol email "
        "--notification-endpoint YOU@EXAMPLE.COM --region eu-central-1"
    )
    assert finding.commands == ((subscribe,) if status is Grade.WARN else ())


NEEDED = sum(needed(settings()).values())


@pytest.mark.parametrize(
    ("limit", "unreserved", "status", "todo"),
    [
        (1000, NEEDED, Grade.OK, ""),
        (10, 10, Grade.WARN, "--region eu-west-1 --service-code lambda --quota-code L-B99A9384 --desired-value 1000"),
        (1000, NEEDED - 1, Grade.WARN, f"others reserve {1001 - NEEDED} of the account's 1000"),
    ],
)
def test_functions_that_the_account_may_run_at_a_time(limit: int, unreserved: int, status: Grade, todo: str) -> None:
    finding = check("lambda-concurrency", concurrency=Concurrency(limit, unreserved, "eu-west-1"))
    assert (finding.status, finding.value, finding.threshold) == (status, unreserved, NEEDED)
    assert todo.replace("others", "other functions") in " ".join((finding.todo, *finding.commands))
    assert bool(finding.todo) is (status is Grade.WARN)


def test_more_is_needed_where_more_goes_on_and_less_without_benchmarks() -> None:
    assert sum(needed(replace(settings(), max_in_flight=50)).values()) == NEEDED + 45
    assert sum(needed(replace(settings(), calendars=TWO)).values()) == NEEDED + 1
    assert sum(needed(replace(settings(), benchmarks=False)).values()) < NEEDED
    # Each fault in flight has its command's event, a probe's and its backstop; two streams have a call each.
    inside = replace(settings(), inside_instances=True)
    assert sum(needed(inside).values()) == NEEDED + 3 * settings().max_in_flight + 2


def test_advised_concurrency_is_enough_and_more_than_the_present_one() -> None:
    """AWS takes a request for more than there is only."""
    busy = replace(settings(), max_in_flight=3000)
    health = digest(
        replace(WELL, concurrency=Concurrency(1000, 1000, "eu-west-1")), busy, 15, NOW, others=2, cures=CURES
    )
    ((command,),) = (c.commands for c in health.checks if c.name == "lambda-concurrency")
    assert int(command.rpartition(" ")[2]) >= max(1001, sum(needed(busy).values()))


RUNBOOK = Path(__file__).resolve().parents[3] / "docs" / "guides" / "runbook.md"
ALL_UNREAD: Mapping[str, Any] = dict.fromkeys(
    ("runs", "children", "dead_letters", "tables", "left", "self_halt"), DENIED
)
ALL_BAD: Mapping[str, Any] = {
    "schedules": (replace(TICKING, enabled=False),),
    "runs": Runs(newest=NOW - timedelta(days=1), failed=(NOW - timedelta(hours=1),)),
    "children": Children(2, NOW - timedelta(hours=1)),
    "dead_letters": 3,
    "tables": {"Troop-Events": "gone"},
    "left": {"web": "unrecovered", "it's": "unrecovered", "db": "broken"},
    "self_halt": HALT,
    "alarms": RINGING,
    "subscribers": 0,
    "strays": StrayRecord(count=1, named=(Stray("Web's", "web"),)),
    "concurrency": Concurrency(10, 10, "eu-west-1"),
}


def test_each_finding_has_commands_to_paste_with_real_names() -> None:
    checks = [c for c in digest_of(**ALL_BAD).checks if c.status is not Grade.OK]
    assert {c.name for c in checks} == {*NAMES, *("alarms", "subscribers", "stray-items", "lambda-concurrency")} - {
        "calendars"
    }
    pasted = {c.name: [shlex.split(command) for command in c.commands] for c in checks}
    assert all(pasted.values())
    for words in (words for commands in pasted.values() for words in commands):
        assert words[0] in ("aws", "troop", "AWS_REGION=eu-central-1"), words
        assert not {"UNIT", "GROUP", "TABLE", "ARN", "NAME", "QUEUE"} & {*words}, words
    assert pasted["units-unrecovered"][1:] == [
        ["troop", "--region", "eu-central-1", "opt-in", unit] for unit in ("it's", "web")
    ]
    assert pasted["units-broken"][1:] == [["troop", "--region", "eu-central-1", "opt-in", "db"]]
    item = pasted["stray-items"][1]
    assert json.loads(item[item.index("--key") + 1]) == {"unit": {"S": "Web's"}}
    assert {c.name: c.runbook for c in checks}["dead-letters"] == "https://wiki/runbook#dead-letters"
    headings = re.findall(r"^## (.+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    named = {c.runbook.partition("#")[2] for c in (*checks, *digest_of(**ALL_UNREAD).checks) if "//wiki" in c.runbook}
    assert named <= anchors


def test_digest_names_the_last_tick_and_the_next_one() -> None:
    health = digest_of()
    assert (health.last_tick, health.next_tick) == (at("12:00:02"), at("12:15"))
    assert digest_of(runs=DENIED).last_tick is None
    frozen = calendar(freezes=[{"from": "2026-11-20", "to": "2027-12-10", "reason": "the move"}])
    assert digest_of({"default": frozen}).next_tick is None


def earlier(name: str, part: str, days: int, *, empty: bool = False) -> EarlierTable:
    arn = f"arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/{name}"
    return EarlierTable(name, part, arn, NOW - timedelta(days=days), 0 if empty else 3, empty)


def test_tables_of_an_earlier_deployment_are_named_with_both_ways_out() -> None:
    tables = (
        earlier("Troop-8", "State", 0, empty=True),
        earlier("Troop-0", "State", 1),
        earlier("Troop-1", "Events", 2),
        earlier("Troop-9", "State", 300),
    )
    finding = check("earlier-tables", earlier=tables)
    assert (finding.status, finding.value, finding.threshold) == (Grade.WARN, 4, 0)
    assert "does not use the tables of an earlier one of this name: Troop-8 (State, made 20" in finding.detail
    assert "then the make deploy that it prints, with ADOPT=Troop-1,Troop-0." in finding.todo
    assert "Troop-8" not in finding.todo
    assert "tag-resources --region us-gov-west-1 --tags troop:declined=yes --resource-arn-list arn:aws-us-gov:" in (
        finding.todo
    )
    assert check("earlier-tables", earlier=()).status is Grade.OK
    failed = check("earlier-tables", earlier=tables[:1])
    assert (failed.status, failed.todo.partition(":")[0]) == (Grade.WARN, "delete them")


def test_aws_tags_twenty_tables_at_a_time() -> None:
    tables = tuple(earlier(f"Troop-{n:02}", "State", n) for n in range(45))
    finding = check("earlier-tables", earlier=tables)
    commands = [part for part in finding.todo.split("; ") if "tag-resources" in part]
    assert [command.count("arn:aws-us-gov:") for command in commands] == [20, 20, 5]
    assert "and 35 more" in finding.detail


@pytest.mark.parametrize(
    ("name", "read"),
    [("alarms", "alarms"), ("subscribers", "subscribers"), ("lambda-concurrency", "concurrency"),
     ("earlier-tables", "earlier")],
)  # fmt: skip
def test_failed_read_of_a_check_for_people_is_a_failure(name: str, read: str) -> None:
    finding = check(name, **{read: DENIED})
    assert (finding.status, finding.value) == (Grade.FAIL, None)
