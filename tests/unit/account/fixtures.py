"""Fixtures of tests of handlers and adapters: they run against moto, and every test has an account of its own.

A folder of such tests imports all names of this module in its ``conftest.py``.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.utilities.parameters import clear_caches
from botocore.client import BaseClient
from moto import mock_aws

from local.account.patches import moto_lookups, moto_placement_groups
from tests.unit.account import fast_moto
from tests.unit.account.account import ENVIRONMENT, SETTINGS, Account, Clock
from tests.unit.account.benches import Bench, deploy_benchmarks
from tests.unit.account.deployed import Deployed, deploy
from tests.unit.account.dimensions import right_dimensions
from tests.unit.account.fast_moto import calls_are_usual
from tests.unit.account.market import Market
from tests.unit.account.profiles import give_profiles
from tests.unit.account.rights import within_rights
from tests.unit.account.wired import forget
from troop.shared.wiring import environment

os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"  # thousands of them, for every account
moto_lookups.apply()
moto_placement_groups.apply()


Log = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Gives the lines that functions have logged in this test, metrics aside."""
    written = io.StringIO()
    monkeypatch.setattr(fast_moto, "copying", False)
    for logger in list(logging.Logger.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            if isinstance(handler.formatter, LambdaPowertoolsFormatter):
                monkeypatch.setattr(handler, "stream", written)
    return lambda: [json.loads(line) for line in written.getvalue().splitlines()]


def _forget() -> None:
    forget()
    clear_caches()


def _with_refreshes(account: Account) -> Any:
    """moto has no instance refreshes: the account's own are answered."""
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation != "DescribeInstanceRefreshes":
            return real(self, operation, parameters)
        status = account.refreshes.get(parameters["AutoScalingGroupName"])
        return {"InstanceRefreshes": [{"Status": status}] if status else []}

    return call


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The deployment's; ``@pytest.mark.parametrize("settings", [{...}], indirect=True)`` changes some."""
    return copy.deepcopy(SETTINGS) | getattr(request, "param", {})


@pytest.fixture
def market() -> Market:
    """What the account is told of prices and quotas."""
    return Market()


@pytest.fixture(autouse=True)
def templates_give_their_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    give_profiles(monkeypatch)


@pytest.fixture(autouse=True)
def metrics_have_their_dimensions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with right_dimensions(monkeypatch):
        yield


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: dict[str, Any]) -> None:
    """The environment of the functions."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "deployment.json"
    path.write_text(json.dumps(settings))
    monkeypatch.setenv("TROOP_DEPLOYMENT_FILE", str(path))


@contextmanager
def functions_at(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets functions run anew, by a clock, in an empty account; sleeping takes no time."""
    monkeypatch.setattr(environment, "now", clock)
    monkeypatch.setattr(environment, "sleep", lambda seconds: None)
    _forget()
    with mock_aws():
        yield
    _forget()


@pytest.fixture
def account(
    variables: None, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], market: Market
) -> Iterator[Account]:
    """A fresh account with a deployment in it, at 14:46 of a Friday in Los Angeles."""
    clock = Clock()
    with functions_at(clock, monkeypatch):
        account = Account(clock, settings)
        monkeypatch.setattr(BaseClient, "_make_api_call", within_rights(market.answering(_with_refreshes(account))))
        calls_are_usual((clock, "moment"), (account, "refreshes"), (market, *vars(market)), is_new=True)
        account.deploy()
        yield account


@pytest.fixture
def deployed(account: Account, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    """A deployment in which all is well: ticks came until a minute ago."""
    return deploy(account, monkeypatch)


@pytest.fixture
def bench(account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """A run that was admitted, in an account whose deployment runs benchmarks."""
    return deploy_benchmarks(account, monkeypatch, tmp_path).admit()
