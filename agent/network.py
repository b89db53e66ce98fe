"""Cuts or slows the network of this node by ``tc``, and restores it.

Both concern the packets that the node sends, also its answers. Those that reach it are not held up.
"""

from __future__ import annotations

import functools
import ipaddress
import subprocess

from agent import metadata
from agent.errors import AgentError, FaultError
from agent.log import say
from troop.disks.errors import DiskError
from troop.disks.machine import Machine

_TOOLS = {"tc": "iproute-tc"}
_MODULE = "sch_netem"
_QUEUE = "1000000"
"""Packets that can wait at a time. By default a thousand can, and further ones would be lost instead of late."""
_SECONDS = 10.0


def prepare(address: str) -> None:
    """Installs what :func:`cut` and :func:`slow` need, and tries it.

    Raises:
        AgentError: this node cannot have such a fault; names the packages.
    """
    try:
        _interface(address)
        if metadata.is_real():
            Machine().install(_TOOLS)
            Machine().load([_MODULE], ())
        else:  # another machine than EC2's: nothing is installed
            Machine().succeeds(["modprobe", _MODULE])
        slow(address, 0)
        restore(address)
    except (DiskError, FaultError) as error:
        raise AgentError(
            f"this node cannot have a fault of its network, which needs the packages iproute-tc and "
            f"kernel-modules-extra: {error}"
        ) from None
    say("the network can be cut and slowed")


def cut(address: str) -> None:
    """Discards all packets that the node sends. Raises FaultError."""
    _begin(address, "loss", "100%")


def slow(address: str, delay_ms: int) -> None:
    """Delays each packet that the node sends. Raises FaultError."""
    _begin(address, "delay", f"{delay_ms}ms")


def restore(address: str) -> None:
    """Ends both; does nothing if there is nothing to end. Raises FaultError."""
    interface = _interface(address)
    if "netem" in _run("tc", "qdisc", "show", "dev", interface, "root"):
        _run("tc", "qdisc", "del", "dev", interface, "root")


def _begin(address: str, *words: str) -> None:
    _run("tc", "qdisc", "add", "dev", _interface(address), "root", "netem", "limit", _QUEUE, *words)


@functools.lru_cache
def _interface(address: str) -> str:
    """Returns the interface with the node's address. Asks once, because a program takes time at the fault's moment."""
    if ipaddress.ip_address(address).is_loopback:
        raise FaultError(f"the address {address} is one of the machine that this node shares with others")
    for line in _run("ip", "-oneline", "-4", "address", "show").splitlines():
        words = line.split()  # 2: ens5    inet 10.0.0.5/20 brd 10.0.15.255 scope global ens5
        if words[3].partition("/")[0] == address:
            return words[1]
    raise FaultError(f"no interface of this node has the address {address}")


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FaultError(f"cannot run {command[0]}: {error}") from None
    if done.returncode:
        raise FaultError(f"{' '.join(command)}: {' '.join(done.stderr.split()) or f'exit code {done.returncode}'}")
    return done.stdout
