"""Defines two dashboards of CloudWatch: what Troop does for the business, and Troop's own health.

Nothing in them depends on a region's console or a partition. Metrics whose dimensions have unknown values (reasons,
states, kinds) are found by a search; all others are named. Each dashboard names at most :data:`MOST_NAMED` metrics:
three dashboards of that size are free in every account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.metric_helpers import (
    execution_metric,
    filled,
    throttled,
    throttled_indices,
    troop_metric,
    troop_metrics,
    waiting_in,
)
from infra.partitions import in_china
from troop.chaos.verdict import VerdictValue
from troop.shared.metrics import SECOND, VERDICT, Metric

WIDTH = 24
"""The width of a dashboard, in CloudWatch's units."""

MOST_NAMED = 50

WAITED_FOR = ("decide", "terminate", "sweep", "cell")
"""Functions that a workflow waits for, or with much work in one call. For the API's, API Gateway counts the latency."""

COUNTED = ("request", "risks")
"""The functions without curves of their own: "failed steps" counts their failures, and more metrics would cost."""

TIMED = ("ticks", "teardowns")
"""Workflows that should end well before their timeout."""

_SUM, _MAXIMUM = cloudwatch.Stats.SUM, cloudwatch.Stats.MAXIMUM
_QUARTER, _HOUR, _DAY = cdk.Duration.minutes(15), cdk.Duration.hours(1), cdk.Duration.days(1)

CUSTOM = {
    "events": "Latest events",
    "decisions": "Today's decisions, and why",
    "units": "Units and their policy",
    "runs": "Benchmark runs",
    "live": "Live benchmark",
}
"""The custom widgets, with their titles."""

BENCHMARK_WIDGETS = frozenset({"runs", "live"})
"""The custom widgets that exist only in deployments that run benchmarks."""


@dataclass(frozen=True)
class Shown:
    """The parts of a deployment that its dashboards show.

    Attributes:
        functions: by their short names.
        machines: ARNs of the workflows, and of a map's children, by label.
        busy: the functions with many concurrent calls.
        written: the tables with many concurrent writes.
        queues: of dead letters, by label.
        api: the API, whose stage is measured.
        act_now_alarms, warning_alarms: alarms of each class.
        benchmarks: whether the deployment runs benchmarks.
        inside_instances: whether it has faults inside instances.
        widgets: the function that renders custom widgets; None for no custom widgets.
    """

    functions: Mapping[str, lambda_.IFunction]
    machines: Mapping[str, str]
    busy: Sequence[lambda_.IFunction]
    written: Sequence[dynamodb.ITable]
    queues: Mapping[str, sqs.IQueue]
    api: apigateway.RestApi
    act_now_alarms: Sequence[cloudwatch.IAlarm]
    warning_alarms: Sequence[cloudwatch.IAlarm]
    benchmarks: bool
    inside_instances: bool = False
    widgets: lambda_.IFunction | None = None
    runbook_url: str = field(default="docs/guides/runbook.md")


class Dashboards(Construct):
    """The two dashboards. Their names include the region, because they are global in an account.

    Attributes:
        business: terminations, recoveries, units that take part, benchmarks and their cost.
        operations: ticks, failures, latencies, dead letters, alarms.
    """

    def __init__(self, scope: Construct, construct_id: str, *, shown: Shown) -> None:
        super().__init__(scope, construct_id)
        self.business = self._dashboard("Business", cdk.Duration.days(7), _business(self, shown))
        self.operations = self._dashboard("Operations", cdk.Duration.days(1), _operations(shown))

    def _dashboard(
        self, title: str, interval: cdk.Duration, rows: Sequence[Sequence[cloudwatch.IWidget]]
    ) -> cloudwatch.Dashboard:
        return cloudwatch.Dashboard(
            self,
            title,
            dashboard_name=f"{cdk.Aws.STACK_NAME}-{cdk.Aws.REGION}-{title}",
            default_interval=interval,
            period_override=cloudwatch.PeriodOverride.INHERIT,
            widgets=[list(row) for row in rows],
        )


