"""Decides whether the release of one deployment may go on to the next stage: reads what the deployment before runs,
since when, and which of its act-now alarms were on.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
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

_FUNCTION, _LAYER, _ALARM = "AWS::Lambda::Function", "AWS::Lambda::LayerVersion", "AWS::CloudWatch::Alarm"
_CHANGE = re.compile(r"from (\w+) to (\w+)")
_ON = "ALARM"


@dataclass(frozen=True)
class Evidence:
    """What a deployment of the stage before shows.

    Attributes:
        label: the deployment's.
        running: its release, and since when; None if it is not recorded.
        calendar: its calendar ``default``, which counts business days.
        settings: None if its template has no record of them.
        changed: the functions and layers whose code is not that of the release.
        alarms: the act-now alarms that were on in the last business days, each with a moment in which it was.
    """

    label: str
    running: RunningRelease | None
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
    if evidence.running is None or new is None:
        yield "no release is recorded: deploy this version there, and wait for the next call of the watchdog"
        return
    there = evidence.running.release
    names = sorted(n for n in there.assets.keys() | new.assets.keys() if there.assets.get(n) != new.assets.get(n))
    if names:
        yield f"runs other code than this checkout has: {', '.join(names)} differ. It runs {_named(there)}"
    elif there.commit is None or there.commit != new.commit:
        yield f"runs {_named(there)}, and this checkout is {_named(new)}: use the commit that it runs"
    if evidence.changed:
        yield f"somebody has changed the code of {', '.join(evidence.changed)}: deploy there again"
    calendar = evidence.calendar
    since, today = calendar.local(evidence.running.since).date(), calendar.local(now).date()
    if (count := calendar.business_days_since(since, today, days)) < days:
        first = today
        while calendar.business_days_since(since, first, days) < days:
            first += timedelta(days=1)
        yield (
            f"has run this release for {count} of {days} business days, since "
            f"{moments.second(evidence.running.since)}: try again on {first:%A, %Y-%m-%d}"
        )
    for name, at in evidence.alarms:
        yield f"the act-now alarm {name} was on at {moments.second(at)}, within the last {days} business days"


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
        raise CliError(Exit.FAILED, f"{label} has no record of its calendars: deploy this version there first")
    calendar = parse_calendar("troop:calendars", "default", calendars["default"])
    running = _running(health, _created(session, name))
    if running is None:
        return Evidence(label, None, calendar, settings)
    begin = watched_since(calendar, running.since, days, now)
    alarms = tuple(_on(session, _act_now_alarms(template, resources), begin, now))
    changed = tuple(changed_code(session, resources, running.release))
    return Evidence(label, running, calendar, settings, changed, alarms)


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


def _act_now_alarms(template: Mapping[str, Any], resources: Mapping[str, Resource]) -> list[str]:
    """Returns the names of the alarms that notify the topic of act-now alarms."""
    topic = template["Outputs"][TOPIC]["Value"]
    return [
        resources[logical_id].physical_id
        for logical_id, one in template["Resources"].items()
        if one["Type"] == _ALARM and logical_id in resources and topic in one["Properties"].get("AlarmActions", ())
    ]


def _on(session: boto3.Session, names: Iterable[str], since: datetime, now: datetime) -> Iterator[tuple[str, datetime]]:
    """Yields the alarms that were on, each with the last moment at which it was known to be. CloudWatch keeps the
    history of 30 days.
    """
    cloudwatch = aws.client(session, "cloudwatch")
    with aws.translated_errors():
        for name in sorted(names):
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
