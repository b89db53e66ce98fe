"""Two dashboards of CloudWatch: what Troop does for the business, and how it is itself.

Nothing in them names a region's console or a partition. What has values that nobody knows beforehand (reasons, states,
kinds) is found by a search; everything else is named. Each names at most :data:`MOST_NAMED` metrics: three dashboards
of no more than that are free in every account.
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

from infra.metric_helpers import of_executions, ours, ours_by, throttled, throttled_indices, waiting_in
from troop.metrics import Metric

WIDTH = 24
"""Of a dashboard, in CloudWatch's units."""

MOST_NAMED = 50

WAITED_FOR = ("decide", "terminate", "check_recovery", "sweep", "api", "cell")
"""Functions that a workflow or a person waits for, or that have much to do in one call."""

TIMED = ("ticks", "teardowns")
"""Workflows that are not to take their whole time."""

_SUM, _MAXIMUM = cloudwatch.Stats.SUM, cloudwatch.Stats.MAXIMUM
_QUARTER, _HOUR, _DAY = cdk.Duration.minutes(15), cdk.Duration.hours(1), cdk.Duration.days(1)

CUSTOM = {
    "events": "Latest events",
    "decisions": "Today's decisions, and why",
    "units": "Units and their policy",
    "runs": "Benchmark runs",
}
"""What the widgets' function draws, with the title of each."""

OF_BENCHMARKS = frozenset({"runs"})
"""Of these, what there is only where benchmarks are run."""


