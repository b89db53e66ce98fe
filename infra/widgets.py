"""Defines the custom widgets of dashboards, all rendered by one function that can only read."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_

from infra import bench_permissions, permissions
from infra.bench_data import BenchData
from infra.data import Data
from infra.functions import Functions
from troop.shared.variables import Variable


def make_widgets(functions: Functions, data: Data, bench: BenchData | None) -> lambda_.Function:
    """Creates the function behind the custom widgets, for ``CustomWidget(function_arn=..., params={"widget":
    "events"})``: see docs/guides/dashboards.md.

    CloudWatch calls it with the credentials of the dashboard's viewer, so it has no resource policy: viewers need
    ``lambda:InvokeFunction``. Viewers without it see the rest of the dashboard.

    Args:
        bench: None if the deployment does not run benchmarks.
    """
    return functions.make(
        "widgets",
        [*permissions.widgets(data), *(bench_permissions.widgets(bench, data.state) if bench else [])],
        {
            **data.environment(),
            Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
            Variable.DECISIONS_TABLE: data.decisions.table_name,
            Variable.CHANGES_TABLE: data.changes.table_name,
            # The bucket's name is part of links. Of its objects, the function may read what a run does right now.
            **({Variable.RUNS_TABLE: bench.runs.table_name} if bench else {}),
            **({Variable.RESULTS_BUCKET: bench.results.bucket_name} if bench else {}),
        },
        layers=[functions.report_layer],
        seconds=29,
        megabytes=512,
    )
