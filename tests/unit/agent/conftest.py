"""A fake account, and a node in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import power
from tests.unit.agent.fake_account import FakeAccount
from tests.unit.agent.node import Node
from tests.unit.agent.s3_scripts import Scripts


@pytest.fixture
def account() -> Iterator[FakeAccount]:
    account = FakeAccount()
    yield account
    account.close()


@pytest.fixture(autouse=True)
def this_machine_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of this process must not turn its machine off, whatever the agent takes it for."""
    monkeypatch.setattr(power, "_turn_off", lambda: "this is no node")


@pytest.fixture
def node(account: FakeAccount, tmp_path: Path) -> Iterator[Node]:
    node = Node(account, tmp_path)
    yield node
    node.end()


@pytest.fixture
def scripts(account: FakeAccount, tmp_path: Path) -> Scripts:
    for name, size in {"a/1": 5000, "a/2": 999, "a/3": 1000, "b/4": 70_000}.items():
        account.put(f"data/{name}", bytes(size))
    account.slowness = 0.02  # without it, scripts read thousands of times as fast as they can
    return Scripts(account, tmp_path)
