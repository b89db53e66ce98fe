"""Names of metrics and checks as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.thresholds.metric import BadNameError, Metric, Side, check_metric, parse

TEXT = st.from_regex(r"[A-Za-z0-9_.:#-]([A-Za-z0-9_.:/# -]*[A-Za-z0-9_.:#-])?", fullmatch=True)
WORD = st.from_regex(r"[A-Za-z0-9_.:-]+", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("AWS/SQS/NumberOfMessagesSent", Metric("AWS/SQS", "NumberOfMessagesSent")),
        (
            "AWS/ApplicationELB/TargetResponseTime{LoadBalancer=app/web/50dc6c495c0c9188}",
            Metric("AWS/ApplicationELB", "TargetResponseTime", (("LoadBalancer", "app/web/50dc6c495c0c9188"),)),
        ),
        (" Mine/Lag { a=1, b = x=y ,} ", Metric("Mine", "Lag", (("a", "1"), ("b", "x=y")))),
        ("AWS/EC2/CPUUtilization{}", Metric("AWS/EC2", "CPUUtilization")),
    ],
)
def test_a_metric_is_typed_with_its_dimensions(text: str, metric: Metric) -> None:
    assert parse(text) == metric


@given(TEXT, WORD, st.lists(st.tuples(WORD, TEXT), max_size=3))
def test_the_shown_name_is_the_typed_one(namespace: str, name: str, dimensions: list[tuple[str, str]]) -> None:
    metric = Metric(namespace, name, tuple(dimensions))
    assert parse(str(metric)) == metric


@pytest.mark.parametrize(
    "text", ["", "CPU", "/CPU", "AWS/", "AWS/EC2/CPU{a}", "AWS/EC2/CPU{=1}", "AWS/EC2/CPU{a=}", "a/b{", "a/b}c"]
)
def test_other_forms_are_refused_with_the_form(text: str) -> None:
    with pytest.raises(BadNameError, match="Namespace/Metric"):
        parse(text)


def test_checks_have_metrics_of_the_deployment() -> None:
    assert str(check_metric("units-unrecovered", "Blue", None)) == "Troop/UnitsUnrecovered{deployment=Blue}"
    fleet = check_metric("latency", "Blue", "workers")
    assert str(fleet) == "Troop/FleetHealth{deployment=Blue,fleet=workers,check=latency}"
    assert (fleet.usual_statistic(Side.ABOVE), fleet.usual_statistic(Side.BELOW)) == ("Maximum", "Minimum")
    with pytest.raises(BadNameError, match=r"units-unrecovered, halted-itself, ticks-missing.*--fleet NAME"):
        check_metric("latency", "Blue", None)


@pytest.mark.parametrize(
    ("metric", "side"),
    [
        (Metric("AWS/ApplicationELB", "HealthyHostCount"), Side.BELOW),
        (Metric("AWS/ApplicationELB", "UnHealthyHostCount"), Side.ABOVE),
        (Metric("AWS/RDS", "FreeStorageSpace"), Side.BELOW),
        (Metric("AWS/EC2", "CPUCreditBalance"), Side.BELOW),
        (Metric("AWS/EC2", "CPUUtilization"), Side.ABOVE),
        (Metric("AWS/SQS", "ApproximateAgeOfOldestMessage"), Side.ABOVE),
        (check_metric("work", "Troop", "workers"), Side.BELOW),
        (check_metric("latency", "Troop", "workers"), Side.ABOVE),
        (check_metric("units-unrecovered", "Troop", None), Side.ABOVE),
    ],
)
def test_the_name_tells_where_values_are_bad(metric: Metric, side: Side) -> None:
    assert metric.usual_side is side
