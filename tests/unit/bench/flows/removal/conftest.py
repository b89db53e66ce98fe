"""Teardown runs against moto; every test has an account of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.account.patches import moto_templates
from tests.tables import create_table
from tests.unit.account.account import Clock
from tests.unit.account.fixtures import functions_at
from tests.unit.bench.flows.removal.tables import NOON
from tests.unit.bench.flows.removal.world import ENVIRONMENT, World, set_up
from troop.bench.aws.run_table import RunTable
from troop.shared.aws.clients import client
from troop.shared.tables import RUNS

moto_templates.apply()


@pytest.fixture(autouse=True)
def machines(variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds what the functions that remove things have in their environment."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunTable]:
    with functions_at(Clock(NOON), monkeypatch):
        create_table(client("dynamodb"), RUNS)
        yield RunTable(client("dynamodb"), "Runs", sleep=lambda seconds: None)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An account with a deployment in it."""
    with set_up(monkeypatch) as world:
        yield world
