"""Benchmarks by way of the API: an account whose deployment runs them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.account.account import Account
from tests.unit.account.bench import Half


@pytest.fixture(name="settings")
def with_benchmarks(settings: dict[str, Any], request: pytest.FixtureRequest) -> dict[str, Any]:
    on = {"benchmarks": True, "max_nodes": 10, "allowed_buckets": ["my-data"]}
    return settings | on | getattr(request, "param", {})


@pytest.fixture
def zones() -> list[str]:
    """Those of the deployment's subnets."""
    return ["eu-central-1a", "eu-central-1b"]


@pytest.fixture
def half(account: Account, zones: list[str], monkeypatch: pytest.MonkeyPatch) -> Half:
    half = Half(account, zones)
    half.deploy()
    for name, value in half.environment().items():
        monkeypatch.setenv(name, value)
    return half
