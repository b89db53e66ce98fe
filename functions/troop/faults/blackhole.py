"""Defines ``blackhole``: packets of one port are dropped."""

from __future__ import annotations

from collections.abc import Mapping

from troop.faults.lasting_fault import SECONDS, LastingFault, Parameter, Trace, one_of, seconds, whole
from troop.faults.latency import DIRECTION

HTTPS = "443"
"""AWS's document spares the addresses of Systems Manager on this port. Connections of the agent that exist may have
other addresses, so Troop does not rely on it.
"""


def _request(parameters: Mapping[str, str]) -> dict[str, str]:
    return {
        "DurationSeconds": parameters[SECONDS],
        "Protocol": parameters["protocol"],
        "Port": parameters["port"],
        "TrafficType": parameters["direction"],
    }


def _conflict(parameters: Mapping[str, str]) -> str:
    if (parameters["protocol"], parameters["port"], parameters["direction"]) == ("tcp", HTTPS, "egress"):
        return f"another port than {HTTPS} where direction=egress: Systems Manager's agent must hear of an abort"
    return ""


BLACKHOLE = LastingFault(
    name="blackhole",
    summary="packets of one port are dropped",
    document="AWSFIS-Run-Network-Blackhole-Port",
    parameters=(
        Parameter("port", "the number of the port", whole(1, 65_535)),
        Parameter("protocol", "the protocol", one_of("tcp", "udp"), "tcp"),
        DIRECTION,
        seconds(300),
    ),
    request=_request,
    traces=(Trace("drops"), Trace("hosts"), Trace("rollbacks")),
    tools={"iptables": "iptables", "dig": "bind-utils", "atd": "at"},
    overrun=30,
    needs_timer=True,
    conflict=_conflict,
)
