"""Defines ``cpu``: stress-ng keeps the processors of the instance busy."""

from __future__ import annotations

from collections.abc import Mapping

from troop.faults.lasting_fault import SECONDS, LastingFault, Parameter, Trace, seconds, whole

STRESS_TOOLS: Mapping[str, str] = {"stress-ng": "stress-ng", "pgrep": "procps-ng"}
STRESS_TRACES = (Trace("stress"),)
"""stress-ng's workers share the shell's process group: a cancel, which kills that group, ends them, too."""


def _request(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        "DurationSeconds": parameters[SECONDS],
        "CPU": parameters["processors"],
        "LoadPercent": parameters["load"],
    }


CPU = LastingFault(
    name="cpu",
    summary="processors of the instance are busy",
    document="AWSFIS-Run-CPU-Stress",
    parameters=(
        Parameter("load", "the load of each busy processor, in percent", whole(1, 100), "100"),
        Parameter("processors", "how many processors are busy; 0 for all", whole(0, 1024), "0"),
        seconds(300),
    ),
    request=_request,
    traces=STRESS_TRACES,
    tools=STRESS_TOOLS,
)
