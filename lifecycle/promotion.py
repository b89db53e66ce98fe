"""Decides whether the release of one deployment may go on to the next stage: reads what the deployment before runs,
since when, and which of its act-now alarms were on.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any

import boto3

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from infra.settings_record import Record, record_in
from lifecycle.resources import Resource, resources_of, template_of
from troop.shared import codec, moments, release
from troop.shared.calendars import Calendar, parse_calendar
from troop.shared.outputs import RELEASE_METADATA
from troop.shared.release import Release, RunningRelease

TOPIC = "ActNowTopicArn"
"""The output with the topic of act-now alarms."""

HISTORY = timedelta(days=30)
"""The time for which CloudWatch keeps the history of alarms."""

FIRST_DATA = timedelta(hours=1)
"""From its creation on, in which a deployment has written the first of each metric."""

_FUNCTION, _LAYER, _ALARM = "AWS::Lambda::Function", "AWS::Lambda::LayerVersion", "AWS::CloudWatch::Alarm"
_CHANGE = re.compile(r"from (\w+) to (\w+)")
_ON = "ALARM"


@dataclass(frozen=True)
class Evidence:
    """What a deployment of the stage before shows.

    Attributes:
        label: the deployment's.
        running: its release, and since when, as its watchdog has recorded; None if it has not.
        deployed: the release in its template; None if an older version made it.
        calendar: its calendar ``default``, which counts business days.
        settings: None if its template has no record of them.
        changed: the functions and layers whose code is not that of the release.
        alarms: the act-now alarms that were on in the last business days, each with a moment in which it was.
    """

    label: str
    running: RunningRelease | None
    deployed: Release | None
    calendar: Calendar
    settings: Record | None
    changed: tuple[str, ...] = ()
    alarms: tuple[tuple[str, datetime], ...] = ()


def release_in(template: Mapping[str, Any]) -> Release | None:
    """Reads the release in a template; None if an older version made it."""
    try:
        return codec.from_document(Release, json.loads(template["Metadata"][RELEASE_METADATA]))
    except (KeyError, TypeError, ValueError):
        return None


def objections(evidence: Evidence, new: Release | None, days: int, now: datetime) -> Iterator[str]:
    """Yields why a release may not follow on the stage before.

    Args:
        new: the release to deploy.
        days: business days for which the deployment must have run it, without an act-now alarm.
    """
    if evidence.running is None or evidence.deployed is None or new is None:
        yield "no release is recorded: deploy this version there, and wait for the next call of the watchdog"
        return
    if evidence.changed:
        yield f"somebody has changed the code of {', '.join(evidence.changed)}: deploy there again"
    there = evidence.deployed
    if there != evidence.running.release:
        yield f"its watchdog has not recorded {_named(there)} yet: try again in a quarter of an hour"
        return
    names = sorted(n for n in there.assets.keys() | new.assets.keys() if there.assets.get(n) != new.assets.get(n))
    if names:
        same = there.commit == new.commit is not None
        advice = (
            " too, packed by another version of zlib: use the machine or the artifact that built it" if same else ""
        )
        yield f"runs other code than this checkout has: {', '.join(names)} differ. It runs {_named(there)}{advice}"
    elif there.commit is None or there.commit != new.commit:
        yield f"runs {_named(there)}, and this checkout is {_named(new)}: use the commit that it runs"
    calendar, since = evidence.calendar, evidence.running.since
    ends = list(islice(_whole_windows(calendar, since), days))
    if (count := sum(end <= now for end in ends)) < days:
        yield (
            f"has run this release for {count} of {days} business days, since {moments.second(since)}: "
            f"try again on {calendar.local(ends[-1]):%A, %Y-%m-%d after %H:%M} {calendar.time_zone}"
        )
    if now - (begin := watched_since(calendar, since, days, now)) > HISTORY:
        yield (
            f"the last {days} business days began on {calendar.local(begin):%Y-%m-%d}, and CloudWatch keeps "
            f"the history of alarms for {HISTORY.days} days: try fewer DAYS"
        )
    for name, at in evidence.alarms:
        yield (
            f"the act-now alarm {name} was on at {moments.second(at)}, within the last {days} business days: "
            f"this counts until {_last_day_of(at, calendar, since, days):%A, %Y-%m-%d}"
        )


def _whole_windows(calendar: Calendar, since: datetime) -> Iterator[datetime]:
    """Yields when each window closes that opens at or after a moment."""
    day = calendar.local(since).date()
    while True:
        if calendar.is_business_day(day):
            opens, closes = calendar.window(day)
            if opens >= since:
                yield closes
        day += timedelta(days=1)


def _last_day_of(alarm: datetime, calendar: Calendar, since: datetime, days: int) -> date:
    """Returns the last day on which an alarm that was on counts."""
    moment = alarm
    while watched_since(calendar, since, days, moment + timedelta(days=1)) <= alarm:
        moment += timedelta(days=1)
    return calendar.local(moment).date()


def _named(one: Release) -> str:
    return f"commit {one.commit}" if one.commit else "code of no commit (commit the changes, or set TROOP_COMMIT)"


def watched_since(calendar: Calendar, since: datetime, days: int, now: datetime) -> datetime:
    """Returns from when on no act-now alarm may have been on: for so many business days, or since the deployment."""
    today = calendar.local(now).date()
    first = today
    while first > calendar.local(since).date():
        earlier = first - timedelta(days=1)
        if calendar.business_days_since(earlier, today, days + 1) > days:
            break
        first = earlier
    begin = calendar.local(now).replace(
        year=first.year, month=first.month, day=first.day, hour=0, minute=0, second=0, microsecond=0
    )
    return max(since, begin)


def read_evidence(
    session: boto3.Session, name: str, label: str, health: Mapping[str, Any], days: int, now: datetime
) -> Evidence:
    """Reads the evidence of a deployment from its stack, its functions and its alarms.

    Args:
        health: the answer of its API.

    Raises:
        CliError: it has no record of its settings, or the caller may not read it.
    """
    resources, template = resources_of(session, name), template_of(session, name)
    settings = record_in(template)
    calendars = settings.values.get("calendars") if settings else None
    if not calendars:
        raise CliError(Exit.FAILED, "no record of its calendars: deploy this version there first")
    calendar = parse_calendar("troop:calendars", "default", calendars["default"])
    created = _created(session, name)
    running = _running(health, created)
    if running is None:
        return Evidence(label, None, None, calendar, settings)
    begin = watched_since(calendar, running.since, days, now)
    alarms = tuple(_on(session, _act_now_alarms(template, resources, begin, created + FIRST_DATA), now))
    deployed = release_in(template)
    changed = tuple(changed_code(session, resources, deployed)) if deployed else ()
    return Evidence(label, running, deployed, calendar, settings, changed, alarms)


def _running(health: Mapping[str, Any], created: datetime) -> RunningRelease | None:
    document = health.get("release")
    if not document:
        return None
    running = RunningRelease(codec.from_document(Release, document), moments.parse(document["since"]))
    # A retained table can have the record of an earlier deployment.
    return RunningRelease(running.release, max(running.since, created))


def _created(session: boto3.Session, name: str) -> datetime:
    with aws.translated_errors():
        created: datetime = aws.client(session, "cloudformation").describe_stacks(StackName=name)["Stacks"][0][
            "CreationTime"
        ]
    return created


def changed_code(session: boto3.Session, resources: Mapping[str, Resource], running: Release) -> Iterator[str]:
    """Yields the functions and layers of a stack whose code, as Lambda has it, is not that of the release."""
    functions = aws.client(session, "lambda")
    with aws.translated_errors():
        for logical_id, one in sorted(resources.items()):
            if one.kind == _FUNCTION:
                answer = functions.get_function_configuration(FunctionName=one.physical_id)
                expected = {running.assets[release.FUNCTIONS_ASSET]}
            elif one.kind == _LAYER and "SettingsLayer" not in logical_id:
                answer = functions.get_layer_version_by_arn(Arn=one.physical_id)["Content"]
                expected = set(running.assets.values())
            else:
                continue
            if base64.b64decode(answer["CodeSha256"]).hex() not in expected:
                yield logical_id


def _act_now_alarms(
    template: Mapping[str, Any], resources: Mapping[str, Resource], since: datetime, settled: datetime
) -> dict[str, datetime]:
    """Returns the names of the alarms that notify the topic of act-now alarms, with the moment from which each counts:
    ``since``, but not before ``settled`` if it is on without data, as in a deployment that has yet to write any.
    """
    topic = template["Outputs"][TOPIC]["Value"]
    return {
        resources[logical_id].physical_id: max(since, settled)
        if one["Properties"].get("TreatMissingData") == "breaching"
        else since
        for logical_id, one in template["Resources"].items()
        if one["Type"] == _ALARM and logical_id in resources and topic in one["Properties"].get("AlarmActions", ())
    }


def _on(session: boto3.Session, names: Mapping[str, datetime], now: datetime) -> Iterator[tuple[str, datetime]]:
    """Yields the alarms that were on, each with the last moment at which it was known to be."""
    cloudwatch = aws.client(session, "cloudwatch")
    with aws.translated_errors():
        for name, since in sorted(names.items()):
            alarms = cloudwatch.describe_alarms(AlarmNames=[name], AlarmTypes=["MetricAlarm"])["MetricAlarms"]
            if any(alarm["StateValue"] == _ON for alarm in alarms):
                yield name, now
                continue
            pages = cloudwatch.get_paginator("describe_alarm_history").paginate(
                AlarmName=name, HistoryItemType="StateUpdate", StartDate=since, ScanBy="TimestampDescending"
            )
            items = (item for page in pages for item in page["AlarmHistoryItems"])
            changed = next((item for item in items if _ON in _states(item)), None)
            if changed:
                yield name, changed["Timestamp"]


def _states(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the states before and after a change."""
    match = _CHANGE.search(item.get("HistorySummary", ""))
    return match.groups() if match else ()
