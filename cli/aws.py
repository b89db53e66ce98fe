"""The caller's AWS session, and what can be wrong with it, in one line each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    InvalidConfigError,
    InvalidRegionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
    UnknownRegionError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from cli.errors import CliError, Exit

NO_CREDENTIALS = (
    "there are no AWS credentials: set AWS_PROFILE (or --profile), sign in with `aws sso login`, or run `aws configure`"
)
EXPIRED = "the AWS credentials have expired: get new ones (`aws sso login`, or whatever issued them), and try again"

_EXPIRED_CODES = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired", "UnauthorizedException"}
)
_INVALID_CODES = frozenset(
    {"InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidAccessKeyId"}
)
_DENIED_CODES = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})


def make_session(profile: str | None, region: str | None) -> boto3.Session:
    """Makes a session with credentials and a region; warns on stderr where the SDK does not know the region.

    Raises:
        CliError: NO_CREDENTIALS, EXPIRED_CREDENTIALS or WRONG_REGION.
    """
    with translated_errors():
        session = boto3.Session(profile_name=profile, region_name=region)
        if session.get_credentials() is None:
            raise NoCredentialsError
    if not session.region_name:
        raise CliError(Exit.WRONG_REGION, "no AWS region is set: give --region, or set AWS_REGION")
    if not is_local() and session.region_name not in known_regions(session):
        _doubt(session)
    return session


def _doubt(session: boto3.Session) -> None:
    """Warns of a region that may be newer than the SDK, which then derives its endpoints from the name.

    Raises:
        CliError: WRONG_REGION, for a name that no partition's regions have.
    """
    region = str(session.region_name)
    near = get_close_matches(region, known_regions(session), 1)
    meant = f"; the nearest that it knows is {near[0]}" if near else ""
    try:
        session.get_partition_for_region(region)
    except UnknownRegionError:
        raise CliError(
            Exit.WRONG_REGION,
            f"{region!r} is no AWS region{meant}: give --region, or set AWS_REGION, to the deployment's",
        ) from None
    sys.stderr.write(f"Warning: this version of the AWS SDK does not know the region {region}{meant}\n")


def known_regions(session: boto3.Session) -> list[str]:
    """Lists the regions of all partitions, as far as this SDK knows them."""
    partitions = session.get_available_partitions()
    return [r for p in partitions for r in session.get_available_regions("cloudformation", p)]


def is_local() -> bool:
    """Whether AWS is one on this machine (``AWS_ENDPOINT_URL`` on 127.0.0.1)."""
    host = urlsplit(os.environ.get("AWS_ENDPOINT_URL", "")).hostname
    return host in ("127.0.0.1", "localhost")


def client(session: boto3.Session, service: str, **options: Any) -> Any:
    """A client that gives up in seconds rather than minutes."""
    settings = {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 3}, **options}
    create: Any = session.client
    return create(service, config=Config(**settings))


def ca_bundle() -> str | None:
    """Certificates to trust instead of the usual ones, as boto3 would."""
    return os.environ.get("AWS_CA_BUNDLE") or None


def account_of(session: boto3.Session) -> str | None:
    """The account's number; None when it cannot be told."""
    try:
        return str(client(session, "sts").get_caller_identity()["Account"])
    except (BotoCoreError, ClientError):
        return None


@contextmanager
def translated_errors() -> Iterator[None]:
    """What boto3 raises inside the block, as a :class:`CliError` that says what to do."""
    try:
        yield
    except ClientError as error:
        raise _of_answer(error) from error
    except BotoCoreError as error:
        raise _of_sdk(error) from error


def _of_answer(error: ClientError) -> CliError:
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    if code in _EXPIRED_CODES or "expired" in message.lower():
        return CliError(Exit.EXPIRED_CREDENTIALS, EXPIRED)
    if code in _INVALID_CODES:
        return CliError(
            Exit.NO_CREDENTIALS,
            f"AWS does not accept the credentials ({code}): check AWS_PROFILE, and whether the region is of their "
            "partition and enabled",
        )
    operation = error.operation_name
    action = f"{_PREFIXES.get(operation, 'cloudformation')}:{_SPELLED.get(operation, operation)}"
    if code in _DENIED_CODES:
        return CliError(
            Exit.FORBIDDEN, f"you may not do that: your policies must allow {action}, and none may deny it ({message})"
        )
    return CliError(Exit.FAILED, f"{action} failed: {code}: {message}")


_PREFIXES = {
    "GetCallerIdentity": "sts",
    "GetParameter": "ssm",
    "ListTables": "dynamodb",
    "DescribeTable": "dynamodb",
    "ListTagsOfResource": "dynamodb",
    "GetItem": "dynamodb",
    "GetResourcePolicy": "dynamodb",
    "ListObjectVersions": "s3",
    "DeleteObjects": "s3",
    "GetObject": "s3",
    "HeadObject": "s3",
    "GetSecretValue": "secretsmanager",
    "Scan": "dynamodb",
    "Query": "dynamodb",
    "DescribeAutoScalingGroups": "autoscaling",
    "DescribeInstanceRefreshes": "autoscaling",
    "DescribeInstances": "ec2",
    "DescribeSubnets": "ec2",
    "DescribeAvailabilityZones": "ec2",
    "DescribeVpcs": "ec2",
    "GetServiceQuota": "servicequotas",
    "GetAWSDefaultServiceQuota": "servicequotas",
    "GetAccountSettings": "lambda",
    "ListRules": "events",
    "ListTargetsByRule": "events",
    "RemoveTargets": "events",
    "DeleteRule": "events",
    "UpdateTable": "dynamodb",
    "DeleteTable": "dynamodb",
    "DescribeAlarms": "cloudwatch",
}
"""The IAM prefix of an operation that is not CloudFormation's."""

_SPELLED = {
    "ListObjectVersions": "ListBucketVersions",
    "DeleteObjects": "DeleteObjectVersion",
    "HeadObject": "GetObject",
}
"""What IAM calls an operation otherwise."""


def _of_sdk(error: BotoCoreError) -> CliError:
    if isinstance(error, ProfileNotFound):
        return CliError(Exit.NO_CREDENTIALS, f"{error}: `aws configure list-profiles` lists those there are")
    if isinstance(error, (UnauthorizedSSOTokenError, TokenRetrievalError)) or (
        isinstance(error, (SSOError, CredentialRetrievalError)) and "expired" in str(error).lower()
    ):
        return CliError(Exit.EXPIRED_CREDENTIALS, EXPIRED)
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return CliError(Exit.NO_CREDENTIALS, NO_CREDENTIALS)
    if isinstance(error, (CredentialRetrievalError, SSOError, InvalidConfigError)):
        return CliError(Exit.NO_CREDENTIALS, f"no AWS credentials could be had: {_line(error)}")
    if isinstance(error, InvalidRegionError):
        return CliError(Exit.WRONG_REGION, f"{_line(error)}: give --region, or set AWS_REGION")
    if isinstance(error, (NoConnectionError, HTTPClientError)):
        return CliError(Exit.UNREACHABLE, f"AWS cannot be reached: {_line(error)}")
    return CliError(Exit.FAILED, _line(error))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
