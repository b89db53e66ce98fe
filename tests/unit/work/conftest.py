"""Workers of a fake account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.agent.fake_account import FakeAccount
from tests.unit.work.processes import Workers


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    account = FakeAccount()
    workers = Workers(account, tmp_path)
    yield workers
    workers.close()
    account.close()
