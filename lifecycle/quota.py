"""Whether the account has room: for one more network, and for as many functions at a time as Troop runs."""

from __future__ import annotations

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli import aws
from cli.errors import CliError, Exit
from lifecycle.console import say
from troop.concurrency import Concurrency, remedy, shortage
from troop.settings import Settings

_VPCS = {"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE"}


def refuse_beyond_quota(session: boto3.Session, account: str) -> None:
    """Ends it before anything is made, where CloudFormation would have to undo a deployment that is nearly done.

    What cannot be found out does not end it.

    Raises:
        CliError: FAILED, where the account has as many networks of its own in the region as it may.
    """
    try:
        allowed, there = _allowed(session), _own(session, account)
    except (BotoCoreError, ClientError) as error:
        say(f"Whether this account may have one more VPC here could not be found out ({' '.join(str(error).split())}).")
        return
    if there >= allowed:
        raise CliError(
            Exit.FAILED,
            f"this account has {there} of the {allowed} VPCs that it may have in {session.region_name}, and the "
            "network for benchmarks would be one more: name one that is there with troop:network, leave benchmarks out "
            'with -c troop:benchmarks=false, or have the quota "VPCs per Region" raised (Service Quotas, '
            f"{_VPCS['QuotaCode']})",
        )


def warn_of_concurrency(session: boto3.Session, settings: Settings) -> None:
    """Says where Lambda runs fewer functions at a time than Troop needs on a busy day; that ends nothing."""
    try:
        limit = aws.client(session, "lambda").get_account_settings()["AccountLimit"]
    except (BotoCoreError, ClientError) as error:
        say(f"How much Lambda runs at a time here could not be found out ({' '.join(str(error).split())}).")
        return
    unreserved = int(limit["UnreservedConcurrentExecutions"])
    concurrency = Concurrency(int(limit["ConcurrentExecutions"]), unreserved, str(session.region_name))
    if why := shortage(concurrency, settings):
        say(f"Warning: {why}. To raise it: {remedy(concurrency, settings)}")


def _allowed(session: boto3.Session) -> int:
    """The account's quota, or everybody's where it has none of its own."""
    quotas = aws.client(session, "service-quotas")
    try:
        answer = quotas.get_service_quota(**_VPCS)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchResourceException":
            raise
        answer = quotas.get_aws_default_service_quota(**_VPCS)
    return int(answer["Quota"]["Value"])


def _own(session: boto3.Session, account: str) -> int:
    """How many there are, without those that other accounts share with this one."""
    pages = aws.client(session, "ec2").get_paginator("describe_vpcs").paginate()
    return sum(vpc.get("OwnerId", account) == account for page in pages for vpc in page["Vpcs"])
