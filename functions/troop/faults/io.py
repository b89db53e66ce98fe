"""Defines ``io``: stress-ng reads and writes the instance's root volume."""

from __future__ import annotations

from collections.abc import Mapping

from troop.faults.cpu import STRESS_TOOLS, STRESS_TRACES
from troop.faults.lasting_fault import SECONDS, LastingFault, Parameter, seconds, whole


def _request(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        "DurationSeconds": parameters[SECONDS],
        "Workers": parameters["workers"],
        "Percent": parameters["percent"],
    }


IO = LastingFault(
    name="io",
    summary="the root volume is busy with reads and writes",
    document="AWSFIS-Run-IO-Stress",
    parameters=(
        Parameter("workers", "how many processes read and write", whole(1, 64), "1"),
        Parameter("percent", "how much of the free space they use, in percent", whole(1, 80), "50"),
        seconds(300),
    ),
    request=_request,
    traces=STRESS_TRACES,
    tools=STRESS_TOOLS,
)
