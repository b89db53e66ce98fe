"""Passes connections of nodes on: from the doors in their namespaces to the same addresses of the machine.

The runner sends each door's socket, which belongs to a node's namespace. This process itself stays in the machine's own
network. It ends with the runner.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import sys
from functools import partial
from typing import Any

from .network import DOORS_AT_ONCE

_MESSAGE = 1 << 16
_CHUNK = 1 << 16
_ANSWER_SECONDS = 5.0
"""The time for which a question over UDP, such as one for a name, may wait for its answer."""


class Gateway:
    """The open doors of all nodes."""

    def __init__(self) -> None:
        self._doors: dict[str, list[Any]] = {}

    async def open(self, node: str, doors: list[tuple[str, str, int]], sockets: list[int]) -> None:
        opened = self._doors.setdefault(node, [])
        for (protocol, host, port), number in zip(doors, sockets, strict=True):
            listening = socket.socket(fileno=number)
            listening.setblocking(False)
            if protocol == "tcp":
                opened.append(await asyncio.start_server(self._passing(host, port), sock=listening))
            else:
                loop = asyncio.get_running_loop()
                transport, _ = await loop.create_datagram_endpoint(partial(_Questions, (host, port)), sock=listening)
                opened.append(transport)

    def close(self, node: str) -> None:
        for one in self._doors.pop(node, []):
            one.close()

    def _passing(self, host: str, port: int) -> Any:
        async def passing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                there, back = await asyncio.open_connection(host, port)
            except OSError:
                writer.transport.abort()  # as a refused connection, which the kernel has already accepted
                return
            await asyncio.gather(_pass(reader, back), _pass(there, writer))
            for one in (back, writer):
                one.close()

        return passing


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes bytes on until the end, and then the end."""
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


class _Questions(asyncio.DatagramProtocol):
    """A door for questions: each is asked again from a socket of its own, and the answer goes back."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        task = asyncio.ensure_future(self._ask(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, data: bytes, addr: Any) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.setblocking(False)
            with contextlib.suppress(OSError, TimeoutError):
                await loop.sock_connect(asking, self._to)
                await loop.sock_sendall(asking, data)
                answer = await asyncio.wait_for(loop.sock_recv(asking, _CHUNK), _ANSWER_SECONDS)
                self._transport.sendto(answer, addr)


async def main(control: socket.socket) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # it has a socket for each door, and two for a connection
    gateway, loop = Gateway(), asyncio.get_running_loop()
    control.setblocking(False)
    while True:
        readable = asyncio.Event()
        loop.add_reader(control, readable.set)
        await readable.wait()
        loop.remove_reader(control)
        data, sockets, _, _ = socket.recv_fds(control, _MESSAGE, DOORS_AT_ONCE)
        if not data:
            os._exit(0)  # otherwise asyncio reports each open connection
        message = json.loads(data)
        if message["op"] == "open":
            await gateway.open(message["node"], message["doors"], sockets)
        else:
            gateway.close(message["node"])


if __name__ == "__main__":
    asyncio.run(main(socket.socket(fileno=int(sys.argv[1]))))
