"""Defines the functions of the workflows that terminate instances: permissions, environment and resources of each."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_

from infra import permissions
from infra.data import Data
from infra.functions import Functions
from troop.shared.variables import Variable


@dataclass(frozen=True)
class ChaosFunctions:
    """Tasks of the chaos workflow. ``sweep`` is called by a schedule, too; ``hear`` only by events of AWS."""

    decide: lambda_.Function
    terminate: lambda_.Function
    check_recovery: lambda_.Function
    hear: lambda_.Function
    sweep: lambda_.Function


def make_chaos_functions(functions: Functions, data: Data, *, leashed: bool) -> ChaosFunctions:
    """Creates the functions in ``functions``.

    Args:
        leashed: the setting.
    """
    decisions = {Variable.DECISIONS_TABLE: data.decisions.table_name}
    policy = {
        Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
        Variable.SALT_SECRET: data.salt.secret_arn,
    }
    return ChaosFunctions(
        decide=functions.make(
            "decide",
            [
                *permissions.decide(data, leashed=leashed),
                *functions.reads_change_calendars(),
                *functions.reads_registrations(),
            ],
            {
                **data.environment(),
                **policy,
                **decisions,
                Variable.CHANGES_TABLE: data.changes.table_name,
                Variable.WORK_BUCKET: data.work.bucket_name,
            },
            seconds=300,
            megabytes=1024,
        ),
        terminate=functions.make(
            "terminate",
            [
                *permissions.terminate(cdk.Stack.of(functions), data),
                *functions.reads_change_calendars(),
                *functions.reads_registrations(),
                *functions.reads_earlier_faults(data.state),
            ],
            {**data.environment(), **policy, **decisions},
            seconds=60,
            megabytes=256,
        ),
        check_recovery=functions.make(
            "check_recovery", permissions.check_recovery(data), data.environment(), seconds=150, megabytes=256
        ),
        hear=functions.make("hear", permissions.hear(data), data.environment(), seconds=150, megabytes=256),
        sweep=functions.make("sweep", permissions.sweep(data), data.environment(), seconds=120, megabytes=256),
    )
