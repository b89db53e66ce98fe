"""An account whose deployment runs standing fleets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.account.account import Account
from tests.unit.account.standing import Stand, deploy_fleets


@pytest.fixture(name="settings")
def with_fleets(settings: dict[str, Any], request: pytest.FixtureRequest) -> dict[str, Any]:
    return settings | {"max_nodes": 10, "allowed_buckets": ["my-data"]} | getattr(request, "param", {})


@pytest.fixture
def stand(account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stand]:
    with deploy_fleets(account, monkeypatch, tmp_path) as stand:
        yield stand
