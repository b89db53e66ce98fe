"""Copies accounts of moto: tests that begin alike make calls once, and then start with a copy of the result."""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

from botocore.client import BaseClient
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from moto.core.base_backend import BackendDict

from troop.shared.wiring import environment

T = TypeVar("T")
Holder = tuple[Any, *tuple[str, ...]]
"""An object, and those of its attributes that are copied together with an account."""

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
