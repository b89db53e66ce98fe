"""Tests with an account in moto."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.account.account import Account, calls
from tests.unit.account.fixtures import *  # noqa: F403
from tests.unit.account.insides import Insides
from troop.shared.wiring import environment


@pytest.fixture
def insides(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[Insides]:
    insides = Insides(clock=account.clock)
    monkeypatch.setattr(environment, "sleep", lambda seconds: account.clock.forward(seconds=seconds))
    with calls(monkeypatch, insides):
        yield insides
