"""Runs EventBridge Scheduler: starts targets at the minute, in the schedule's time zone, with the schedule's role.

MiniStack evaluates cron expressions in UTC, counts a rate from its creation, and checks every ten seconds. It does not
replace `<aws.scheduler.scheduled-time>` and `<aws.scheduler.execution-id>`. It checks neither expressions nor roles,
not even whether a caller may pass them. It has no dead-letter queue. Not emulated: retries (a target that refuses goes
to the dead-letter queue at once) and flexible time windows (such a schedule is rejected).
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import time
import uuid
from collections.abc import Collection
from typing import Any
from zoneinfo import ZoneInfo

from ministack import app
from ministack.core import iam_evaluator
from ministack.core.iam_evaluator import EvalContext, _gather_role_policies, evaluate
from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import eventbridge, scheduler, sqs

from ..config import REGION
from ..decisions import log
from ._wrap import wrap

_SERVICE = "scheduler.amazonaws.com"
_TICK_SECONDS = 0.25
_LATEST = dt.timedelta(minutes=5)
_MINUTE = dt.timedelta(minutes=1)
_JUST = dt.timedelta(microseconds=1)
_TARGET_ACTIONS = {
    "states": "states:StartExecution",
    "lambda": "lambda:InvokeFunction",
    "sqs": "sqs:SendMessage",
    "sns": "sns:Publish",
    "events": "events:PutEvents",
}
_logger = logging.getLogger("scheduler")
_done: dict[tuple[str, str, str], dt.datetime] = {}


def apply() -> None:
    scheduler._SCHEDULE_TICK_INTERVAL = _TICK_SECONDS
    scheduler._tick_schedules = _tick

    @wrap(scheduler, "_create_schedule")
    def create(original: Any, name: str, body: dict[str, Any]) -> Any:
        return _refusal(body) or original(name, body)

    @wrap(scheduler, "_update_schedule")
    def update(original: Any, name: str, body: dict[str, Any]) -> Any:
        return _refusal(body) or original(name, body)

    @wrap(scheduler, "handle_request")
    async def handle(original: Any, method: str, path: str, headers: Any, body: Any, query: Any) -> Any:
        if method in ("POST", "PUT") and path.startswith("/schedules/"):
            role = str((json.loads(body or b"{}").get("Target") or {}).get("RoleArn", ""))
            key, keys = app.extract_access_key_id(headers, query), {"iam:passedtoservice": _SERVICE}
            if iam_evaluator.enforce(key, "iam:PassRole", "iam", REGION, resource_arn=role, service_context=keys):
                message = f"The caller is not authorized to perform: iam:PassRole on resource: {role}"
                return scheduler._error(403, "AccessDeniedException", message)
        return await original(method, path, headers, body, query)


def _refusal(body: dict[str, Any]) -> Any:
    """Returns an error response if a schedule is not supported, else None."""
    zone = body.get("ScheduleExpressionTimezone") or "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return scheduler._error(400, "ValidationException", f"Invalid time zone: {zone}")
    expression = str(body.get("ScheduleExpression", ""))
    if not _is_valid(expression):
        return scheduler._error(400, "ValidationException", f"Invalid Schedule Expression {expression}.")
    if (body.get("FlexibleTimeWindow") or {}).get("Mode", "OFF") != "OFF":
        return scheduler._error(400, "ValidationException", "The local account has no flexible time windows; use OFF")
    return None


def _is_valid(expression: str) -> bool:
    """Checks whether an expression is a time, a rate, or a cron expression with existing minutes, hours and months."""
    if expression.startswith("at("):
        try:
            return dt.datetime.fromisoformat(expression[3:-1]).tzinfo is None
        except ValueError:
            return False
    if eventbridge._parse_rate_seconds(expression):
        return True
    try:
        minutes, hours, _, months, *_ = eventbridge._parse_cron_fields(expression) or ((), (), (), ())
        return _within(minutes, 59) and _within(hours, 23) and _within(months, 12)
    except (ValueError, TypeError):
        return False


def _within(values: Collection[int], most: int) -> bool:
    return bool(values) and max(values) <= most


def _tick() -> None:
    now = dt.datetime.now(dt.UTC)
    for key, schedule in list(scheduler._schedules._data.items()):
        since = _done.setdefault(key, max(_created(schedule) - _JUST, now - _LATEST))
        _done[key] = now
        if _over(schedule, now) and schedule.get("ActionAfterCompletion") == "DELETE":
            scheduler._schedules._data.pop(key, None)
        if schedule.get("State") != "ENABLED" or _over(schedule, now) or not _begun(schedule, now):
            continue
        for moment in occurrences(schedule, since, now):
            account, region, _ = key
            set_request_account_id(account)
            set_request_region(region)
            _fire(schedule, moment, account, region)
            if schedule["ScheduleExpression"].startswith("at(") and schedule.get("ActionAfterCompletion") == "DELETE":
                scheduler._schedules._data.pop(key, None)


def _created(schedule: dict[str, Any]) -> dt.datetime:
    return dt.datetime.fromtimestamp(schedule["CreationDate"], dt.UTC)


def _begun(schedule: dict[str, Any], now: dt.datetime) -> bool:
    start = scheduler._to_epoch(schedule.get("StartDate"))
    return start is None or now.timestamp() >= start


def _over(schedule: dict[str, Any], now: dt.datetime) -> bool:
    end = scheduler._to_epoch(schedule.get("EndDate"))
    return end is not None and now.timestamp() > end


def occurrences(schedule: dict[str, Any], since: dt.datetime, until: dt.datetime) -> list[dt.datetime]:
    """Returns the moments in (since, until] at which a schedule is due.

    A rate is first due at its start date, or without one at its creation.
    """
    expression = schedule["ScheduleExpression"]
    zone = ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    if expression.startswith("at("):
        moment = dt.datetime.fromisoformat(expression[3:-1]).replace(tzinfo=zone).astimezone(dt.UTC)
        return [moment] if since < moment <= until else []
    interval = eventbridge._parse_rate_seconds(expression)
    if interval is not None:
        step = dt.timedelta(seconds=interval)
        start = scheduler._to_epoch(schedule.get("StartDate"))
        first = _created(schedule) if start is None else dt.datetime.fromtimestamp(start, dt.UTC)
        moment = first + max(0, (since - first) // step + 1) * step
        return [moment] if moment <= until else []
    fields = eventbridge._parse_cron_fields(expression)
    minute = since.replace(second=0, microsecond=0) + _MINUTE
    due = []
    while minute <= until:
        if fields is not None and _matches(fields, minute, zone):
            due.append(minute)
        minute += _MINUTE
    return due


def _matches(fields: Any, minute: dt.datetime, zone: ZoneInfo) -> bool:
    """Returns whether the local time matches the cron expression; the repeated hour in autumn counts once."""
    local = minute.astimezone(zone)
    if local.fold:
        return False
    wall = local.replace(tzinfo=dt.UTC)
    return bool(eventbridge._cron_next_fire(fields, wall - _MINUTE) == wall)


def _fire(schedule: dict[str, Any], moment: dt.datetime, account: str, region: str) -> None:
    target, execution_id = dict(schedule["Target"]), str(uuid.uuid4())
    payload = target.get("Input")
    if payload:
        for name, value in {
            "scheduled-time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "execution-id": execution_id,
            "schedule-arn": schedule["Arn"],
            "attempt-number": "1",
        }.items():
            payload = payload.replace(f"<aws.scheduler.{name}>", value)
        target["Input"] = payload
    denied = _denied(target, account, region)
    if denied:
        _dead_letter(schedule, target, denied)
        return
    event = {
        "EventId": execution_id,
        "Source": "aws.scheduler",
        "DetailType": "Scheduled Event",
        "Detail": "{}",
        "Time": time.time(),
        "Resources": [schedule["Arn"]],
        "Account": account,
        "Region": region,
    }
    eventbridge._invoke_target(target, event, schedule)


def _denied(target: dict[str, Any], account: str, region: str) -> str:
    """Returns why the schedule's role may not invoke the target; empty if it may."""
    service = target["Arn"].split(":")[2]
    action = _TARGET_ACTIONS.get(service)
    if action is None:
        return f"the local account's scheduler has no targets of {service}"
    role = target["RoleArn"].rsplit("/", 1)[-1]
    caller = f"arn:aws:sts::{account}:assumed-role/{role}/scheduler"
    context = EvalContext(caller, "AssumedRole", account, action, target["Arn"], region)
    decision = evaluate(context, _gather_role_policies(role, account)).decision
    log.record(caller, action, target["Arn"], decision, "scheduler")
    return "" if decision == "Allow" else f"{caller} is not authorized to perform {action} on {target['Arn']}"


def _dead_letter(schedule: dict[str, Any], target: dict[str, Any], reason: str) -> None:
    _logger.warning("schedule %s: %s", schedule["Arn"], reason)
    queue = (target.get("DeadLetterConfig") or {}).get("Arn")
    if not queue:
        return
    attributes = {
        "ERROR_CODE": "AccessDeniedException",
        "ERROR_MESSAGE": reason,
        "SCHEDULE_ARN": schedule["Arn"],
        "TARGET_ARN": target["Arn"],
    }
    message = {
        "MessageBody": target.get("Input") or json.dumps({}),
        "MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()},
    }
    sqs._act_send_message(message, sqs._queue_url(queue.rsplit(":", 1)[-1]))
