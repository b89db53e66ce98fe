"""Defines the custom widgets of dashboards, all rendered by one function that can only read."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.bench_data import BenchData
from infra.functions import Functions


class Widgets(Construct):
    """The function behind the custom widgets.

    CloudWatch calls it with the credentials of the dashboard's viewer, so it has no resource policy: viewers need
    ``lambda:InvokeFunction``. Viewers without it see the rest of the dashboard.

    Attributes:
        function: for ``CustomWidget(function_arn=..., params={"widget": "events"})``; see docs/dashboards.md.
    """

    function: lambda_.Function

    def __init__(self, scope: Construct, construct_id: str, *, functions: Functions, bench: BenchData | None) -> None:
        super().__init__(scope, construct_id)
        functions.add_widgets(bench)
        self.function = functions.widgets
