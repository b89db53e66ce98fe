"""Reads the dashboards of a deployment from local AWS: their definitions and data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from local.demo.failure import DemoFailed
from local.launcher import LocalAccount
from local.pictures.board import place
from local.pictures.points import Point, duration, points

THEMES = ("light", "dark")


def bodies(account: LocalAccount, deployment: str) -> dict[str, dict[str, Any]]:
    """Returns the deployed dashboard bodies, by the last word of their names in lower case."""
    cloudwatch = account.client("cloudwatch")
    names = [one["DashboardName"] for one in cloudwatch.list_dashboards()["DashboardEntries"]]
    return {
        name.rpartition("-")[2].lower(): json.loads(cloudwatch.get_dashboard(DashboardName=name)["DashboardBody"])
        for name in names
        if name.startswith(f"{deployment}-")
    }


def measured(account: LocalAccount, deployment: str) -> list[Point]:
    """Returns all measurements in the logs of functions."""
    pages = account.client("lambda").get_paginator("list_functions").paginate()
    functions = [one for page in pages for one in page["Functions"] if one["FunctionName"].startswith(f"{deployment}-")]
    events = account.client("logs").get_paginator("filter_log_events")
    measurements: list[Point] = []
    for function in functions:
        for page in events.paginate(logGroupName=function["LoggingConfig"]["LogGroup"]):
            for event in page["events"]:
                if '"_aws"' in event["message"]:
                    measurements += points([json.loads(event["message"])])
                elif took := duration(event["timestamp"] / 1000, event["message"], function["FunctionName"]):
                    measurements.append(took)
    return measurements


def alarms(account: LocalAccount) -> list[dict[str, Any]]:
    """Lists all alarms, with ``AlarmArn``, ``AlarmName``, ``StateValue`` and other keys."""
    pages = account.client("cloudwatch").get_paginator("describe_alarms").paginate()
    return [one for page in pages for kind in ("MetricAlarms", "CompositeAlarms") for one in page.get(kind, ())]


def custom(account: LocalAccount, widgets: Sequence[Mapping[str, Any]], theme: str) -> list[str]:
    """Returns the HTML of each custom widget of a dashboard, from its function, for a theme.

    Raises:
        DemoFailed: the function fails.
    """
    pages = []
    for widget in widgets:
        properties = widget["properties"]
        at = place(widget)
        context = {"theme": theme, "width": at.width, "height": at.height, "timezone": UTC}
        event = {**properties.get("params", {}), "widgetContext": {**context, "params": properties.get("params", {})}}
        answer = account.client("lambda").invoke(FunctionName=properties["endpoint"], Payload=json.dumps(event))
        html = json.loads(answer["Payload"].read())
        if not isinstance(html, str):
            raise DemoFailed(f"{properties['endpoint']} returned {html} for {event}")
        pages.append(html)
    return pages


UTC = {"label": "UTC", "offsetISO": "+00:00", "offsetInMinutes": 0}
"""The time zone of the viewer."""
