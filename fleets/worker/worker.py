"""Processes objects of a bucket, one for each task of the fleet's queue. Python 3.9, standard library.

A task's body names an object and an operation: ``{"bucket": "my-archive", "key": "a.log", "operation": "lines"}``. Any
other text is processed itself. The result is a document, stored once for each task.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from troop.measure.s3.addresses import address_of, endpoint_of, trust
from troop.measure.s3.credentials import CredentialStore
from troop.measure.s3.signing import Signer
from troop.work import tasks

BLOCK = 1 << 20
TIMEOUT_SECONDS = 60
HUNG_SECONDS = 600.0
"""How long a task may make no progress before the node's health fails."""


def sizes(blocks: Iterator[bytes]) -> dict[str, Any]:
    """Counts bytes."""
    return {"size": sum(map(len, blocks))}


def digests(blocks: Iterator[bytes]) -> dict[str, Any]:
    """Computes the SHA-256, and counts bytes."""
    digest, size = hashlib.sha256(), 0
    for block in blocks:
        digest.update(block)
        size += len(block)
    return {"size": size, "sha256": digest.hexdigest()}


def lines(blocks: Iterator[bytes]) -> dict[str, Any]:
    """Counts lines and bytes. A last line without an end counts."""
    size = ends = 0
    last = b"\n"
    for block in blocks:
        size, ends, last = size + len(block), ends + block.count(b"\n"), block[-1:] or last
    return {"size": size, "lines": ends + (last != b"\n")}


OPERATIONS: dict[str, Callable[[Iterator[bytes]], dict[str, Any]]] = {
    "size": sizes,
    "sha256": digests,
    "lines": lines,
}
"""What a task can ask for. Add yours here: a function of an object's blocks that returns a document."""


class Objects:
    """Reads objects of buckets in the node's region, with the role of the node."""

    def __init__(self, region: str) -> None:
        self._region, self._store = region, CredentialStore()
        self._signer = Signer(self._store.current, region)

    def blocks(self, bucket: str, key: str, most_bytes: int) -> Iterator[bytes]:
        """Yields an object in blocks.

        Raises:
            OSError: S3 refused it, or the connection was lost.
            ValueError: it is too large.
        """
        address = address_of(bucket, self._region, endpoint_of(os.environ))
        path = address.path(key)
        headers = self._signer.headers("GET", path, "", {"host": address.host})
        scheme, context = ("https", trust()) if address.is_tls else ("http", None)
        request = Request(f"{scheme}://{address.host}{path}", headers=headers)
        with urlopen(request, timeout=TIMEOUT_SECONDS, context=context) as answer:
            expected = int(answer.headers["Content-Length"])
            if expected > most_bytes:
                raise ValueError(f"{key} has {expected} bytes, more than most_bytes")
            size = 0
            while block := answer.read(BLOCK):
                size += len(block)
                yield block
            if size < expected:
                raise OSError(f"{key} broke off after {size} of {expected} bytes")


class Progress:
    """What the threads of this process do, for the health of the node."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._at: dict[str, float] = {}
        self._threads: list[threading.Thread] = []
        self.problem = ""

    def watch(self, threads: list[threading.Thread]) -> None:
        self._threads = threads

    def note(self, task: str) -> None:
        """Says that a task goes on."""
        with self._lock:
            self._at[task] = self._clock()

    def end(self, task: str) -> None:
        with self._lock:
            self._at.pop(task, None)

    def checks(self) -> list[dict[str, Any]]:
        """Returns the node's checks, by Troop's contract."""
        with self._lock:
            longest = max((self._clock() - at for at in self._at.values()), default=0.0)
        dead = sum(not thread.is_alive() for thread in self._threads)
        return [
            {
                "name": "queue",
                "status": "fail" if dead else "ok",
                "value": len(self._threads) - dead,
                "threshold": len(self._threads),
                "detail": self.problem or "threads that take tasks",
                "todo": "Read worker.log on the node." if dead else "",
            },
            {
                "name": "progress",
                "status": "fail" if longest > HUNG_SECONDS else "ok",
                "value": round(longest, 1),
                "threshold": HUNG_SECONDS,
                "detail": "seconds since the slowest task made progress",
            },
        ]


def process(body: str, objects: Objects, most_bytes: int, note: Callable[[], None]) -> dict[str, Any]:
    """Returns the result of a task.

    Raises:
        OSError: an object cannot be read now.
        ValueError: the task is wrong, or its object is too large.
    """
    try:
        request = json.loads(body)
    except ValueError:
        request = None
    if not isinstance(request, dict) or "key" not in request:
        return {**digests(iter([body.encode()])), **lines(iter([body.encode()]))}
    operation = OPERATIONS.get(request.get("operation", "sha256"))
    if operation is None or "bucket" not in request:
        raise ValueError(f"a task needs a bucket, a key and an operation of {', '.join(OPERATIONS)}")

    def noted() -> Iterator[bytes]:
        for block in objects.blocks(str(request["bucket"]), str(request["key"]), most_bytes):
            note()
            yield block

    return {"bucket": request["bucket"], "key": request["key"], **operation(noted())}


def work(objects: Objects, progress: Progress, most_bytes: int) -> None:
    """Works on tasks until the node ends. A task that raises comes back, and becomes a dead letter after `tries`
    leases.
    """
    try:
        for task in tasks():
            with task:
                progress.note(task.id)
                try:
                    result = process(task.body, objects, most_bytes, partial(progress.note, task.id))
                    task.deliver(json.dumps(result))
                finally:
                    progress.end(task.id)
    except Exception as error:
        progress.problem = f"a thread has ended: {error!r}"
        raise


def serve(address: str, port: int, progress: Progress) -> None:
    """Answers for the health of this node, in threads."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            checks = progress.checks()
            body = json.dumps({"checks": checks}).encode()
            self.send_response(503 if any(check["status"] == "fail" for check in checks) else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: the agent asks all the time."""

    threading.Thread(target=ThreadingHTTPServer((address, port), Health).serve_forever, daemon=True).start()


def main() -> None:
    parameters = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    objects, progress = Objects(os.environ["AWS_DEFAULT_REGION"]), Progress()
    tasks()  # gives this thread the handler of SIGTERM, which hands back the tasks of all threads
    arguments = (objects, progress, int(parameters["most_bytes"]))
    threads = [threading.Thread(target=work, args=arguments, daemon=True) for _ in range(int(parameters["threads"]))]
    for thread in threads:
        thread.start()
    progress.watch(threads)
    serve(os.environ["TROOP_ADDRESS"], int(parameters["port"]), progress)
    for thread in threads:
        while thread.is_alive():
            thread.join(1)


if __name__ == "__main__":
    main()
