"""Finds a deployment by the name of its stack, in the session's account and region."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cli.client.invoke_url import INVOKE_URL, served_at
from cli.shared import aws
from cli.shared.errors import CliError, Exit
from troop.shared.outputs import API_URL
from troop.shared.tags import DEPLOYMENT_TAG

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,30}")


@dataclass(frozen=True)
class Deployment:
    """A deployment that exists.

    Attributes:
        name: the name of the stack.
        region, account: the region and the account's number.
        outputs: the stack's outputs by name; ``ApiUrl`` is an address that this machine can reach.
        api_arn: the ARN of the API's stage for ``execute-api:Invoke``.
    """

    name: str
    region: str
    account: str
    outputs: Mapping[str, str]
    api_arn: str

    @property
    def api_url(self) -> str:
        return self.outputs[API_URL]

    def __str__(self) -> str:
        return f"{self.name} in account {self.account}, region {self.region}"


def find_deployment(session: aws.AnySession, name: str, *, elsewhere: bool = True) -> Deployment:
    """Finds the deployment with that name.

    Args:
        elsewhere: whether to search other regions for one that is not in this one, for the message.

    Raises:
        CliError: NO_DEPLOYMENT, WRONG_REGION if another region has it, or what :func:`cli.shared.aws.translated_errors`
            raises.
    """
    check_name(name)
    stack = find_stack(session, name)
    if stack is None:
        if not elsewhere:
            where = f"in region {session.region_name}: correct its name, region or profile"
            raise CliError(Exit.NO_DEPLOYMENT, f"there is no deployment {name} {where}")
        raise _not_here(session, name)
    outputs = {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])}
    if API_URL not in outputs:
        raise CliError(
            Exit.NO_DEPLOYMENT,
            f"the stack {name} in {session.region_name} is {stack['StackStatus']} and has no output {API_URL}: "
            f"run make deploy KEEP=1 DEPLOYMENT={name}, or choose another with --deployment",
        )
    _, partition, _, region, account, *_ = stack["StackId"].split(":")
    match = INVOKE_URL.fullmatch(outputs[API_URL])
    api, stage = (match["api"], match["stage"]) if match else ("*", "*")
    outputs[API_URL] = reachable(session, outputs[API_URL])
    arn = f"arn:{partition}:execute-api:{region}:{account}:{api}/{stage}"
    return Deployment(name, region, account, outputs, arn)


def check_name(name: str) -> None:
    """Refuses a name that no deployment can have.

    Raises:
        CliError: NO_DEPLOYMENT.
    """
    if not _NAME.fullmatch(name):
        raise CliError(
            Exit.NO_DEPLOYMENT,
            f"{name!r} cannot be a deployment's name: use a letter, then letters, digits and hyphens; at most 31",
        )


def find_stack(session: aws.AnySession, name: str, **options: Any) -> dict[str, Any] | None:
    """Returns DescribeStacks' answer for one stack; None if it does not exist or has been deleted."""
    with aws.translated_errors():
        try:
            stacks = aws.client(session, "cloudformation", **options).describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            if (
                error.response["Error"]["Code"] == "ValidationError"
                and "not exist" in error.response["Error"]["Message"]
            ):
                return None
            raise
    stack: dict[str, Any] | None = next((s for s in stacks if s["StackStatus"] != "DELETE_COMPLETE"), None)
    return stack


def reachable(session: aws.AnySession, url: str) -> str:
    """Returns the address at which the API answers: local AWS serves it at its own address."""
    return served_at(aws.endpoint(session), url) if aws.is_local(session) else url


def _not_here(session: aws.AnySession, name: str) -> CliError:
    region = session.region_name
    account = aws.account_of(session)
    where = f"region {region}" + (f" of account {account}" if account else "")
    if elsewhere := _regions_with(session, name):
        first = elsewhere[0]
        return CliError(
            Exit.WRONG_REGION,
            f"there is no deployment {name} in {where}, but there is one in {', '.join(elsewhere)}: add --region "
            f"{first} or set AWS_REGION={first}",
        )
    others = deployments(session)
    hint = (
        f"choose an existing one with --deployment: {', '.join(others)}"
        if others
        else "check the account (AWS_PROFILE) and the region (AWS_REGION), or deploy it with `make deploy`"
    )
    return CliError(Exit.NO_DEPLOYMENT, f"there is no deployment {name} in {where}; {hint}")


def _regions_with(session: aws.AnySession, name: str) -> list[str]:
    """Lists the partition's other regions with a Troop stack of that name, without regions that do not answer."""
    if aws.is_local(session):
        return []
    partition = session.get_partition_for_region(session.region_name)
    others = [r for r in session.get_available_regions("cloudformation", partition) if r != session.region_name]

    quick = {"connect_timeout": 2, "read_timeout": 4, "retries": {"max_attempts": 1}}
    clients = [aws.client(session, "cloudformation", region_name=r, **quick) for r in others]  # not thread-safe

    def has(client: Any) -> bool:
        try:
            return _is_ours(client.describe_stacks(StackName=name)["Stacks"])
        except (BotoCoreError, ClientError):
            return False

    with ThreadPoolExecutor(max_workers=16) as pool:
        return [region for region, there in zip(others, pool.map(has, clients), strict=True) if there]


def deployments(session: aws.AnySession) -> list[str]:
    """Lists the names of all deployments in the session's account and region; none if they cannot be read."""
    try:
        pages = aws.client(session, "cloudformation").get_paginator("describe_stacks").paginate()
        return sorted(s["StackName"] for page in pages for s in page["Stacks"] if _is_ours([s]))
    except (BotoCoreError, ClientError):
        return []


def _is_ours(stacks: Iterable[Mapping[str, Any]]) -> bool:
    return any(tag["Key"] == DEPLOYMENT_TAG for stack in stacks for tag in stack.get("Tags", []))