@dataclass(frozen=True)
class Shown:
    """The parts of a deployment that its dashboards show.

    Attributes:
        functions: by their short names.
        machines: ARNs of the workflows, and of children of a map, by what to call them.
        busy: of the functions, those of which many run at once.
        written: the tables into which many write at once.
        queues: of dead letters, by what to call them.
        api: whose stage is measured.
        act_now_alarms, warning_alarms: alarms of each class.
        benchmarks: whether there is that half.
        widgets: draws custom widgets; None for none.
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
    widgets: lambda_.IFunction | None = None
    runbook_url: str = field(default="docs/runbook.md")


class Dashboards(Construct):
    """The two. They are global in an account, so the region is part of their names.

    Attributes:
        business: terminations, recoveries, who takes part, benchmarks and their cost.
        operations: ticks, failures, latencies, dead letters, alarms.
    """

    def __init__(self, scope: Construct, construct_id: str, *, shown: Shown) -> None:
        super().__init__(scope, construct_id)
        self.business = self._dashboard("Business", cdk.Duration.days(7), _business(shown))
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


def _business(shown: Shown) -> list[list[cloudwatch.IWidget]]:
    rows: list[list[cloudwatch.IWidget]] = [
        [
            _text(
                f"## {cdk.Aws.STACK_NAME}: what chaos and benchmarks do\n"
                "**Something is wrong? `troop halt --reason WHY` stops every termination at once, and nothing is lost "
                "by it; `troop resume` goes on.** Then: `troop doctor`, and "
                f"{_runbook(shown)}.\n\n"
                "Why was a unit hit, or left alone: `troop why UNIT`. Out of chaos: `troop opt-out UNIT`. "
                "What will happen: `troop plan`. Every figure is told in docs/metrics.md."
            )
        ],
        [
            _number("Terminations", [ours(Metric.TERMINATIONS, _SUM, _DAY)], whole=True),
            _number("Recovered", [ours(Metric.RECOVERIES, _SUM, _DAY)], whole=True),
            _number("Not recovered", [ours(Metric.UNRECOVERED, _SUM, _DAY)], whole=True),
            _number("Units out of chaos", [ours(Metric.UNITS_UNRECOVERED, _MAXIMUM, _QUARTER)]),
            _number("Take part, day's most", [ours_by(Metric.UNITS_TAKING_PART, _MAXIMUM, _DAY, filled=False)]),
            _number("Opted out, day's most", [ours_by(Metric.UNITS_OPTED_OUT, _MAXIMUM, _DAY, filled=False)]),
        ],
        [
            _graph("Terminations and what became of them", [ours_by(Metric.OUTCOMES, _SUM, _HOUR)]),
            _graph(
                "Seconds to recovery",
                [
                    ours(Metric.RECOVERY_SECONDS, "p50", _HOUR, "p50"),
                    ours(Metric.RECOVERY_SECONDS, "p95", _HOUR, "p95"),
                    ours(Metric.RECOVERY_SECONDS, _MAXIMUM, _HOUR, "longest"),
                ],
                right=[ours(Metric.SLOW_RECOVERIES, _SUM, _HOUR, "slow for their unit")],
            ),
            _graph("Decisions by reason", [ours_by(Metric.DECISIONS, _SUM, _HOUR)], stacked=True),
        ],
        *_custom(shown, ("events",)),  # rows need the width: half of it is enough only for the two beside one another
        *_custom(shown, ("decisions", "runs")),
        *_custom(shown, ("units",)),
    ]
    if shown.benchmarks:
        rows.append(
            [
                _graph("Benchmarks and fleets that ended, by status", [ours_by(Metric.RUNS_ENDED, _SUM, _DAY)]),
                _graph("Their cost", [ours_by(Metric.RUN_COST, _SUM, _DAY)]),
                _graph(
                    "What runs now",
                    [ours_by(Metric.NODES_ALIVE, _MAXIMUM, _QUARTER)],
                    right=[ours_by(Metric.RUNS_OPEN, _MAXIMUM, _QUARTER)],
                    names=("nodes", "runs and fleets"),
                ),
                _graph(
                    "Left behind",
                    [ours(Metric.LEFT_BEHIND, _MAXIMUM, _QUARTER, "resources")],
                    right=[ours(Metric.REAPER_OFF, _MAXIMUM, _QUARTER, "reaper off")],
                ),
            ]
        )
    return rows


def _operations(shown: Shown) -> list[list[cloudwatch.IWidget]]:
    stage = shown.api.deployment_stage
    waited_for = [(name, shown.functions[name]) for name in WAITED_FOR if name in shown.functions]
    return [
        [
            _text(
                f"## {cdk.Aws.STACK_NAME}: how Troop itself is\n"
                f"**An alarm is on? Its description leads to its paragraph of {_runbook(shown)}. "
                "If in doubt, `troop halt --reason WHY` first: nothing is lost by it.** "
                "`troop doctor` says what is wrong and what to do. What is mended by itself is under Repairs.\n\n"
                "Logs: the saved queries of CloudWatch Logs Insights, in the folder with the deployment's name."
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
                [ours(Metric.TICKS, _SUM, _QUARTER, "decided")],
                right=[ours(Metric.MISSING_TICKS, _MAXIMUM, _QUARTER, "missing")],
            ),
            _graph(
                "Workflows that failed, or took too long",
                [of_executions("Failed", machine, _QUARTER, name) for name, machine in shown.machines.items()]
                + [
                    of_executions("TimedOut", shown.machines[name], _QUARTER, f"{name}: too long")
                    for name in TIMED
                    if name in shown.machines
                ],
            ),
            _graph(
                "Health",
                [
                    ours(Metric.FAILING_CHECKS, _MAXIMUM, _QUARTER, "failing checks"),
                    ours(Metric.STEPS_FAILED, _SUM, _QUARTER, "steps that failed"),
                ],
            ),
        ],
        [
            _graph(
                "Errors of functions",
                [
                    one.metric_errors(period=_QUARTER, statistic=_SUM, label=name)
                    for name, one in shown.functions.items()
                ],
            ),
            _graph(
                "Milliseconds of functions, p99",
                [one.metric_duration(period=_QUARTER, statistic="p99", label=name) for name, one in waited_for],
            ),
            _graph(
                "What AWS has put off",
                [
                    one.metric_throttles(period=_QUARTER, statistic=_SUM, label=f"calls of {name}")
                    for name, one in shown.functions.items()
                    if one in shown.busy
                ]
                + [throttled(one, "Write", _QUARTER, f"writes to {one.node.id}") for one in shown.written]
                + [throttled_indices(one, "Write", _QUARTER) for one in shown.written],
            ),
        ],
        [
            _graph(
                "Milliseconds of the API",
                [
                    stage.metric_latency(period=_QUARTER, statistic="p50", label="p50"),
                    stage.metric_latency(period=_QUARTER, statistic="p99", label="p99"),
                ],
            ),
            _graph(
                "Requests of the API",
                [
                    stage.metric_count(period=_QUARTER, statistic=_SUM, label="all"),
                    stage.metric_client_error(period=_QUARTER, statistic=_SUM, label="4xx"),
                    stage.metric_server_error(period=_QUARTER, statistic=_SUM, label="5xx"),
                ],
            ),
            _graph(
                "Notifications",
                [ours(Metric.NOTIFICATIONS, _SUM, _QUARTER, "sent")],
                right=[ours(Metric.NOTIFICATIONS_FAILED, _SUM, _QUARTER, "tries that failed")],
            ),
        ],
        [
            _graph("Dead letters", [waiting_in(queue, name) for name, queue in shown.queues.items()]),
            _graph("Repairs", [ours_by(Metric.REPAIRS, _SUM, _HOUR)], stacked=True),
            *(
                [_graph("Reaper finds", [ours(Metric.REAPER_FINDS, _MAXIMUM, _QUARTER, "finds")])]
                if shown.benchmarks
                else []
            ),
        ],
    ]


def _custom(shown: Shown, names: Sequence[str]) -> list[list[cloudwatch.IWidget]]:
    """A row of widgets that a function draws; no row without the function."""
    if shown.widgets is None:
        return []
    there = [name for name in names if shown.benchmarks or name not in OF_BENCHMARKS]
    return [
        [
            cloudwatch.CustomWidget(
                title=CUSTOM[name],
                function_arn=shown.widgets.function_arn,
                params={"widget": name},
                width=WIDTH // len(there),
                height=9,
                update_on_time_range_change=False,
            )
            for name in there
        ]
    ]


def _runbook(shown: Shown) -> str:
    """A link where there is an address that a browser can open; else where it is to be found."""
    url = shown.runbook_url
    return f"[the runbook]({url})" if url.startswith("https://") else f"the runbook, {url}"


def _text(markdown: str) -> cloudwatch.TextWidget:
    return cloudwatch.TextWidget(markdown=markdown, width=WIDTH, height=3)


def _number(title: str, metrics: Sequence[cloudwatch.IMetric], *, whole: bool = False) -> cloudwatch.SingleValueWidget:
    """The latest value; or with ``whole`` the sum of the time that the dashboard shows."""
    return cloudwatch.SingleValueWidget(
        title=title, metrics=list(metrics), width=WIDTH // 6, height=4, set_period_to_time_range=whole
    )


def _graph(
    title: str,
    left: Sequence[cloudwatch.IMetric],
    *,
    right: Sequence[cloudwatch.IMetric] = (),
    stacked: bool = False,
    names: tuple[str, str] | None = None,
) -> cloudwatch.GraphWidget:
    """Curves over time, from zero.

    Args:
        names: of the two axes.
    """
    first, second = names or (None, None)
    return cloudwatch.GraphWidget(
        title=title,
        left=list(left),
        right=list(right),
        stacked=stacked,
        width=WIDTH // 3,
        height=7,
        left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False, label=first),
        right_y_axis=cloudwatch.YAxisProps(min=0, show_units=False, label=second) if right else None,
    )
