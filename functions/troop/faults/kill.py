"""Defines ``kill``: a signal ends all processes of one name. The fault is over when one runs again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from troop.faults.lasting_fault import LastingFault, Parameter, Values, one_of, seconds

PROCESS_NAME = "[A-Za-z0-9._-]{1,15}"
"""A process's name, as a regular expression. The kernel keeps 15 characters of it (proc_pid_comm(5))."""


_NAMES = Values(
    "a process's name of at most 15 letters, digits, dots, hyphens and underscores",
    lambda text: re.fullmatch(PROCESS_NAME, text) is not None,
)


def _request(parameters: Mapping[str, str]) -> dict[str, str]:
    return {"ProcessName": parameters["process"], "Signal": parameters["signal"]}


def _refusal(parameters: Mapping[str, str], reading: Mapping[str, Any]) -> str:
    if reading.get("running"):
        return ""
    return (
        f"no process {parameters['process']} runs: take its name from /proc/PID/comm, which has at most 15 characters"
    )


KILL = LastingFault(
    name="kill",
    summary="all processes of one name are killed",
    document="AWSFIS-Run-Kill-Process",
    parameters=(
        Parameter("process", "the name of the processes, as in `/proc/PID/comm`", _NAMES),
        Parameter("signal", "how they are killed", one_of("SIGKILL", "SIGTERM"), "SIGKILL"),
        seconds(60, "how long the process may be gone, in seconds"),
    ),
    request=_request,
    traces=(),
    tools={"killall": "psmisc"},
    returns=True,
    refusal=_refusal,
)
