"""Defines ``disk``: a file fills the instance's root volume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troop.faults.lasting_fault import SECONDS, LastingFault, Parameter, Trace, seconds, whole

LEAST_FILLED = 10
"""The fewest percentage points that the fault must add: a smaller change could not be told from the instance's own."""


def _request(parameters: Mapping[str, str]) -> dict[str, str]:
    return {"DurationSeconds": parameters[SECONDS], "Percent": parameters["percent"]}


def _refusal(parameters: Mapping[str, str], reading: Mapping[str, Any]) -> str:
    used, percent = reading.get("used"), int(parameters["percent"])
    if used is not None and used > percent - LEAST_FILLED:
        return f"{used:g} % of the root volume is used: percent={percent} would not fill it by {LEAST_FILLED} points"
    return ""


DISK = LastingFault(
    name="disk",
    summary="a file fills the root volume",
    document="AWSFIS-Run-Disk-Fill",
    parameters=(
        # AWS: a full volume can keep the document from being cancelled. Below 10 it would take 5 for 50 %.
        Parameter("percent", "how full the volume becomes, in percent", whole(20, 95), "90"),
        seconds(300),
    ),
    request=_request,
    # The document deletes the file while its shell has it open: no name is left, and the space is free when the shell
    # and its children have ended. The file is as large as the fault, which adds at least LEAST_FILLED.
    traces=(Trace("used", slack=LEAST_FILLED / 2),),
    tools={"fallocate": "util-linux", "bc": "bc", "atd": "at"},
    refusal=_refusal,
)
