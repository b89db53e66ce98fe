"""Reads a function's environment: its variables, the deployment's settings, and time."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from troop.shared.errors import TroopError
from troop.shared.settings import Settings, load_settings
from troop.shared.variables import Variable

CODE = Path(__file__).parents[3]
"""The folder of the function's code, with the files that are bundled beside the handlers."""


class EnvironmentIncompleteError(TroopError):
    """The function was deployed without a variable that it needs."""


def variable(name: Variable) -> str:
    """Returns an environment variable's value.

    Raises:
        EnvironmentIncompleteError: it is not set.
    """
    if value := os.environ.get(name):
        return value
    raise EnvironmentIncompleteError(f"the environment variable {name} is not set: deploy the stack again")


@cache
def settings() -> Settings:
    """Reads the deployment's settings from the file beside the handlers."""
    return load_settings(Path(os.environ.get(Variable.DEPLOYMENT_FILE, CODE / "deployment.json")))


def recovery_timeout() -> timedelta:
    """Returns the time after which a group that has not recovered counts as unrecovered."""
    return timedelta(minutes=settings().recovery_timeout_minutes)


def now() -> datetime:
    return datetime.now(UTC)


def seconds() -> float:
    """Returns a monotonic time, for limits."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    time.sleep(seconds)
