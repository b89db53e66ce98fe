"""A fake account, and a node in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.agent.fake_account import FakeAccount
from tests.unit.agent.node import Node


@pytest.fixture
def account() -> Iterator[FakeAccount]:
    account = FakeAccount()
    yield account
    account.close()


@pytest.fixture
def node(account: FakeAccount, tmp_path: Path) -> Iterator[Node]:
    node = Node(account, tmp_path)
    yield node
    node.end()
