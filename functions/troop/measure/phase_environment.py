"""Reads a script's environment, in which the agent describes the phase."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Measured(NamedTuple):
    """The measured time of a phase.

    Attributes:
        begin: of the measured time, after the warm-up; seconds since 1970.
        seconds: its length; 0 if the phase is not measured.
        warm_up: seconds of the warm-up before it.
    """

    begin: float
    seconds: float
    warm_up: float


def measured(environment: Mapping[str, str] = os.environ) -> Measured:
    """Returns the measured time from the environment.

    Raises:
        KeyError: the agent did not start this script.
    """
    warm_up = float(environment.get("TROOP_WARM_UP_SECONDS", 0))
    return Measured(float(environment["TROOP_MEASURED_FROM"]), float(environment["TROOP_MEASURED_SECONDS"]), warm_up)


def results(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder for results that the agent collects.

    Raises:
        KeyError: the agent did not start this script.
    """
    return Path(environment["TROOP_RESULTS"])
