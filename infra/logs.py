"""Creates log groups with the deployment's retention."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.data import removal
from infra.keys import data_key
from infra.settings import LOG_RETENTION_DAYS, DeploymentSettings

_RETENTION = dict(zip(LOG_RETENTION_DAYS, logs.RetentionDays, strict=False))  # the library's last value is INFINITE


_VENDED = "/aws/vendedlogs/states/"
"""The prefix of log groups of Step Functions. With another, AWS adds each group to one resource policy of the account
and region, which holds 5,120 characters. When it is full, no further workflow with a log can be created.
"""


def make_log_group(
    scope: Construct, construct_id: str, settings: DeploymentSettings, machine_role: iam.IRole | None = None
) -> logs.LogGroup:
    """Creates a log group that keeps entries for ``log_retention_days``, and outlives the stack if its data does.

    Args:
        machine_role: the role of the workflow that logs; None for other groups, whose names CloudFormation generates.
    """
    return logs.LogGroup(
        scope,
        construct_id,
        # A role's name contains the deployment and the workflow, and ends with a part that CloudFormation generates at
        # each creation. So it differs from the name of any earlier workflow, in any stack.
        log_group_name=f"{_VENDED}{machine_role.role_name}" if machine_role else None,
        encryption_key=data_key(scope),
        retention=_RETENTION[settings.log_retention_days],
        removal_policy=removal(settings.retain_data),
    )
