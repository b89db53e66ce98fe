"""Warns of what an account or its region lacks: a paid plan, arm64, service-linked roles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli.shared import aws
from lifecycle.console import say
from troop.bench.money.prices import region_of_list
from troop.shared.service_roles import SERVICE_ROLES, ServiceRole
from troop.shared.settings import Settings

ELIGIBLE = (
    "aws ec2 describe-instance-types --filters Name=free-tier-eligible,Values=true "
    "--query 'InstanceTypes[].InstanceType'"
)
"""The command that lists the instance types that an account on the free plan can launch."""

_PER_SECOND = "AWS-Lambda-Duration"
"""The price list's group of seconds of functions on x86-64; those on arm64 have a suffix."""
_ARM = "-ARM"


def warn_of_account(session: boto3.Session, settings: Settings, *, new: bool) -> None:
    """Prints what the account and region lack; for what cannot be checked, a warning.

    Args:
        new: whether there is no deployment yet. An existing one proves what a stack needs.
    """
    if aws.is_local():
        return  # local AWS has neither plans nor prices of functions, and lacks no role that it needs
    checks: list[tuple[str, Callable[[], Iterator[str]]]] = []
    if settings.benchmarks:
        checks.append(("the plan of this account", lambda: _plan_warnings(session)))
    if new:
        checks.append(("whether Lambda has arm64 in this region", lambda: _arm_warnings(session)))
    checks.append(("the service-linked roles of this account", lambda: _role_warnings(session, settings)))
    for subject, check in checks:
        try:
            for warning in check():
                say(f"Warning: {warning}")
        except (BotoCoreError, ClientError) as error:
            say(f"Warning: cannot check {subject} ({' '.join(str(error).split())}).")


def _plan_warnings(session: boto3.Session) -> Iterator[str]:
    """Yields a warning of AWS's free plan, which only the partition ``aws`` has."""
    if session.get_partition_for_region(str(session.region_name)) != "aws":
        return
    try:
        plan = aws.client(session, "freetier", retries={"max_attempts": 1}).get_account_plan_state()
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        return  # AWS knows no plan of this account
    if plan.get("accountPlanType") != "FREE":
        return
    ends = f" until {end:%Y-%m-%d}" if (end := plan.get("accountPlanExpirationDate")) else ""
    yield (
        f"this account is on AWS's free plan{ends}. There, EC2 launches only some instance types, which {ELIGIBLE} "
        "lists, and refuses all others, such as those of the benchmarks that Troop brings along. Name one of them in "
        "your benchmarks and fleets, or upgrade the account to the paid plan."
    )


def _arm_warnings(session: boto3.Session) -> Iterator[str]:
    """Yields a warning if AWS has a price for functions on x86-64 in the region, but none for arm64. AWS's guide of
    Lambda says that its prices show which regions have arm64.
    """
    region = str(session.region_name)
    served = region_of_list(region)
    if served is None:
        return
    pricing = aws.client(session, "pricing", region_name=served, retries={"max_attempts": 1})

    def is_sold(group: str) -> bool:
        terms = {"group": group, "regionCode": region}
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in terms.items()]
        return bool(pricing.get_products(ServiceCode="AWSLambda", Filters=filters, MaxResults=1)["PriceList"])

    if is_sold(_PER_SECOND) and not is_sold(_PER_SECOND + _ARM):
        yield (
            f"AWS has no price for functions on arm64 in {region}, so Lambda probably lacks arm64 there. All functions "
            "of Troop need it: without it, CloudFormation fails at the first layer and rolls the stack back. Choose "
            "another region."
        )


def _role_warnings(session: boto3.Session, settings: Settings) -> Iterator[str]:
    """Yields a warning of the service-linked roles that AWS will create because of the deployment."""
    iam = aws.client(session, "iam")
    needed = [role for role in SERVICE_ROLES if settings.benchmarks or not role.at_launch]
    missing = [role for role in needed if not _exists(iam, role)]
    if missing:
        names = ", ".join(f"{role.name} ({'first launch' if role.at_launch else 'stack'})" for role in missing)
        commands = "".join(f"\n  {role.command}" for role in missing)
        yield (
            f"this account lacks service-linked roles, which AWS creates when they are needed: {names}. If your "
            f"organization forbids iam:CreateServiceLinkedRole, let an administrator create them first:{commands}"
        )


def _exists(iam: Any, role: ServiceRole) -> bool:
    try:
        iam.get_role(RoleName=role.name)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchEntity", "NoSuchEntityException"):
            return False
        raise
    return True
