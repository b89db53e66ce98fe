"""Checks the account's quotas: for one more VPC, and for the functions that Troop runs at a time."""

from __future__ import annotations

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle.console import say
from troop.shared.concurrency import Concurrency, quota_request, remedy, shortage
from troop.shared.settings import Settings

_VPCS = {"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE"}


def refuse_beyond_quota(session: boto3.Session, account: str) -> None:
    """Refuses a deployment beyond the VPC quota, which CloudFormation would roll back when it is nearly done.

    Only warns if the quota cannot be read.

    Raises:
        CliError: FAILED, if the account has as many VPCs in the region as its quota allows.
    """
    try:
        allowed, there = _allowed(session), _own(session, account)
    except (BotoCoreError, ClientError) as error:
        say(f"Warning: cannot check the quota of VPCs in this region ({' '.join(str(error).split())}).")
        return
    if there >= allowed:
        raise CliError(
            Exit.FAILED,
            f"this account has {there} of the {allowed} VPCs that its quota allows in {session.region_name}, and the "
            "network for benchmarks needs one more. Set troop:network to an existing one, omit benchmarks "
            'with -c troop:benchmarks=false, or raise the quota "VPCs per Region" (Service Quotas, '
            f"{_VPCS['QuotaCode']})",
        )


def warn_of_concurrency(session: boto3.Session, settings: Settings) -> None:
    """Warns if Lambda runs fewer functions at a time than Troop needs on a busy day."""
    try:
        limit = aws.client(session, "lambda").get_account_settings()["AccountLimit"]
    except (BotoCoreError, ClientError) as error:
        say(f"Warning: cannot check the concurrency of Lambda in this region ({' '.join(str(error).split())}).")
        return
    unreserved = int(limit["UnreservedConcurrentExecutions"])
    concurrency = Concurrency(int(limit["ConcurrentExecutions"]), unreserved, str(session.region_name))
    if why := shortage(concurrency, settings):
        say(f"Warning: {why}. To raise it: {remedy(concurrency, settings)}: {quota_request(concurrency, settings)}")


def _allowed(session: boto3.Session) -> int:
    """Returns the account's quota, or AWS's default."""
    quotas = aws.client(session, "service-quotas")
    try:
        answer = quotas.get_service_quota(**_VPCS)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchResourceException":
            raise
        answer = quotas.get_aws_default_service_quota(**_VPCS)
    return int(answer["Quota"]["Value"])


def _own(session: boto3.Session, account: str) -> int:
    """Counts the account's VPCs, without those that other accounts share with it."""
    pages = aws.client(session, "ec2").get_paginator("describe_vpcs").paginate()
    return sum(vpc.get("OwnerId", account) == account for page in pages for vpc in page["Vpcs"])
