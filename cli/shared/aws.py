"""Makes the caller's AWS session and translates its errors into messages of one line."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import botocore.session
from botocore.config import Config
from botocore.credentials import Credentials, DeferredRefreshableCredentials, ReadOnlyCredentials
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
    RefreshWithMFAUnsupportedError,
    SSOError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
    UnknownRegionError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from cli.shared.errors import CliError, Exit

if TYPE_CHECKING:  # its import takes as long as a request
    import boto3

NO_CREDENTIALS = (
    "no AWS credentials: set AWS_PROFILE (or --profile), sign in with `aws sso login`, or run `aws configure`"
)
EXPIRED = "the AWS credentials have expired: renew them (for example with `aws sso login`) and try again"
EXPIRED_CODE = "the AWS credentials have expired: type a new code, or start this command again"

_EXPIRED_CODES = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired", "UnauthorizedException"}
)
_INVALID_CODES = frozenset(
    {"InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidAccessKeyId"}
)
_DENIED_CODES = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})

_FILES = ("shared-credentials-file", "config-file")
"""What botocore calls the sources of keys that another program may replace."""

_MAKING = threading.Lock()
"""Lets one thread at a time read what sessions share; the others then have it."""


class Session(botocore.session.Session):
    """Credentials, a region and clients, as boto3's session has them, without boto3's transfers of files.

    Attributes:
        lent: credentials, such as those of a role, which replace those of the profile; None for these.
    """

    lent: Credentials | None = None

    def get_credentials(self) -> Any:
        """Returns the credentials; those of a role are fetched when they are first used."""
        return self.lent or super().get_credentials()

    @property
    def region_name(self) -> str:
        """The region's name; empty or None, as with boto3, if none is set."""
        region: str = self.get_config_variable("region")
        return region

    def client(self, service: str, **options: Any) -> Any:
        """Makes a client; the options are those of boto3."""
        return self.create_client(service, **options)


if TYPE_CHECKING:
    AnySession = Session | boto3.Session


class SharedCredentials(Credentials):
    """The credentials of a profile for many sessions. Whichever needs them first loads them, those of a role in its
    Region: the STS of all Regions is only that of one partition, and Regions to opt in to may refuse its credentials.

    They are loaded again where a person may have renewed them: if they come from a file, and once they cannot be
    refreshed. A failure is that of all who need them in the next seconds.
    """

    _SECONDS = 5.0
    """The time for which a failure, or what a file says, is not read again."""

    def __init__(self, profile: str | None, region: str, asks: bool) -> None:
        self._profile, self._region, self._asks, self._lock = profile, region, asks, threading.Lock()
        self._loaded: Credentials | None = None
        self._failure: Exception | None = None
        self._read = 0.0
        self.method = "shared"

    def __getattr__(self, name: str) -> Any:
        if name in ReadOnlyCredentials._fields:
            return getattr(self.get_frozen_credentials(), name)
        raise AttributeError(name)

    @property
    def need_code(self) -> bool:
        """Whether a person must type a code to load them; not again after AWS has refused one."""
        failure = self._failure
        refused = isinstance(failure, ClientError) and failure.response["Error"].get("Code") in _DENIED_CODES
        return self._asks and self._loaded is None and not refused

    def sign_in(self) -> None:
        """Lets a person type the code; the terminal is safe only in the main thread.

        Raises:
            Exception: as for :meth:`get_frozen_credentials`.
        """
        with self._lock:
            self._load()

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Returns the keys.

        Raises:
            Exception: any, because they may come from a program of the profile; CliError, if they need a code.
        """
        loaded = self._present()
        try:
            return loaded.get_frozen_credentials()
        except Exception:
            with self._lock:
                if self._loaded is loaded:
                    self._loaded = None
            raise

    def _present(self) -> Credentials:
        with self._lock:
            is_old = time.monotonic() - self._read > self._SECONDS
            if self._loaded and not (is_old and self._loaded.method in _FILES):
                return self._loaded
            if not self._loaded and (self._asks or (self._failure and not is_old)):
                raise self._failure or CliError(Exit.EXPIRED_CREDENTIALS, EXPIRED_CODE)
            return self._load()

    def _load(self) -> Credentials:
        self._loaded = self._failure = None
        try:
            self._loaded = self._now()
        except Exception as error:
            self._failure = error
            raise
        finally:
            self._read = time.monotonic()
        return self._loaded

    def _now(self) -> Credentials:
        session = _session(self._profile)
        if self._region:
            session.set_config_variable("region", self._region)
        credentials: Credentials | None = session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        credentials.get_frozen_credentials()  # those of a role are else fetched, and asked for, at the first request
        return credentials


def _settings(profile: str | None) -> set[str]:
    """Returns the names of the settings of a profile and of those that it names as its source."""
    session, seen, settings = Session(profile=profile), set[str](), set[str]()
    profiles, name = session.full_config["profiles"], session.profile or "default"
    while name in profiles and name not in seen:
        seen.add(name)
        settings |= profiles[name].keys()
        name = profiles[name].get("source_profile")
    return settings


_SHARED: dict[tuple[str | None, str | None], SharedCredentials] = {}


def shared_credentials(profile: str | None, region: str | None) -> SharedCredentials:
    """Returns the credentials of a profile, the same for all callers; those of a role for each Region, unless a person
    must type a code for them.
    """
    region, settings = _region(region), _settings(profile)
    asks = "mfa_serial" in settings
    own = region if "role_arn" in settings and not asks else None
    return _SHARED.setdefault((profile, own), SharedCredentials(profile, region, asks))


def _region(region: str | None) -> str:
    return region or os.environ.get("AWS_REGION", "")  # the SDK for Python knows only AWS_DEFAULT_REGION


def make_session(
    profile: str | None,
    region: str | None,
    role: str | None = None,
    external_id: str | None = None,
    *,
    shared: bool = False,
) -> boto3.Session:
    """Makes a session as :func:`make_light_session` does, of boto3."""
    import boto3

    return boto3.Session(botocore_session=make_light_session(profile, region, role, external_id, shared=shared))


def make_light_session(
    profile: str | None,
    region: str | None,
    role: str | None = None,
    external_id: str | None = None,
    *,
    shared: bool = False,
) -> Session:
    """Makes a session with credentials and a region; warns on stderr where the SDK does not know the region.

    Args:
        role: the ARN of a role to assume with these credentials.
        external_id: what the role's trust policy asks for.
        shared: whether to share the profile's credentials with all other sessions that do.

    Raises:
        CliError: NO_CREDENTIALS, EXPIRED_CREDENTIALS or WRONG_REGION.
    """
    with translated_errors():
        session = _session(profile)
        if shared:
            session.lent = shared_credentials(profile, region)
            session.lent.get_frozen_credentials()
        if region := _region(region):
            session.set_config_variable("region", region)
        if session.get_credentials() is None:
            raise NoCredentialsError
    if not session.region_name:
        raise CliError(Exit.WRONG_REGION, "no AWS region is set: use --region or set AWS_REGION")
    with _MAKING:
        known = is_local(session) or session.region_name in known_regions(session)
    if not known:
        _doubt(session)
    return _in_role(session, role, external_id) if role else session


def _session(profile: str | None = None) -> Session:
    session = Session(profile=profile)
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


@cache
def _loader(data_path: str | None) -> Any:
    """Returns what reads AWS's models, for all sessions: each would read and parse the same megabytes."""
    return botocore.session.create_loader(data_path)


