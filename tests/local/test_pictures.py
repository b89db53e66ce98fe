"""What pictures of dashboards show: metrics as CloudWatch reckons them, widgets where their definition has them."""

from __future__ import annotations

from typing import Any

import pytest

from local.pictures import board
from local.pictures.curves import Curve, NotUnderstoodError, Span, curves
from local.pictures.points import Point, duration, points
from local.pictures.take import looked

START = 1_800_000_000  # a whole minute
WINDOW = Span(START, START + 240, 60)


def line(after: float, deployment: str = "Troop", **values: Any) -> dict[str, Any]:
    """A function's line, so many seconds after the start; what is text is a dimension."""
    names = [name for name, value in values.items() if not isinstance(value, str)]
    others = [name for name in values if name not in names]
    metrics = {
        "Namespace": "Troop",
        "Dimensions": [["deployment", *others]],
        "Metrics": [{"Name": name, "Unit": "Count"} for name in names],
    }
    header = {"_aws": {"Timestamp": (START + after) * 1000, "CloudWatchMetrics": [metrics]}}
    return {**header, "deployment": deployment, **values}


LINES = [
    line(-1, Seconds=99),
    line(1, Seconds=[1, 2]),
    line(59, Seconds=6),
    line(121, Seconds=4),
    line(130, "Troop-Staging", Seconds=50),
    line(5, reason="opted-out", Decisions=2),
    line(65, reason="due", Decisions=1),
    line(66, reason="due", Decisions=3),
    line(66, "Troop-Staging", reason="too-small", Decisions=8),
]


def metric(stat: str, **options: Any) -> dict[str, Any]:
    return {"metrics": [["Troop", "Seconds", "deployment", "Troop", {"stat": stat, "period": 3600, **options}]]}


def search(expression: str) -> dict[str, Any]:
    return {"metrics": [[{"expression": expression, "period": 60, "label": ""}]]}


EXPRESSION = """SEARCH('{Troop,deployment,reason} MetricName="Decisions" deployment="Troop"', 'Sum')"""


def test_a_line_has_a_point_for_each_value_and_each_set_of_dimensions() -> None:
    entry = line(7, kind="benchmark", Nodes=[2, 3])
    entry["_aws"]["CloudWatchMetrics"][0]["Dimensions"].append(["deployment"])
    both = (("deployment", "Troop"), ("kind", "benchmark"))
    assert points([entry]) == [
        Point(START + 7, "Troop", "Nodes", dimensions, value) for dimensions in (both, both[:1]) for value in (2, 3)
    ]


def test_lambda_writes_how_long_a_call_has_taken() -> None:
    report = "REPORT RequestId: 4c-1\tDuration: 512.5 ms\tBilled Duration: 513 ms\tMemory Size: 256 MB"
    assert duration(START, report, "api") == Point(START, "AWS/Lambda", "Duration", (("FunctionName", "api"),), 512.5)
    assert duration(START, "END RequestId: 4c-1", "api") is None


@pytest.mark.parametrize(
    ("stat", "first", "third"),
    [
        ("Sum", 9, 4),
        ("Maximum", 6, 4),
        ("Minimum", 1, 4),
        ("Average", 3, 4),
        ("SampleCount", 3, 1),
        ("p50", 2, 4),
        ("p99", 6, 4),
    ],
)
def test_statistics_by_period_of_what_is_in_sight(stat: str, first: float, third: float) -> None:
    (curve,) = curves(metric(stat, label="all", yAxis="right"), points(LINES), WINDOW)
    assert curve == Curve("all", True, ((START, first), (START + 120, third)))


def test_the_whole_range_is_one_period_where_a_number_is_of_all_of_it() -> None:
    (curve,) = curves(metric("Sum") | {"setPeriodToTimeRange": True}, points(LINES), WINDOW)
    assert curve.values == ((START, 13),)


def test_metrics_keep_their_own_periods_where_a_viewer_chooses_none() -> None:
    (curve,) = curves(metric("Sum"), points(LINES), Span(START, START + 3700))
    assert curve.values == ((START, 13),)


def test_a_search_finds_one_curve_for_each_value_of_this_deployment() -> None:
    assert curves(search(EXPRESSION), points(LINES), WINDOW) == [
        Curve("due", False, ((START + 60, 4),)),
        Curve("opted-out", False, ((START, 2),)),
    ]


def test_filled_a_search_has_a_value_in_every_period() -> None:
    due, _ = curves(search(f"FILL({EXPRESSION}, 0)"), points(LINES), WINDOW)
    assert due.values == ((START, 0), (START + 60, 4), (START + 120, 0), (START + 180, 0))


@pytest.mark.parametrize("properties", [metric("TM(10%:90%)"), search("m1 / m2")])
def test_unknown_expression_is_an_error(properties: dict[str, Any]) -> None:
    with pytest.raises(NotUnderstoodError):
        curves(properties, points(LINES), WINDOW)


def test_widgets_are_where_their_definition_has_them_and_show_what_there_is() -> None:
    properties = metric("Sum", label="Seconds")["metrics"]
    body = {
        "widgets": [
            {"type": "text", "width": 24, "height": 2, "properties": {"markdown": "**halt**"}},
            {
                "type": "metric",
                "x": 4,
                "y": 2,
                "width": 4,
                "height": 3,
                "properties": {"title": "<All>", "view": "singleValue", "metrics": properties},
            },
            {
                "type": "metric",
                "x": 8,
                "y": 2,
                "width": 8,
                "height": 5,
                "properties": {"title": "Calls", "metrics": [["AWS/Lambda", "Errors", "FunctionName", "api"]]},
            },
            {"type": "custom", "x": 0, "y": 7, "width": 24, "height": 5, "properties": {"title": "Latest"}},
            {"type": "alarm", "x": 0, "y": 5, "width": 8, "height": 2, "properties": {"alarms": ["arn:a:alarm:Late"]}},
        ]
    }
    seen = board.Seen(points(LINES), ["<table></table>"], {"arn:a:alarm:Late": "ALARM"}, WINDOW, "dark")
    shown = board.page("Troop: business", body, seen)
    assert board.size(body) == (24 * board.COLUMN - board.GAP, 12 * board.ROW - board.GAP)
    assert board.place(body["widgets"][1]) == board.Place(208, 100, 198, 140)
    assert "left: 208px; top: 100px; width: 198px; height: 140px" in shown
    for part in (
        "<strong>halt</strong>",
        "&lt;All&gt;",
        "<b>4</b>",
        "<table></table>",
        '<span class="alarm">Late</span>',
    ):
        assert part in shown
    assert shown.count("No data available") == 1, "nobody knows how many errors Lambda has counted"


def test_a_picture_begins_before_the_first_point_and_ends_after_now() -> None:
    assert looked(points([line(61, Ticks=1)]), START + 130) == Span(START, START + 180, 60)
