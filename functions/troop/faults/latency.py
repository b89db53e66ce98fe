"""Defines ``latency``: packets of the instance are delayed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from troop.faults.lasting_fault import SECONDS, LastingFault, Parameter, Trace, Values, one_of, seconds, whole

EVERYTHING = "ALL"

_SOURCE = re.compile(r"ALL|S3|DYNAMODB|[0-9]{1,3}(\.[0-9]{1,3}){3}(/[0-9]{1,2})?|[a-z0-9-]+(\.[a-z0-9-]+)+")


_SOURCES = Values(
    "ALL, S3, DYNAMODB, an IPv4 address or range, or a host's whole name",
    lambda text: len(text) <= 200 and _SOURCE.fullmatch(text) is not None,
)
"""One of what AWS's documents accept. They accept several, too, with commas, which separate choices here. A zone is
only for FIS, which puts the ranges of its subnets in its place.
"""

DIRECTION = Parameter(
    "direction", "the direction of the packets, as the instance sees it", one_of("ingress", "egress"), "egress"
)
SOURCES = Parameter("sources", "the other side: an address, a range, a host, S3, DYNAMODB or ALL", _SOURCES, EVERYTHING)

NETEM = "sch_netem"
NETWORK_TOOLS: Mapping[str, str] = {
    "tc": "iproute-tc",
    NETEM: "kernel-modules-extra",
    "kmod": "kmod",
    "dig": "bind-utils",
    "jq": "jq",
    "curl": "curl-minimal",
    "lsof": "lsof",
    "pgrep": "procps-ng",
    "atd": "at",
}
NETWORK_MODULES = frozenset({NETEM})
NETWORK_OVERRUN = 30
"""AWS's documents look up the addresses of Systems Manager ten times, then add up to a hundred queueing disciplines."""
NETWORK_TRACES = (Trace("qdiscs"), Trace("hosts"), Trace("rollbacks"))


def _request(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        "DurationSeconds": parameters[SECONDS],
        "Interface": "DEFAULT",
        "DelayMilliseconds": parameters["delay"],
        "JitterMilliseconds": parameters["jitter"],
        "Sources": parameters["sources"],
        "TrafficType": parameters["direction"],
    }


LATENCY = LastingFault(
    name="latency",
    summary="packets of the instance are delayed",
    document="AWSFIS-Run-Network-Latency-Sources",
    parameters=(
        Parameter("delay", "in milliseconds", whole(1, 5000), "200"),
        Parameter("jitter", "in milliseconds", whole(0, 5000), "10"),
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
)
