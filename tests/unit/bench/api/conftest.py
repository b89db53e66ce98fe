"""Benchmarks by way of the API: an account whose deployment runs them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.unit.account.account import SETTINGS, Account
from tests.unit.account.bench import Half
from tests.unit.account.fixtures import *  # noqa: F403


@pytest.fixture(name="settings")  # instead of the one of the fixtures
def with_benchmarks(request: pytest.FixtureRequest) -> dict[str, Any]:
    on = {"benchmarks": True, "max_nodes": 10, "allowed_buckets": ["my-data"]}
    return copy.deepcopy(SETTINGS) | on | getattr(request, "param", {})


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
