"""Spares moto work that is the same for every test: what leads to an account, and signatures, which nothing reads."""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import moto.core.models
import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.client import BaseClient
from botocore.compat import HTTPHeaders
from botocore.signers import RequestSigner
from botocore.useragent import UserAgentString
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from moto.core.base_backend import BackendDict

from troop.shared.wiring import environment

T = TypeVar("T")
Holder = tuple[Any, *tuple[str, ...]]
"""An object, and those of its attributes that are copied together with an account."""

# moto makes a thousand callbacks for each account, for the library requests, which neither functions nor tests use.
moto.core.models.RESPONSES_METHODS.clear()

# Accounts that are copied

_LOCK = type(threading.RLock())
_shared: dict[int, Any] = {}
_copies: dict[Hashable, bytes] = {}
copying = True
"""Whether :func:`once` copies; not where a test reads what functions log meanwhile."""
_answers: list[Any] = []
_state: list[Holder] = []

_FILES = ("TROOP_DEPLOYMENT_FILE", "TROOP_AGENT_FILE")
"""Variables that name files of a test."""


class _Pickler(pickle.Pickler):
    """Copies neither moto's registers of accounts nor private keys, which do not change."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, _LOCK):
            return threading.RLock, ()
        if not isinstance(thing, (BackendDict, RSAPrivateKey)):
            return NotImplemented
        _shared[id(thing)] = thing
        return _shared_thing, (id(thing),)


def _shared_thing(ident: int) -> Any:
    return _shared[ident]


def _packed(thing: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(thing)
    return buffer.getvalue()


def calls_are_usual(*holders: Holder, is_new: bool = False) -> None:
    """Says that calls are answered as in other tests from now on: :func:`once` may copy.

    Args:
        holders: what answers depend on, beside the account and what an earlier call has named.
        is_new: whether this is another account, for which no earlier call counts.
    """
    _state[:] = [*([] if is_new else _state), *holders]
    _answers[:] = [BaseClient._make_api_call]  # type: ignore[attr-defined]


def once(label: Hashable, make: Callable[[], T], *holders: Holder) -> T:
    """Does what ``make`` does to the account and to the attributes of ``holders``, and returns the like of its answer.

    In this process it is called once for the same account, attributes, time, and environment; all of them become copies
    of what it made of them. It is called each time where a test answers calls itself.
    """
    if not copying or _answers != [BaseClient._make_api_call]:  # type: ignore[attr-defined]
        return make()
    holders = (*_state, *holders)
    key = (label, environment.now(), _variables(), _packed((_values(holders), _registers())))
    if key not in _copies:
        _copies[key] = _packed((make(), _values(holders), _registers()))
    answer, values, registers = pickle.loads(_copies[key])
    for (thing, *names), contents in zip(holders, values, strict=True):
        for name, content in zip(names, contents, strict=True):
            setattr(thing, name, content)
    for register in BackendDict._instances:
        register.clear()
    for register, accounts, attributes in registers:
        register.clear()  # also what moto has put into one at a reset, which is in use by nobody
        register.update(accounts)
        vars(register).update(attributes)
    BackendDict._instances[:] = [register for register, _, _ in registers]
    return answer  # type: ignore[no-any-return]


def _values(holders: tuple[Holder, ...]) -> list[list[Any]]:
    return [[getattr(thing, name) for name in names] for thing, *names in holders]


def _registers() -> list[tuple[Any, dict[str, Any], dict[str, Any]]]:
    return [(register, dict(register), vars(register)) for register in BackendDict._instances]


def _variables() -> tuple[tuple[str, str | bytes], ...]:
    """Returns those of Troop, and what is in the files that they name."""
    ours = sorted(item for item in os.environ.items() if item[0].startswith("TROOP_"))
    return tuple((key, Path(value).read_bytes() if key in _FILES else value) for key, value in ours)


def sign_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives requests a constant signature and sender, as moto checks none; presigned addresses keep theirs."""
    monkeypatch.setattr(UserAgentString, "to_string", lambda self: "tests")
    monkeypatch.setattr(RequestSigner, "handler", _signed_alike(RequestSigner.handler))
    constants = {"canonical_request": "", "string_to_sign": "", "headers_to_sign": HTTPHeaders(), "signature": "0" * 64}
    for name, constant in constants.items():
        monkeypatch.setattr(SigV4Auth, name, _constant_unless_presigned(getattr(SigV4Auth, name), constant))


def _signed_alike(original: Callable[..., Any]) -> Callable[..., Any]:
    """What signing takes is an eighth of a call. S3's signatures also say how a body is coded, which moto reads."""

    def handler(self: Any, operation_name: Any = None, request: Any = None, **more: Any) -> Any:
        if self.signature_version != "v4":
            return original(self, operation_name, request, **more)
        region = request.context.get("signing", {}).get("region") or self.region_name
        scope = f"20260101/{region}/{self.signing_name}/aws4_request"
        request.headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential=testing/{scope}, Signature=0"

    return handler


def _constant_unless_presigned(original: Callable[..., Any], constant: Any) -> Callable[..., Any]:
    def answer(self: Any, *arguments: Any) -> Any:
        return original(self, *arguments) if isinstance(self, SigV4QueryAuth) else constant

    return answer
