"""Makes boto3 clients, once for each process, with time-outs that suit a Lambda function."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from botocore import UNSIGNED
from botocore.config import Config

from troop.shared.aws.throttling import QUICK_ATTEMPTS, TERMINATION_ATTEMPTS, USUAL_ATTEMPTS

_CONFIG = Config(
    connect_timeout=3,
    read_timeout=15,
    retries={"mode": "standard", "total_max_attempts": USUAL_ATTEMPTS},
)

_TERMINATION = Config(
    connect_timeout=2,
    read_timeout=6,
    retries={"mode": "standard", "total_max_attempts": TERMINATION_ATTEMPTS},
)

_SINGLE = Config(
    connect_timeout=2,
    read_timeout=6,
    retries={"mode": "standard", "total_max_attempts": 1},
)

_QUICK = Config(
    connect_timeout=1,
    read_timeout=4,
    retries={"mode": "standard", "total_max_attempts": QUICK_ATTEMPTS},
)

_MANY = _CONFIG.merge(Config(max_pool_connections=32))


def _new(service: str, **settings: Any) -> Any:
    return boto3.client(service, **settings)  # type: ignore[call-overload]


@cache
def client(service: str) -> Any:
    """Returns a client of a service, such as ``dynamodb``. In Lambda the region comes from the environment."""
    return _new(service, config=_CONFIG)


@cache
def presigning_client(service: str) -> Any:
    """Returns a client whose presigned addresses sign headers and name the region's own host.

    Without these settings S3's addresses would sign no headers in the oldest region, and would name the global host in
    others. For a young bucket the global host answers with a redirect, which invalidates the signature, and it does not
    know opt-in regions.
    """
    config = _CONFIG.merge(Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
    return _new(service, config=config)


@cache
def termination_client(service: str) -> Any:
    """Returns a client whose calls end within about 25 seconds, retries included."""
    return _new(service, config=_TERMINATION)


@cache
def single_client(service: str) -> Any:
    """Returns a client that sends each request once, as some must not be repeated; a call ends within 8 seconds."""
    return _new(service, config=_SINGLE)


@cache
def waiting_client(service: str) -> Any:
    """Returns a client that sends each request once and waits a minute for its answer, such as that of a function."""
    return _new(service, config=_SINGLE.merge(Config(read_timeout=60)))


@cache
def regional_client(service: str, region: str) -> Any:
    """Returns a client like :func:`quick_client`, for another region."""
    return _new(service, region_name=region, config=_QUICK)


@cache
def many_client(service: str) -> Any:
    """Returns a client for many threads at once."""
    return _new(service, config=_MANY)


@cache
def quick_client(service: str) -> Any:
    """Returns a client whose calls end within about 10 seconds, retries included."""
    return _new(service, config=_QUICK)


@cache
def anonymous_client(service: str) -> Any:
    """Returns a quick client that signs nothing, for what AWS tells everyone."""
    return _new(service, config=_QUICK.merge(Config(signature_version=UNSIGNED)))