def _business(scope: Construct, shown: Shown) -> list[list[cloudwatch.IWidget]]:
    rows: list[list[cloudwatch.IWidget]] = [
        [
            _text(
                f"## {cdk.Aws.STACK_NAME}: what chaos and benchmarks do\n"
                "**Is something wrong? `troop halt --reason WHY` stops all terminations at once, and loses nothing; "
                "`troop resume` continues.** Then run `troop doctor`, and read "
                f"{_runbook(shown)}.\n\n"
                "Why a unit was terminated or skipped: `troop why UNIT`. Exclude a unit: `troop opt-out UNIT`. "
                "Preview decisions: `troop plan`. docs/reference/metrics.md describes every metric."
            )
        ],
        [
            _number(
                "Terminations",
                [
                    troop_metric(Metric.TERMINATIONS, _SUM, _DAY, "in this time"),
                    *_inside(shown, troop_metric(Metric.INJECTIONS, _SUM, _DAY, "faults inside instances")),
                ],
                whole=True,
            ),
            _number(
                "Recoveries",
                [
                    troop_metric(Metric.RECOVERIES, _SUM, _DAY, "in time"),
                    troop_metric(Metric.UNRECOVERED, _SUM, _DAY, "failed"),
                ],
                whole=True,
            ),
            _number(
                "Verdicts",
                [
                    troop_metric(Metric.VERDICTS, _SUM, _DAY, value.lower(), **{VERDICT: value})
                    for value in VerdictValue
                ],
                whole=True,
            ),
            _number(
                "Out of chaos now",
                [
                    troop_metric(Metric.UNITS_UNRECOVERED, _MAXIMUM, _QUARTER, "unrecovered units"),
                    troop_metric(Metric.HALTED_ITSELF, _MAXIMUM, _QUARTER, "halted itself"),
                    *_inside(shown, troop_metric(Metric.UNPROVEN_FAULTS, _MAXIMUM, _QUARTER, "unproven faults")),
                ],
            ),
            _number("Taking part today", [troop_metrics(Metric.UNITS_TAKING_PART, _MAXIMUM, _DAY, filled=False)]),
            _number("Opted out today", [troop_metrics(Metric.UNITS_OPTED_OUT, _MAXIMUM, _DAY, filled=False)]),
        ],
        [
            _graph(
                "Outcomes of terminations",
                [
                    troop_metrics(Metric.OUTCOMES, _SUM, _HOUR),
                    troop_metric(Metric.SLOW_RECOVERIES, _SUM, _HOUR, "slow for their unit"),
                ],
            ),
            _graph(
                "Seconds to recovery",
                [
                    troop_metric(Metric.RECOVERY_SECONDS, "p50", _HOUR, "p50"),
                    troop_metric(Metric.RECOVERY_SECONDS, "p95", _HOUR, "p95"),
                    troop_metric(Metric.RECOVERY_SECONDS, _MAXIMUM, _HOUR, "longest"),
                ],
            ),
            _graph("Decisions by reason", [troop_metrics(Metric.DECISIONS, _SUM, _HOUR)], stacked=True),
        ],
        *_custom(shown, ("events",)),  # only the two narrow widgets share a row
        *_custom(shown, ("decisions", "runs")),
        *_custom(shown, ("units",)),
    ]
    if shown.benchmarks:
        rows += _custom(shown, ("live",))
        currency = cdk.Fn.condition_if(in_china(scope), "CNY", "USD").to_string()
        rows.append(
            [
                _graph(
                    "Runs that ended, leftovers",
                    [
                        troop_metrics(Metric.RUNS_ENDED, _SUM, _DAY),
                        troop_metric(Metric.LEFT_BEHIND, _MAXIMUM, _QUARTER, "resources left behind"),
                        troop_metric(Metric.REAPER_FINDS, _MAXIMUM, _QUARTER, "found by the reaper"),
                        troop_metric(Metric.REAPER_OFF, _MAXIMUM, _QUARTER, "reaper off"),
                        troop_metric(Metric.STARTS_REFUSED, _SUM, _HOUR, "refused starts of schedules"),
                    ],
                ),
                _graph(
                    "Cost of benchmarks and fleets",
                    [troop_metric(Metric.RUN_COST, _SUM, _DAY, "a day", **{SECOND[Metric.RUN_COST]: currency})],
                ),
                _graph(
                    "Running now",
                    [troop_metrics(Metric.NODES_ALIVE, _MAXIMUM, _QUARTER)],
                    right=[troop_metrics(Metric.RUNS_OPEN, _MAXIMUM, _QUARTER)],
                    names=("nodes", "runs and fleets"),
                ),
            ]
        )
        checks: list[cloudwatch.IMetric] = [
            troop_metrics(Metric.FLEET_HEALTH, _MAXIMUM, _QUARTER, filled=False),
            troop_metric(Metric.HEALING_LIMITED, _SUM, _QUARTER, "rounds with limited repairs"),
        ]
        rows.append([_graph("Checks of fleets: largest values", checks, share=3)])
    return rows


