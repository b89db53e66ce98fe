"""Defines the functions that observe the whole deployment: the API's, the watchdog, and the reading of risks."""

from __future__ import annotations

import json
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn

from infra import permissions
from infra.benchmarks import Benchmarks
from infra.data import Data
from infra.functions import Functions
from infra.health_targets import HealthTargets
from troop.shared.variables import Variable


@dataclass(frozen=True)
class Observers:
    """Functions that check the deployment's health, and the account's; ``api`` is behind API Gateway."""

    api: lambda_.Function
    watchdog: lambda_.Function
    risks: lambda_.Function

    def set_other_schedules(self, number: int) -> None:
        """Passes the number of schedules besides the calendars'. Those are created later, because one of them calls
        the watchdog.
        """
        for function in (self.api, self.watchdog):
            function.add_environment(Variable.OTHER_SCHEDULES, str(number))


def make_observers(
    functions: Functions,
    data: Data,
    targets: HealthTargets,
    on_demand: sfn.IStateMachine,
    benchmarks: Benchmarks | None,
    act_now: sns.ITopic,
    runbook: str,
) -> Observers:
    """Creates the functions in ``functions``.

    Args:
        on_demand: the workflow that the API's function starts.
        benchmarks: the part to which the API's function admits runs; None without it.
        act_now: the topic of "act now" alarms, whose subscribers the API's function counts. The watchdog, on whose
            metrics alarms depend, reads no alarms.
        runbook: where people read the runbook.
    """
    runs = [benchmarks.data.runs] if benchmarks else []
    health_environment = {
        **data.environment(),
        Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
        Variable.DECISIONS_TABLE: data.decisions.table_name,
        Variable.CHANGES_TABLE: data.changes.table_name,
        **({Variable.RUNS_TABLE: benchmarks.data.runs.table_name} if benchmarks else {}),
        **targets.environment(),
    }
    api = functions.make(
        "api",
        [
            *permissions.api(data, on_demand, benchmarks is not None),
            *permissions.health(targets, data.state),
            *permissions.alarms(act_now),
            *permissions.account(cdk.Stack.of(functions)),
            *functions.reads_change_calendars(),
            *functions.reads_registrations(),
            *(benchmarks.permissions_of_api() if benchmarks else []),
        ],
        {
            **health_environment,
            Variable.ON_DEMAND_MACHINE: on_demand.state_machine_arn,
            Variable.ACT_NOW_TOPIC: act_now.topic_arn,
            Variable.RUNBOOK: runbook,
            **(benchmarks.environment_of_api() if benchmarks else {}),
        },
        layers=[functions.api_layer],
        seconds=29,
        megabytes=512,
    )
    watchdog = functions.make(
        "watchdog",
        permissions.watchdog(targets, data.state, [*data.tables, *runs]),
        {**health_environment, Variable.RELEASE: json.dumps(functions.release.document())},
        seconds=60,
        megabytes=256,
    )
    risks = functions.make(
        "risks",
        permissions.risks(data, targets.undelivered),
        {
            **data.environment(),
            Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
            Variable.DECISIONS_TABLE: data.decisions.table_name,
        },
        seconds=900,
        megabytes=1024,
    )
    watchdog.add_environment(Variable.RISKS_FUNCTION, risks.function_arn)
    return Observers(api, watchdog, risks)
