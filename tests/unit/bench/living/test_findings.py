"""Notifications of findings: once each, to the right people, in words that say what to do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.living.build import NOW
from troop.bench.definition.living import Announcement, Grade, MergedCheck, RoleDigest, WorkSample
from troop.bench.living.findings import AGAIN, LEASE, Findings, Message, find, queue_warning
from troop.bench.living.report import MOST_CHECKS
from troop.shared.aws.alarm_topics import plain_subject

FAILS = MergedCheck("disk", Grade.FAIL, 7, ("i-1", "i-2"), 97.0, 90.0, "full", "remove files")
WARNS = replace(FAILS, status=Grade.WARN)
PASSES = replace(FAILS, status=Grade.OK)
KEY = "workers/disk"
SECOND = timedelta(seconds=1)


def digests(*checks: MergedCheck) -> dict[str, RoleDigest]:
    return {"workers": RoleDigest(ok=13, fail=7, checks=checks)}


def sent(status: Grade = Grade.FAIL, ago: timedelta = timedelta(hours=1), ok: timedelta | None = None) -> Announcement:
    return Announcement(status, NOW - ago, sent=True, ok_since=None if ok is None else NOW - ok)


@pytest.mark.parametrize(
    ("before", "check", "notifies", "after"),
    [
        (None, FAILS, True, Announcement(Grade.FAIL, NOW)),
        (None, WARNS, True, Announcement(Grade.WARN, NOW)),
        (None, PASSES, False, None),
        (sent(), FAILS, False, sent()),
        (sent(), WARNS, False, sent()),
        (sent(Grade.WARN), FAILS, True, Announcement(Grade.FAIL, NOW)),
        (sent(), PASSES, False, sent(ok=timedelta())),
        (sent(ok=AGAIN - SECOND), PASSES, False, sent(ok=AGAIN - SECOND)),
        (sent(ok=AGAIN - SECOND), FAILS, False, sent()),
        (sent(ok=AGAIN), PASSES, False, None),
        (Announcement(Grade.FAIL, NOW - LEASE + SECOND), FAILS, False, Announcement(Grade.FAIL, NOW - LEASE + SECOND)),
        (Announcement(Grade.FAIL, NOW - LEASE), FAILS, True, Announcement(Grade.FAIL, NOW)),
        (Announcement(Grade.FAIL, NOW - SECOND), PASSES, False, None),
    ],
)
def test_each_finding_is_sent_once(
    before: Announcement | None, check: MergedCheck, notifies: bool, after: Announcement | None
) -> None:
    news = find({KEY: before} if before else {}, digests(check), NOW)
    assert bool(news.messages) is notifies
    assert news.on_record == ({KEY: after} if after else {})


def test_a_check_that_is_gone_has_passed() -> None:
    assert find({KEY: sent()}, digests(), NOW).on_record == {KEY: sent(ok=timedelta())}


def test_a_check_without_end_of_names_notifies_only_so_often() -> None:
    news = Findings({}, ())
    count = 0
    for minute in range(5):
        names = [replace(FAILS, name=f"{minute}-{n}") for n in range(MOST_CHECKS)]
        news = find(news.on_record, digests(*names), NOW + minute * timedelta(minutes=1))
        count += len(news.messages)
        news = Findings({key: replace(one, sent=True) for key, one in news.on_record.items()}, ())
    assert count == len(news.on_record) == MOST_CHECKS


@given(st.lists(st.sampled_from([FAILS, WARNS, PASSES]), max_size=60))
def test_a_check_that_comes_and_goes_notifies_only_after_it_passed_for_long(checks: Sequence[MergedCheck]) -> None:
    record: dict[str, Announcement] = {}
    messages: list[tuple[datetime, Grade]] = []
    now, passed_since = NOW, NOW - timedelta(days=1)
    passed: dict[datetime, timedelta] = {}
    for check in checks:
        now += timedelta(minutes=1)
        if check is not PASSES:
            passed[now] = now - passed_since
            passed_since = now
        news = find(record, digests(check), now)
        record = {key: replace(one, sent=True) for key, one in news.on_record.items()}
        messages += [(now, one.check.status) for one in news.messages]
    for (_, before), (at, status) in itertools.pairwise(messages):
        assert passed[at] > AGAIN or (before, status) == (Grade.WARN, Grade.FAIL)


def test_the_message_says_where_and_what_to_do() -> None:
    (message,) = find({}, digests(FAILS), NOW).messages
    assert message.subject("Troop", "crawlers") == "Troop: disk fails on workers of the fleet crawlers"
    assert message.text("crawlers", "20261127-180000-1f0c9b2e").splitlines() == [
        "The check disk fails on 7 of 20 nodes of workers.",
        "Fleet: crawlers (20261127-180000-1f0c9b2e)",
        "Nodes: i-1, i-2 and 5 more",
        "Value: 97, threshold: 90",
        "Detail: full",
        "What to do: remove files",
        "Look: troop fleet status 20261127-180000-1f0c9b2e",
    ]


def test_tasks_that_sqs_deletes_soon_are_a_warning_of_the_queue() -> None:
    work = WorkSample(NOW, 10, waiting=1, oldest_seconds=12 * 86_400)
    assert queue_warning(None) == queue_warning(work) == queue_warning(replace(work, oldest_seconds=None)) == {}
    (message,) = find({}, queue_warning(replace(work, oldest_seconds=12 * 86_400 + 1)), NOW).messages
    lines = message.text("crawlers", "RUN").splitlines()
    assert lines[0] == "The check age warns on the queue."
    assert lines[2].startswith("Detail: a task has waited for more than 12 days; SQS deletes it after 14")
    assert not message.check.actionable


def test_a_message_without_details_says_what_to_do_all_the_same() -> None:
    check = MergedCheck("answer", Grade.WARN, 1, ("i-1",))
    lines = Message("workers", check, 1).text("crawlers", "RUN").splitlines()
    assert lines[0] == "The check answer warns on 1 of 1 nodes of workers."
    assert lines[3] == "What to do: find the cause on one of the nodes"


@given(st.text(), st.text())
def test_every_subject_is_one_that_sns_accepts(name: str, deployment: str) -> None:
    subject = plain_subject(Message("workers", replace(FAILS, name=name), 1).subject(f"T{deployment}", "crawlers"))
    assert 0 < len(subject) < 100
    assert all(" " <= character <= "~" for character in subject)
