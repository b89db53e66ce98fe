"""Log groups: every one with the deployment's retention."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.settings import LOG_RETENTION_DAYS, DeploymentSettings

_RETENTION = dict(zip(LOG_RETENTION_DAYS, logs.RetentionDays, strict=False))  # the library's last is INFINITE


def make_log_group(scope: Construct, construct_id: str, settings: DeploymentSettings) -> logs.LogGroup:
    """A log group that keeps entries for ``log_retention_days``, and outlives the stack if its data does."""
    return logs.LogGroup(
        scope,
        construct_id,
        retention=_RETENTION[settings.log_retention_days],
        removal_policy=cdk.RemovalPolicy.RETAIN if settings.retain_data else cdk.RemovalPolicy.DESTROY,
    )
