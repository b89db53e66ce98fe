"""Makes boto3 clients, once for each process, with time-outs that suit a Lambda function."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from botocore import UNSIGNED
from botocore.config import Config

_CONFIG = Config(
    connect_timeout=3,
    read_timeout=15,
    # "standard" retries throttling and transient errors with jittered backoff.
    retries={"mode": "standard", "total_max_attempts": 7},
)

_TERMINATION = Config(
    connect_timeout=2,
    read_timeout=6,
    # All attempts together must end well before a claim's deadline (claims.LAST_CALL).
    retries={"mode": "standard", "total_max_attempts": 3},
)

_QUICK = Config(
    connect_timeout=1,
    read_timeout=4,
    # A health check must report what does not answer, not wait for it.
    retries={"mode": "standard", "total_max_attempts": 2},
)

_MANY = Config(
    connect_timeout=3,
    read_timeout=15,
    retries={"mode": "standard", "total_max_attempts": 7},
    max_pool_connections=32,
)


@cache
def client(service: str) -> Any:
    """Returns a client of a service, such as ``dynamodb``. In Lambda the region comes from the environment."""
    return boto3.client(service, config=_CONFIG)  # type: ignore[call-overload]


@cache
def presigning_client(service: str) -> Any:
    """Returns a client whose presigned addresses sign headers and name the region's own host.

    Without these settings S3's addresses would sign no headers in the oldest region, and would name the global host in
    others. For a young bucket the global host answers with a redirect, which invalidates the signature, and it does not
    know opt-in regions.
    """
    config = _CONFIG.merge(Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
    return boto3.client(service, config=config)  # type: ignore[call-overload]


@cache
def termination_client(service: str) -> Any:
    """Returns a client whose calls end within about 25 seconds, retries included."""
    return boto3.client(service, config=_TERMINATION)  # type: ignore[call-overload]


@cache
def regional_client(service: str, region: str) -> Any:
    """Returns a client like :func:`quick_client`, for another region."""
    return boto3.client(service, region_name=region, config=_QUICK)  # type: ignore[call-overload]


@cache
def many_client(service: str) -> Any:
    """Returns a client for many threads at once."""
    return boto3.client(service, config=_MANY)  # type: ignore[call-overload]


@cache
def quick_client(service: str) -> Any:
    """Returns a client whose calls end within about 10 seconds, retries included."""
    return boto3.client(service, config=_QUICK)  # type: ignore[call-overload]


@cache
def anonymous_client(service: str) -> Any:
    """Returns a quick client that signs nothing, for what AWS tells everyone."""
    return boto3.client(service, config=_QUICK.merge(Config(signature_version=UNSIGNED)))  # type: ignore[call-overload]
