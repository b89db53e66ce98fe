"""Teardown runs against moto; every test has an account of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from local.account.patches import moto_lookups, moto_placement_groups, moto_templates
from tests.tables import create_table
from tests.unit.account.account import SETTINGS
from tests.unit.account.dimensions import right_dimensions
from tests.unit.account.profiles import give_profiles
from tests.unit.bench.flows.removal.world import ENVIRONMENT, World, set_up
from troop.bench.aws.run_table import RunTable
from troop.shared.aws.clients import client
from troop.shared.tables import RUNS

os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"  # thousands of them, for every account
moto_lookups.apply()
moto_placement_groups.apply()
moto_templates.apply()


@pytest.fixture(autouse=True)
def _templates_give_their_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    give_profiles(monkeypatch)


@pytest.fixture(autouse=True)
def _metrics_have_their_dimensions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with right_dimensions(monkeypatch):
        yield


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That of the functions."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "deployment.json"
    path.write_text(json.dumps(SETTINGS))
    monkeypatch.setenv("TROOP_DEPLOYMENT_FILE", str(path))


@pytest.fixture
def aws(environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty account."""
    with mock_aws():
        yield


@pytest.fixture
def runs(aws: None) -> RunTable:
    create_table(client("dynamodb"), RUNS)
    return RunTable(client("dynamodb"), "Runs", sleep=lambda seconds: None)


@pytest.fixture
def world(aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An account with a deployment in it."""
    with set_up(monkeypatch) as account:
        yield account
