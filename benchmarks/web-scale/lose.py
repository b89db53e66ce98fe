"""Ends this node's server at the begin of a planned fault, and starts it again at its end.

All its processes end at once, as if the machine had lost them. A server of the data tier returns without its data.
"""

from __future__ import annotations

import contextlib
import os
import signal

import serve
import server
from node import Phase


def main() -> None:
    if os.environ["TROOP_FAULT"] == "end":
        serve.main()
        return
    phase = Phase.of_script()
    process = server.started_process(phase)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # workers of nginx outlive their master
    print(f"{phase.role}: process {process.pid} was ended")


if __name__ == "__main__":
    main()
