"""Defines ``loss``: packets of the instance are lost."""

from __future__ import annotations

from collections.abc import Mapping

from troop.faults.lasting_fault import SECONDS, LastingFault, Parameter, seconds, whole
from troop.faults.latency import (
    DIRECTION,
    EVERYTHING,
    NETWORK_MODULES,
    NETWORK_OVERRUN,
    NETWORK_TOOLS,
    NETWORK_TRACES,
    SOURCES,
)

MOST_OF_ALL = 50
"""The most percent of all packets. AWS's document spares the addresses of Systems Manager that it finds; with half of
the packets its agent still hears of an abort where the document does not find them all.
"""


def _request(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        "DurationSeconds": parameters[SECONDS],
        "Interface": "DEFAULT",
        "LossPercent": parameters["percent"],
        "Sources": parameters["sources"],
        "TrafficType": parameters["direction"],
    }


def _conflict(parameters: Mapping[str, str]) -> str:
    if parameters["sources"] == EVERYTHING and int(parameters["percent"]) > MOST_OF_ALL:
        return f"percent of at most {MOST_OF_ALL} where sources={EVERYTHING}: the agent must hear of an abort"
    return ""


LOSS = LastingFault(
    name="loss",
    summary="packets of the instance are lost",
    document="AWSFIS-Run-Network-Packet-Loss-Sources",
    parameters=(
        Parameter("percent", "how many packets are lost, in percent", whole(1, 100), "7"),
        SOURCES,
        DIRECTION,
        seconds(300),
    ),
    request=_request,
    traces=NETWORK_TRACES,
    tools=NETWORK_TOOLS,
    modules=NETWORK_MODULES,
    overrun=NETWORK_OVERRUN,
    needs_timer=True,
    conflict=_conflict,
)
