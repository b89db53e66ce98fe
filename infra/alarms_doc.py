"""Generates the tables of alarms and saved queries in docs/guides/runbook.md: ``python -m infra.alarms_doc``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra import ROOT
from infra.generated import filled, table
from infra.queries import QUERIES
from infra.roles_doc import synthesised
from troop.shared.metrics import NAMESPACE

PATH = ROOT / "docs" / "guides" / "runbook.md"

Template = Mapping[str, Any]

TOPICS = {"alarms to act on now": "AlarmsActNow", "alarms that warn": "AlarmsWarning"}
"""Part of the document -> the beginning of the logical id of its topic."""


def text(document: str, template: Template) -> str:
    """Returns docs/guides/runbook.md with current tables.

    Args:
        document: as it is now.
        template: with every alarm: of the default settings, with faults inside instances.
    """
    for part, topic in TOPICS.items():
        document = filled(document, part, table(["alarm", "what happened", "measured"], _alarms(template, topic)))
    return filled(document, "saved queries", table(["query", "shows"], [(one.title, one.shows) for one in QUERIES]))


def _alarms(template: Template, topic: str) -> Iterator[Sequence[str]]:
    for resource in template["Resources"].values():
        alarm = resource.get("Properties", {})
        if resource["Type"] == "AWS::CloudWatch::Alarm" and alarm["AlarmActions"][0]["Ref"].startswith(topic):
            name = alarm["AlarmName"]["Fn::Join"][1][-1].removeprefix("-")
            summary, _, link = alarm["AlarmDescription"].partition(" What to do: ")
            yield f"[`{name}`](#{link.partition('#')[2]})", summary, _measured(alarm)


def _measured(alarm: Mapping[str, Any]) -> str:
    """Returns the metric of an alarm and the value at which it goes off."""
    statistics = [one["MetricStat"] for one in alarm.get("Metrics", ()) if "MetricStat" in one]
    metric = statistics[0]["Metric"] if statistics else alarm
    seconds = statistics[0]["Period"] if statistics else alarm["Period"]
    namespace = "" if metric["Namespace"] == NAMESPACE else f"{metric['Namespace']} "
    name = f"`{namespace}{metric['MetricName']}`"
    if alarm["ComparisonOperator"] == "LessThanThreshold":
        return f"no {name} for {_duration(seconds * alarm['EvaluationPeriods'])}"
    return f"{name} of {alarm['Threshold']:g} or more in {_duration(seconds)}"


def _duration(seconds: int) -> str:
    if seconds == 3600:
        return "an hour"
    return f"{seconds // 60} minutes" if seconds < 3600 else f"{seconds // 3600} hours"


if __name__ == "__main__":
    PATH.write_text(text(PATH.read_text(encoding="utf-8"), synthesised(inside_instances=True)), encoding="utf-8")
