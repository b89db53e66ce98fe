"""What a node sees of AWS, over HTTP on 127.0.0.1: a bucket, presigned addresses, and the metadata service."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.patience import PATIENCE

METADATA = {
    "placement/availability-zone": "us-west-2a",
    "instance-type": "c7g.large",
    "local-ipv4": "127.0.0.1",
    "ami-id": "ami-0123456789abcdef0",
}


class FakeAccount:
    """Objects by ``bucket/key``.

    Attributes:
        refuse: how many of the next requests for objects are answered 503.
        clock_ahead: seconds that the account's clock is ahead of this machine's.
        slowness: seconds before a range is answered.
        ranges: that were asked for.
        connections: that were made.
        spot: what the metadata service says of it, by path, when nodes are spot instances; else None.
        requests: their number by method and kind (``object``, ``presigned``, ``presign``, ``metadata``).
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.signatures: set[str] = set()
        self.token = secrets.token_hex(8)
        self.refuse, self.clock_ahead, self.slowness = 0, 0.0, 0.0
        self.ranges: list[str] = []
        self.spot: dict[str, str] | None = None
        self.connections = 0
        self.requests: Counter[tuple[str, str]] = Counter()
        self.changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def metadata_of(self, node: str) -> str:
        """The address of a node's metadata service."""
        return f"{self.url}/metadata-of/{node}"

    def put(self, key: str, content: Any) -> None:
        """``content``: bytes, or a document."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        with self.changed:
            self.objects[key] = body
            self.changed.notify_all()

    def document(self, key: str) -> Any:
        """An object's document, as soon as there is one."""
        with self.changed:
            there = self.changed.wait_for(lambda: key in self.objects, PATIENCE)
        assert there, f"{key} did not come; there are {sorted(self.objects)}"
        return json.loads(self.objects[key])

    def listed(self, prefix: str) -> bytes:
        """What the CLI says of a bucket's objects below a prefix; nothing at all when there is none."""
        bucket = prefix.split("/")[0]
        objects = [(key, body) for key, body in sorted(self.objects.items()) if key.startswith(prefix)]
        contents = [{"Key": key.removeprefix(bucket + "/"), "Size": len(body)} for key, body in objects]
        return json.dumps({"Contents": contents}).encode() if contents else b""

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(account: FakeAccount) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            account.connections += 1
            super().setup()

        def do_GET(self) -> None:
            self._metadata("GET") if "/metadata-of/" in self.path else self._get()

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "/metadata-of/" in self.path:
                self._metadata("PUT")
            elif self._allowed("PUT", "object"):
                account.put(self.path.lstrip("/"), body)
                self._answer(200, b"")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.startswith("/list/"):
                self._answer(200, account.listed(self.path.removeprefix("/list/")))
                return
            account.requests["POST", "presign"] += 1
            signature = secrets.token_hex(8)
            account.signatures.add(signature)
            self._answer(
                200, f"{account.url}/{self.path.removeprefix('/presign/')}?X-Amz-Signature={signature}".encode()
            )

        def _get(self) -> None:
            parts = urlsplit(self.path)
            signature = parse_qs(parts.query).get("X-Amz-Signature", [""])[0]
            if not self._allowed("GET", "presigned" if signature else "object", signature):
                return
            body = account.objects.get(parts.path.lstrip("/"))
            if body is None:
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            elif "Range" in self.headers:
                account.ranges.append(self.headers["Range"])
                time.sleep(account.slowness)
                first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
                self._answer(206, body[first : last + 1])
            else:
                self._answer(200, body)

        def _allowed(self, method: str, kind: str, signature: str = "") -> bool:
            account.requests[method, kind] += 1
            if account.refuse > 0:
                account.refuse -= 1
                self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
                return False
            if signature in account.signatures or self.headers.get("Authorization"):
                return True
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            return False

        def _metadata(self, method: str) -> None:
            account.requests[method, "metadata"] += 1
            node, path = self.path.removeprefix("/metadata-of/").split("/latest/")
            if method == "PUT":
                self._answer(200, account.token.encode())
            elif self.headers.get("X-aws-ec2-metadata-token") != account.token:
                self._answer(401, b"")
            else:
                cycle = "on-demand" if account.spot is None else "spot"
                known = {**METADATA, "instance-id": node, "instance-life-cycle": cycle, **(account.spot or {})}
                text = known.get(path.removeprefix("meta-data/"))
                self._answer(404 if text is None else 200, (text or "").encode())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate((timestamp or time.time()) + account.clock_ahead, usegmt=True)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    return Handler