def _operations(shown: Shown) -> list[list[cloudwatch.IWidget]]:
    stage = shown.api.deployment_stage
    waited_for = [(name, shown.functions[name]) for name in WAITED_FOR if name in shown.functions]
    return [
        [
            _text(
                f"## {cdk.Aws.STACK_NAME}: Troop's own health\n"
                f"**Is an alarm on? Its description links its entry in {_runbook(shown)}. "
                "If in doubt, run `troop halt --reason WHY` first: it loses nothing.** "
                "`troop doctor` lists problems and what to do. Repairs counts what Troop repaired by itself.\n\n"
                "Logs: see the saved queries of CloudWatch Logs Insights, in the folder with the deployment's name."
            )
        ],
        [
            cloudwatch.AlarmStatusWidget(
                title="Act now", alarms=list(shown.act_now_alarms), width=WIDTH // 2, height=5
            ),
            cloudwatch.AlarmStatusWidget(
                title="Warning", alarms=list(shown.warning_alarms), width=WIDTH // 2, height=5
            ),
        ],
        [
            _graph(
                "Ticks",
                [
                    troop_metric(Metric.TICKS, _SUM, _QUARTER, "decided"),
                    troop_metric(Metric.MISSING_TICKS, _MAXIMUM, _QUARTER, "missing"),
                ],
            ),
            _graph(
                "What failed, was throttled or repaired: nothing at zero",
                [
                    *(execution_metric("Failed", machine, _QUARTER, name) for name, machine in shown.machines.items()),
                    *(
                        execution_metric("TimedOut", shown.machines[name], _QUARTER, f"{name}: timed out")
                        for name in TIMED
                        if name in shown.machines
                    ),
                    *(
                        one.metric_errors(period=_QUARTER, statistic=_SUM, label=f"errors of {name}")
                        for name, one in shown.functions.items()
                        if name not in COUNTED
                    ),
                    *(
                        one.metric_throttles(period=_QUARTER, statistic=_SUM, label=f"throttled calls of {name}")
                        for name, one in shown.functions.items()
                        if one in shown.busy
                    ),
                    *(throttled(one, "Write", _QUARTER, f"throttled writes to {one.node.id}") for one in shown.written),
                    *(throttled_indices(one, "Write", _QUARTER) for one in shown.written),
                    *(waiting_in(queue, f"dead letters: {name}") for name, queue in shown.queues.items()),
                    troop_metric(Metric.FAILING_CHECKS, _MAXIMUM, _QUARTER, "failing checks"),
                    troop_metric(Metric.STEPS_FAILED, _SUM, _QUARTER, "failed steps"),
                    troop_metric(Metric.NOTIFICATIONS_FAILED, _SUM, _QUARTER, "failed notifications"),
                    stage.metric_server_error(period=_QUARTER, statistic=_SUM, label="API answers 5xx"),
                    troop_metrics(Metric.REPAIRS, _SUM, _HOUR),
                ],
                share=2,
            ),
        ],
        [
            _graph(
                "Duration in milliseconds, p99",
                [one.metric_duration(period=_QUARTER, statistic="p99", label=name) for name, one in waited_for]
                + [stage.metric_latency(period=_QUARTER, statistic="p99", label="API, with API Gateway")],
            ),
            _graph(
                "API requests",
                [
                    stage.metric_count(period=_QUARTER, statistic=_SUM, label="all"),
                    stage.metric_client_error(period=_QUARTER, statistic=_SUM, label="4xx"),
                ],
            ),
            _graph("Notifications", [troop_metric(Metric.NOTIFICATIONS, _SUM, _QUARTER, "sent")]),
        ],
    ]


def _custom(shown: Shown, names: Sequence[str]) -> list[list[cloudwatch.IWidget]]:
    """Returns a row of widgets that a function renders; no row without the function."""
    if shown.widgets is None:
        return []
    there = [name for name in names if shown.benchmarks or name not in BENCHMARK_WIDGETS]
    return [
        [
            cloudwatch.CustomWidget(
                title=CUSTOM[name],
                function_arn=shown.widgets.function_arn,
                params={"widget": name},
                width=WIDTH // len(there),
                height=6 if name == "live" else 9,
                update_on_time_range_change=False,
            )
            for name in there
        ]
    ]


def _inside(shown: Shown, metric: cloudwatch.IMetric) -> list[cloudwatch.IMetric]:
    """Returns a metric that exists only with faults inside instances, if there are any."""
    return [metric] if shown.inside_instances else []


def _runbook(shown: Shown) -> str:
    """Returns a link if the runbook's address opens in a browser; otherwise its path."""
    url = shown.runbook_url
    return f"[the runbook]({url})" if url.startswith("https://") else f"the runbook, {url}"


def _text(markdown: str) -> cloudwatch.TextWidget:
    return cloudwatch.TextWidget(markdown=markdown, width=WIDTH, height=3)


def _number(title: str, metrics: Sequence[cloudwatch.IMetric], *, whole: bool = False) -> cloudwatch.SingleValueWidget:
    """Returns a widget with the latest value or, with ``whole``, the sum over the dashboard's time range."""
    return cloudwatch.SingleValueWidget(
        title=title, metrics=filled(metrics), width=WIDTH // 6, height=4, set_period_to_time_range=whole
    )


def _graph(
    title: str,
    left: Sequence[cloudwatch.IMetric],
    *,
    right: Sequence[cloudwatch.IMetric] = (),
    stacked: bool = False,
    names: tuple[str, str] | None = None,
    share: int = 1,
) -> cloudwatch.GraphWidget:
    """Returns a widget with curves over time, from zero.

    Args:
        right: metrics that always have values: an axis without a curve says nothing.
        names: of the two axes.
        share: thirds of the dashboard's width.
    """
    first, second = names or (None, None)
    return cloudwatch.GraphWidget(
        title=title,
        left=filled(left),
        right=list(right),
        stacked=stacked,
        width=share * WIDTH // 3,
        height=7,
        left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False, label=first),
        right_y_axis=cloudwatch.YAxisProps(min=0, show_units=False, label=second) if right else None,
    )
