"""Gives nodes network namespaces: they reach the members of their security group and a few doors, nothing else.

A node has a namespace of its own, with its address on a bridge that only the members of its security group share. The
bridge is in a namespace, too, so the machine's own network stays as it is. A door is an address and port inside the
namespace of a node, at which the gateway listens and passes connections on to the same address of the machine. There is
no route to anything else.

Namespaces have no names: they end with the processes and sockets in them, also if those are killed. It uses only the
standard library, and must run in a process with one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Door = tuple[str, str, int]
"""The protocol, "tcp" or "udp"; the address; the port."""

DOORS_AT_ONCE = 200
"""Sockets in one message, which holds at most 253."""
TAPS = "members", "doors"
"""The interfaces of a kernel as a process: to the members of its security group, and to its doors."""
HOST_SIDE, GUEST_SIDE = "169.254.7.1/30", "169.254.7.2/30"
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_OWN = "/proc/self/ns/net"
_BRIDGE = "bridge"
_LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


class NetworkError(Exception):
    """The machine refuses a part of a network."""


@dataclass
class Networks:
    """The networks of all nodes.

    Attributes:
        _bridges: the namespace of each security group's bridge.
        _nodes: the namespace of each node, and its security group.
    """

    _bridges: dict[str, int] = field(default_factory=dict)
    _nodes: dict[str, tuple[int, str]] = field(default_factory=dict)
    _gateway: socket.socket | None = None
    _numbers: int = 0

    def add(self, node: str, address: str, group: str, doors: Sequence[Door], kernel: bool = False) -> int:
        """Creates the network of a node, and returns its namespace, for :func:`enter`.

        Args:
            group: the security group whose members it reaches; empty for none.
            doors: each once.
            kernel: whether the node is a kernel of its own, which has the address, and reaches all by ``TAPS``.

        Raises:
            NetworkError: the machine refuses it.
        """
        self.remove(node)
        namespace = _create()
        self._nodes[node] = namespace, group
        if kernel:
            self._connect_kernel(namespace)
        if group:
            self._connect(namespace, "" if kernel else address, self._bridge(group))
        with _inside(namespace):
            elsewhere = sorted({host for _, host, _ in doors if ipaddress.ip_address(host) not in _LOOPBACK})
            _ip(*(f"address add {host}/32 dev lo" for host in elsewhere))
        for first in range(0, len(doors), DOORS_AT_ONCE):
            self._open(node, namespace, doors[first : first + DOORS_AT_ONCE])
        return namespace

    def remove(self, node: str) -> None:
        """Closes the doors of a node. Its namespace ends with its processes."""
        namespace, group = self._nodes.pop(node, (-1, ""))
        if namespace < 0:
            return
        os.close(namespace)
        self._tell({"op": "close", "node": node}, [])
        if group and group not in {other for _, other in self._nodes.values()}:
            os.close(self._bridges.pop(group))

    def _open(self, node: str, namespace: int, doors: Sequence[Door]) -> None:
        with contextlib.ExitStack() as listening:
            with _inside(namespace):
                sockets = [listening.enter_context(_listen(*door)).fileno() for door in doors]
            self._tell({"op": "open", "node": node, "doors": list(doors)}, sockets)

    def _bridge(self, group: str) -> int:
        if group not in self._bridges:
            self._bridges[group] = _create()
            with _inside(self._bridges[group]):
                _ip(f"link add {_BRIDGE} type bridge", f"link set {_BRIDGE} up")
        return self._bridges[group]

    def _connect(self, namespace: int, address: str, bridge: int) -> None:
        self._numbers += 1
        port = f"node{self._numbers}"
        with _inside(namespace):
            _ip(
                f"link add eth0 type veth peer name {port} netns /proc/{os.getpid()}/fd/{bridge}",
                f"address add {address}/8 dev eth0" if address else f"link set eth0 master {_BRIDGE}",
                "link set eth0 up",
            )
        with _inside(bridge):
            _ip(f"link set {port} master {_BRIDGE}", f"link set {port} up")

    def _connect_kernel(self, namespace: int) -> None:
        members, doors = TAPS
        with _inside(namespace):
            _ip(
                f"link add {_BRIDGE} type bridge",
                f"link set {_BRIDGE} up",
                *(f"tuntap add {tap} mode tap" for tap in TAPS),
                f"link set {members} master {_BRIDGE}",
                f"address add {HOST_SIDE} dev {doors}",
                *(f"link set {tap} up" for tap in TAPS),
            )
            for interface in ("all", doors):  # doors at addresses of 127.0.0.0/8 are asked from elsewhere
                for key, value in (("route_localnet", "1"), ("rp_filter", "0")):
                    Path(f"/proc/sys/net/ipv4/conf/{interface}/{key}").write_text(value, encoding="ascii")

    def _tell(self, message: dict[str, object], sockets: Sequence[int]) -> None:
        if self._gateway is None:
            self._gateway, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with other:
                subprocess.Popen(
                    [sys.executable, "-m", "local.account.gateway", str(other.fileno())],
                    pass_fds=[other.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
        socket.send_fds(self._gateway, [json.dumps(message).encode()], sockets)


def enter(namespace: int) -> None:
    """Moves this process into a namespace, as far as its sockets and those of its children are concerned."""
    if _LIBC.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def problem() -> str | None:
    """Returns why this machine cannot give nodes networks; None if it can."""
    if shutil.which("ip") is None:
        return "the command ip is missing: install iproute2"
    networks = Networks()
    try:
        namespace = _create()
        networks._connect(namespace, "10.0.0.1", networks._bridge("trial"))
    except (NetworkError, OSError) as error:
        return f"network namespaces are not available ({error})"
    return None


def _create() -> int:
    """Returns a new namespace, in which only the loopback interface exists and is up."""
    own = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _LIBC.unshare(_CLONE_NEWNET):
            raise NetworkError(os.strerror(ctypes.get_errno()))
        try:
            _ip("link set lo up")
            return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            enter(own)
    finally:
        os.close(own)


@contextlib.contextmanager
def _inside(namespace: int) -> Iterator[None]:
    own = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    enter(namespace)
    try:
        yield
    finally:
        enter(own)
        os.close(own)


def _ip(*lines: str) -> None:
    """Runs commands of iproute2 in the current namespace."""
    if not lines:
        return
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkError(done.stderr.strip().replace("\n", "; "))


def _listen(protocol: str, host: str, port: int) -> socket.socket:
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    listening = socket.socket(socket.AF_INET, kind)
    try:
        listening.bind((host, port))
        if protocol == "tcp":
            listening.listen(512)
    except OSError as error:
        listening.close()
        raise NetworkError(f"no door at {host}:{port}: {error}") from None
    return listening
