"""The dashboards: that CloudWatch would take them, and that they show what there is under the name that it has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from infra.dashboards import CUSTOM, MOST_NAMED, WAITED_FOR, WIDTH
from tests.infra.cfn import in_partition, resources_of, text
from troop.shared.metrics import SECOND, Metric

Template = Mapping[str, Any]

MOST_METRICS, MOST_OF_ALL, MOST_WIDGETS = 500, 2500, 500
"""CloudWatch's quotas: metrics of a widget and of a dashboard, widgets of a dashboard."""


@pytest.fixture
def template(inside: Template) -> Template:
    """The default settings with faults inside instances, which need all metrics."""
    return inside


def bodies(template: Template) -> dict[str, dict[str, Any]]:
    dashboards = resources_of(template, "AWS::CloudWatch::Dashboard")
    return {
        name.removeprefix("Dashboards"): json.loads(
            text(in_partition(template, one["Properties"]["DashboardBody"], "aws"))
        )
        for name, one in dashboards.items()
    }


def curves(body: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str], str]]:
    """(namespace and name, dimensions, statistic) of every metric that is not searched for."""
    for row in (row for widget in body["widgets"] for row in widget["properties"].get("metrics", ())):
        *names, options = row
        if names:
            namespace, metric, *dimensions = names
            yield (
                f"{namespace}/{metric}",
                dict(zip(dimensions[::2], dimensions[1::2], strict=True)),
                options.get("stat", ""),
            )


def searches(body: Mapping[str, Any]) -> Iterator[str]:
    for row in (row for widget in body["widgets"] for row in widget["properties"].get("metrics", ())):
        if len(row) == 1 and "SEARCH" in row[0]["expression"]:
            yield row[0]["expression"]


def test_cloudwatch_would_take_them(template: Template, blue: Template) -> None:
    for variant in (template, blue):
        for name, body in bodies(variant).items():
            widgets = body["widgets"]
            counts = [len(widget["properties"].get("metrics", ())) for widget in widgets]
            assert len(widgets) <= MOST_WIDGETS, name
            assert max(counts) <= MOST_METRICS, name
            assert sum(counts) <= MOST_OF_ALL, name
            named = {(metric, str(dimensions)) for metric, dimensions, _ in curves(body)}
            assert len(named) <= MOST_NAMED, f"{name} would not be free any more"
            assert all(widget["x"] + widget["width"] <= WIDTH for widget in widgets)
            places = [(w["x"] + x, w["y"] + y) for w in widgets for x in range(w["width"]) for y in range(w["height"])]
            assert len(places) == len(set(places)), f"widgets of {name} lie on one another"


def test_titles_fit_into_a_narrow_window(template: Template) -> None:
    """Of 1280 pixels: 52 for a column, 60 of a widget for its frame and menu, and at most 8 for a letter."""
    for body in bodies(template).values():
        for widget in body["widgets"]:
            title = widget["properties"].get("title", "")
            assert 8 * len(title) <= 52 * widget["width"] - 60, f"{title} would be cut off"


def test_names_are_unique_in_the_account_for_they_are_global(template: Template) -> None:
    dashboards = resources_of(template, "AWS::CloudWatch::Dashboard").values()
    names = {text(one["Properties"]["DashboardName"]) for one in dashboards}
    assert names == {f"<AWS::StackName>-<AWS::Region>-{title}" for title in ("Business", "Operations")}


def test_they_show_this_deployment_and_region_alone(template: Template) -> None:
    for body in bodies(template).values():
        for widget in body["widgets"]:
            if widget["type"] == "metric":
                assert widget["properties"]["region"] == "<AWS::Region>"
        for name, dimensions, _ in curves(body):
            assert any(value.startswith("<") for value in dimensions.values()), name
        assert not re.search(r"amazonaws|arn:aws|console\.", json.dumps(body)), "no partition and no console is named"


def test_every_metric_is_shown_with_the_dimensions_it_is_written_with(template: Template) -> None:
    shown: dict[str, set[frozenset[str]]] = {}
    for body in bodies(template).values():
        for name, dimensions, _ in curves(body):
            if name.startswith("Troop/"):
                shown.setdefault(name.removeprefix("Troop/"), set()).add(frozenset(dimensions))
        for expression in (one for one in searches(body) if "{AWS/" not in one):
            schema = r"\{Troop,([\w,]+)\} MetricName=\"(\w+)\" deployment=\"<AWS::StackName>\""
            match = re.fullmatch(rf"(?:FILL\()?SEARCH\('{schema}', '(?:Sum|Maximum)'\)(?:, 0\))?", expression)
            assert match, expression
            shown.setdefault(match[2], set()).add(frozenset(match[1].split(",")))
    expected = {
        metric.value: {frozenset({"deployment", *filter(None, SECOND.get(metric, "").split(","))})} for metric in Metric
    }
    assert shown == expected


def test_sums_are_zero_where_nothing_was_counted_and_maxima_are_not(template: Template) -> None:
    """A count is written only if there is one: without zeros, a good week is "--" and "No data available"."""
    for body in bodies(template).values():
        for widget in (one["properties"] for one in body["widgets"] if one["type"] == "metric"):
            rows = widget["metrics"]
            shown = {one["expression"] for *names, one in rows if not names}
            for *names, options in rows:
                is_hidden = options.get("visible") is False
                assert is_hidden == (bool(names) and options.get("stat") == "Sum"), f"{widget['title']}: {names}"
                assert not is_hidden or f"FILL({options['id']}, 0)" in shown


