"""Reads a function's environment: its variables, the deployment's settings, and time."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from troop.shared import codec
from troop.shared.errors import TroopError
from troop.shared.release import Release
from troop.shared.settings import SETTINGS_FILE, Settings, load_settings
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
    """Reads the deployment's settings. They have a layer of their own, so that the code is the same in every stage."""
    # Lambda adds a layer's folder to the module path. Local AWS has other folders for layers.
    places = (Path(entry, SETTINGS_FILE) for entry in sys.path)
    path = os.environ.get(Variable.DEPLOYMENT_FILE) or next(filter(Path.is_file, places), CODE / SETTINGS_FILE)
    return load_settings(Path(path))


def release() -> Release:
    """Reads the release of this deployment."""
    return codec.from_document(Release, json.loads(variable(Variable.RELEASE)))


def stage() -> str | None:
    """Returns the deployment's stage; None without one."""
    return os.environ.get(Variable.STAGE) or None


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
