"""Defines ``memory``: stress-ng allocates memory of the instance."""

from __future__ import annotations

from collections.abc import Mapping

from troop.faults.cpu import STRESS_TOOLS, STRESS_TRACES
from troop.faults.lasting_fault import SECONDS, LastingFault, Parameter, seconds, whole


def _request(parameters: Mapping[str, str]) -> dict[str, str]:
    return {"DurationSeconds": parameters[SECONDS], "Percent": parameters["percent"], "Workers": "1"}


MEMORY = LastingFault(
    name="memory",
    summary="a part of the instance's memory is in use",
    document="AWSFIS-Run-Memory-Stress",
    parameters=(
        Parameter("percent", "how much of the memory is allocated, in percent", whole(1, 95), "80"),
        seconds(300),
    ),
    request=_request,
    traces=STRESS_TRACES,
    tools=STRESS_TOOLS,
)
