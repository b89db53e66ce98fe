"""What the agent tells a script of the phase that it is run for, in its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Measured(NamedTuple):
    """When a phase measures.

    Attributes:
        begin: of the measured time, after the warm-up; seconds since 1970.
        seconds: how long it is; 0 where the phase is not measured.
        warm_up: seconds before it.
    """

    begin: float
    seconds: float
    warm_up: float


def measured(environment: Mapping[str, str] = os.environ) -> Measured:
    """As the agent says.

    Raises:
        KeyError: it is run by somebody else.
    """
    warm_up = float(environment.get("TROOP_WARM_UP_SECONDS", 0))
    return Measured(float(environment["TROOP_MEASURED_FROM"]), float(environment["TROOP_MEASURED_SECONDS"]), warm_up)


def results(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder in which the agent looks for what is to be kept.

    Raises:
        KeyError: it is run by somebody else.
    """
    return Path(environment["TROOP_RESULTS"])
