"""Spares moto work that is the same for every test: deploying, and signatures, which nothing reads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.compat import HTTPHeaders
from botocore.useragent import UserAgentString
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID

REGION = "eu-central-1"

_BUCKETS = ("s3", "aws", "buckets")
_PARTS = (
    _BUCKETS,
    ("dynamodb", REGION, "tables"),
    ("secretsmanager", REGION, "secrets"),
    ("events", REGION, "event_buses"),
)
"""Service, region and attribute of its backend in moto: where :func:`deploy_once` copies resources."""

_copies: dict[tuple[str, str, str], Any] = {}
"""By part: what the first deployment of this process created."""


def deploy_once(create: Callable[[], None]) -> None:
    """Puts into an empty account copies of what ``create`` makes in the first one of this process."""
    if not _copies:
        create()
        _copies.update({part: copy.deepcopy(getattr(_backend(*part), part[2])) for part in _PARTS})
        return
    for part, resources in _copies.items():
        setattr(_backend(*part), part[2], copy.deepcopy(resources))
    for bucket in _backend(*_BUCKETS).buckets:
        get_backend("s3").bucket_accounts[bucket] = ("aws", DEFAULT_ACCOUNT_ID)


def _backend(service: Any, region: str, _: str) -> Any:
    return get_backend(service)[DEFAULT_ACCOUNT_ID][region]


def sign_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives requests a constant signature and sender, as moto checks none; presigned addresses keep theirs."""
    monkeypatch.setattr(UserAgentString, "to_string", lambda self: "tests")
    constants = {"canonical_request": "", "string_to_sign": "", "headers_to_sign": HTTPHeaders(), "signature": "0" * 64}
    for name, constant in constants.items():
        monkeypatch.setattr(SigV4Auth, name, _of_presigned(getattr(SigV4Auth, name), constant))


def _of_presigned(original: Callable[..., Any], constant: Any) -> Callable[..., Any]:
    def answer(self: Any, *arguments: Any) -> Any:
        return original(self, *arguments) if isinstance(self, SigV4QueryAuth) else constant

    return answer