def _in_role(own: Session, role: str, external_id: str | None) -> Session:
    """Makes a session in which the credentials of another one assume a role, once they are needed and again when they
    expire. The role's session has the caller's name, so that records of changes say who it was.
    """

    def fetch() -> dict[str, Any]:
        sts = client(own, "sts")
        caller = re.split("[/:]", sts.get_caller_identity()["Arn"])[-1].ljust(2, "_")
        request = {"RoleArn": role, "RoleSessionName": caller} | ({"ExternalId": external_id} if external_id else {})
        answer = sts.assume_role(**request)["Credentials"]
        return {
            "access_key": answer["AccessKeyId"],
            "secret_key": answer["SecretAccessKey"],
            "token": answer["SessionToken"],
            "expiry_time": answer["Expiration"].isoformat(),
        }

    session = _session()
    session.set_config_variable("region", own.region_name)
    session.lent = DeferredRefreshableCredentials(fetch, "assume-role")
    return session


def _doubt(session: AnySession) -> None:
    """Warns about a region that may be newer than the SDK, which then derives the endpoints from its name.

    Raises:
        CliError: WRONG_REGION, for a name that matches no partition.
    """
    region = str(session.region_name)
    near = get_close_matches(region, known_regions(session), 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    try:
        session.get_partition_for_region(region)
    except UnknownRegionError:
        raise CliError(
            Exit.WRONG_REGION,
            f"{region!r} is not an AWS region: set --region or AWS_REGION to the deployment's region{meant}",
        ) from None
    sys.stderr.write(f"Warning: this version of the AWS SDK does not know the region {region}{meant}\n")


def known_regions(session: AnySession) -> list[str]:
    """Lists the regions of all partitions that this SDK knows."""
    partitions = session.get_available_partitions()
    return [r for p in partitions for r in session.get_available_regions("cloudformation", p)]


def endpoint(session: AnySession | None = None) -> str:
    """Returns the address of all services, of the environment or the session's profile; "" for those of AWS."""
    inner: Any = getattr(session, "_session", session)  # boto3's wraps one of ours
    own = inner.get_scoped_config().get("endpoint_url", "") if inner else ""
    return os.environ.get("AWS_ENDPOINT_URL") or str(own)


def is_local(session: AnySession | None = None) -> bool:
    """Checks whether AWS is local AWS: its :func:`endpoint` is on this machine."""
    return urlsplit(endpoint(session)).hostname in ("127.0.0.1", "localhost")


def client(session: AnySession, service: str, **options: Any) -> Any:
    """Makes a client that gives up in seconds rather than minutes."""
    settings = {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 3}, **options}
    create: Any = session.client
    with _MAKING:
        return create(service, config=Config(**settings))