def test_no_axis_and_no_graph_is_empty_while_nothing_fails(template: Template) -> None:
    for body in bodies(template).values():
        for widget in (one["properties"] for one in body["widgets"] if one["type"] == "metric"):
            if widget.get("view") == "singleValue":
                continue
            title, rows = widget["title"], widget["metrics"]
            right = [one for *_, one in rows if one.get("yAxis") == "right"]
            assert ("right" in widget["yAxis"]) == bool(right), title
            sums = [one for *names, one in rows if not names and "FILL(" in one["expression"]]
            assert sums or title in ("Seconds to recovery", "Duration in milliseconds, p99"), title


def test_recoveries_are_shown_by_their_percentiles(template: Template) -> None:
    stats = {stat for name, _, stat in curves(bodies(template)["Business"]) if name == "Troop/RecoverySeconds"}
    assert stats == {"p50", "p95", "Maximum"}


def test_every_function_workflow_queue_and_alarm_is_there(template: Template) -> None:
    operations = bodies(template)["Operations"]
    seen: dict[str, set[str]] = {}
    for name, dimensions, _ in curves(operations):
        seen.setdefault(name, set()).add(next(iter(dimensions.values())))
    functions = {f"<{name}>" for name in resources_of(template, "AWS::Lambda::Function")}
    assert seen["AWS/Lambda/Errors"] == functions - {"<Risks>"}
    assert seen["AWS/Lambda/Duration"] == {f"<{name.title().replace('_', '')}>" for name in WAITED_FOR}
    machines = {f"<{name}>" for name in resources_of(template, "AWS::StepFunctions::StateMachine")}
    assert seen["AWS/States/ExecutionsFailed"] == machines | {"<ChaosMachine>/TerminateAll"}
    assert seen["AWS/States/ExecutionsTimedOut"] == {"<ChaosMachine>", "<BenchmarksTeardownMachine>"}
    for one in resources_of(template, "AWS::CloudWatch::Alarm").values():
        alarm = one["Properties"]
        if "Metrics" in alarm:
            continue  # of a table and its indices: test_writes_that_an_index_holds_up_are_seen
        name = f"{alarm['Namespace']}/{alarm['MetricName']}"
        if not name.startswith("Troop/") and not name.startswith("AWS/States/ExecutionsAborted"):
            assert text(alarm["Dimensions"][0]["Value"]) in seen[name], "what an alarm is about can be looked at"
    queues = {f"<{name}.QueueName>" for name in resources_of(template, "AWS::SQS::Queue")}
    assert seen["AWS/SQS/ApproximateNumberOfMessagesVisible"] == queues
    assert {"AWS/ApiGateway/Latency", "AWS/ApiGateway/4XXError", "AWS/ApiGateway/5XXError"} <= set(seen)
    alarms = {arn for w in operations["widgets"] if w["type"] == "alarm" for arn in w["properties"]["alarms"]}
    assert alarms == {f"<{name}.Arn>" for name in resources_of(template, "AWS::CloudWatch::Alarm")}


def test_writes_that_an_index_holds_up_are_seen(template: Template) -> None:
    """An index that is throttled throttles its table, and does not count as the table."""
    expressions = [one for one in searches(bodies(template)["Operations"]) if "GlobalSecondaryIndexName}" in one]
    for table in ("Decisions", "Events", "Runs"):
        assert any('"WriteThrottleEvents"' in one and f'TableName="<{table}>"' in one for one in expressions)


def test_the_first_thing_on_each_says_what_to_do_first(template: Template, green: Template) -> None:
    for variant, runbook in ((template, "docs/guides/runbook.md"), (green, "(https://wiki.example.com/troop)")):
        for body in bodies(variant).values():
            first = body["widgets"][0]
            assert (first["type"], first["x"], first["y"]) == ("text", 0, 0)
            markdown = first["properties"]["markdown"]
            assert all(part in markdown for part in ("troop halt", "troop doctor", runbook))


@pytest.fixture(scope="module")
def without_benchmarks(synthesised: Callable[..., dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(without dashboards, with them) of stacks without benchmarks."""
    return synthesised(benchmarks=False, dashboards=False), synthesised(benchmarks=False)


def test_a_deployment_need_not_have_any(without_benchmarks: tuple[Template, Template]) -> None:
    assert resources_of(without_benchmarks[0], "AWS::CloudWatch::Dashboard") == {}


def test_widgets_call_the_widgets_function(without_benchmarks: tuple[Template, Template]) -> None:
    business = bodies(without_benchmarks[1])["Business"]
    custom = [widget["properties"] for widget in business["widgets"] if widget["type"] == "custom"]
    assert text(without_benchmarks[1]["Outputs"]["WidgetsFunctionArn"]["Value"]) == "<Widgets.Arn>"
    assert {one["endpoint"] for one in custom} == {"<Widgets.Arn>"}
    assert [one["params"]["widget"] for one in custom] == [name for name in CUSTOM if name not in {"runs", "live"}]
    triggers = {"refresh": True, "resize": True, "timeRange": False}  # they fold when narrow, and know no range of time
    assert all(one["updateOn"] == triggers for one in custom)
    assert not [e for e in searches(business) if re.search(r"Run|Nodes", e)], "nothing of benchmarks without them"