def ca_bundle(session: Session | None = None) -> str | None:
    """Returns the path of certificates to trust instead of the default ones, as boto3 does; None without one.

    Args:
        session: its profile can name them, too.
    """
    own = session.get_config_variable("ca_bundle") if session else os.environ.get("AWS_CA_BUNDLE")
    return own or os.environ.get("REQUESTS_CA_BUNDLE") or None


def account_of(session: AnySession) -> str | None:
    """Returns the account's number; None if it is unknown."""
    try:
        return str(client(session, "sts").get_caller_identity()["Account"])
    except (BotoCoreError, ClientError):
        return None


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translates boto3's errors inside the block.

    Raises:
        CliError: what failed, and what to do.
    """
    try:
        yield
    except ClientError as error:
        raise _answer_error(error) from error
    except BotoCoreError as error:
        raise _sdk_error(error) from error


def _answer_error(error: ClientError) -> CliError:
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    if code in _EXPIRED_CODES or "expired" in message.lower():
        return CliError(Exit.EXPIRED_CREDENTIALS, EXPIRED)
    if code in _INVALID_CODES:
        return CliError(
            Exit.NO_CREDENTIALS,
            f"AWS rejects the credentials ({code}): check AWS_PROFILE, and that the region is enabled and in their "
            "partition",
        )
    operation = error.operation_name
    action = f"{_PREFIXES.get(operation, 'cloudformation')}:{_SPELLED.get(operation, operation)}"
    if code in _DENIED_CODES:
        return CliError(
            Exit.FORBIDDEN, f"permission denied: your policies must allow {action} and must not deny it ({message})"
        )
    return CliError(Exit.FAILED, f"{action} failed: {code}: {message}")


_PREFIXES = {
    "AssumeRole": "sts",
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
    "DeleteBucket": "s3",
    "DeleteLogGroup": "logs",
    "DeleteSecret": "secretsmanager",
    "DescribeSecret": "secretsmanager",
    "ListSecrets": "secretsmanager",
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
    "GetAccountPlanState": "freetier",
    "GetProducts": "pricing",
    "GetRole": "iam",
    "DescribeKey": "kms",
    "GetFunctionConfiguration": "lambda",
    "GetLayerVersionByArn": "lambda",
    "DescribeAlarmHistory": "cloudwatch",
    "DescribeStateMachine": "states",
    "ListExecutions": "states",
    "ListRules": "events",
    "ListTargetsByRule": "events",
    "RemoveTargets": "events",
    "DeleteRule": "events",
    "UpdateTable": "dynamodb",
    "TagResource": "dynamodb",
    "UntagResource": "dynamodb",
    "DeleteTable": "dynamodb",
    "DescribeAlarms": "cloudwatch",
    "GetMetricData": "cloudwatch",
    "ListMetrics": "cloudwatch",
}
"""IAM prefixes of operations that are not CloudFormation's."""

_SPELLED = {
    "ListObjectVersions": "ListBucketVersions",
    "DeleteObjects": "DeleteObjectVersion",
    "HeadObject": "GetObject",
    "GetLayerVersionByArn": "GetLayerVersion",
}
"""IAM actions of operations whose names differ."""


def _sdk_error(error: BotoCoreError) -> CliError:
    if isinstance(error, ProfileNotFound):
        return CliError(Exit.NO_CREDENTIALS, f"{error}: list the profiles with `aws configure list-profiles`")
    if isinstance(error, (UnauthorizedSSOTokenError, TokenRetrievalError)) or (
        isinstance(error, (SSOError, CredentialRetrievalError)) and "expired" in str(error).lower()
    ):
        return CliError(Exit.EXPIRED_CREDENTIALS, EXPIRED)
    if isinstance(error, RefreshWithMFAUnsupportedError):
        return CliError(Exit.EXPIRED_CREDENTIALS, EXPIRED_CODE)
    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return CliError(Exit.NO_CREDENTIALS, NO_CREDENTIALS)
    if isinstance(error, (CredentialRetrievalError, SSOError, InvalidConfigError)):
        return CliError(Exit.NO_CREDENTIALS, f"no AWS credentials could be loaded: {_line(error)}")
    if isinstance(error, InvalidRegionError):
        return CliError(Exit.WRONG_REGION, f"{_line(error)}: use --region or set AWS_REGION")
    if isinstance(error, (NoConnectionError, HTTPClientError)):
        return CliError(Exit.UNREACHABLE, f"AWS cannot be reached: {_line(error)}")
    return CliError(Exit.FAILED, _line(error))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
