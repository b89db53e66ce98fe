"""EC2 around a node of a fake account: the metadata service at its real address, and S3 over TLS at its real names.

S3 accepts only what AWS would: requests with a valid signature that the policy of the nodes' role allows. It needs a
network of its own, see ``clean_root.py``.
"""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import re
import ssl
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from infra.bench_permissions import ARTIFACT_OBJECTS, DATA_OBJECTS, RUN_OBJECTS
from infra.node_permissions import WRITTEN_BY_NODES
from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.tls import certificate

METADATA_ADDRESS = "169.254.169.254"
UNSIGNED = "UNSIGNED-PAYLOAD"


class SimulatedEc2:
    """The services around one node.

    Attributes:
        host: of the bucket.
        trust: a file with the certificate that the node must trust.
        refused: requests that S3 refused, with the reason.
        programs: how many requests S3 got from the AWS CLI, and from the node's own code.
    """

    def __init__(self, account: FakeAccount, folder: Path, bucket: str, node: str, user: str) -> None:
        self.account, self.bucket, self.node, self.user = account, bucket, node, user
        self.host = f"{bucket}.s3.{REGION}.amazonaws.com"
        self.trust = certificate(folder, self.host)
        self.refused: list[str] = []
        self.programs: Counter[str] = Counter()
        self._servers = [ThreadingHTTPServer((METADATA_ADDRESS, 80), _metadata(self))]
        self._servers.append(ThreadingHTTPServer(("127.0.0.1", 443), _s3(self)))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.trust)
        self._servers[1].socket = context.wrap_socket(self._servers[1].socket, server_side=True)
        for server in self._servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def may(self, method: str, key: str) -> bool:
        """Whether the node's policy allows it, in a deployment with ``own_data``."""
        readable, own = (RUN_OBJECTS, ARTIFACT_OBJECTS), (DATA_OBJECTS,)
        written = tuple(pattern.replace("${aws:userid}", self.user) for pattern in WRITTEN_BY_NODES)
        patterns = {"GET": (*readable, *own), "PUT": (*written, *own), "DELETE": own}[method]
        return any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> http.client.HTTPResponse:
        """Passes a request on to the account."""
        connection = http.client.HTTPConnection(urlsplit(self.account.url).netloc, timeout=60)
        connection.request(method, path, body, headers)
        return connection.getresponse()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def _metadata(ec2: SimulatedEc2) -> type[_Handler]:
    class Metadata(_Handler):
        def _pass_on(self) -> None:
            path = f"/metadata-of/{ec2.node}{self.path}"
            response = ec2.ask(self.command, path, dict(self.headers), b"")
            self.answer(response.status, response.read())

        do_GET = do_PUT = _pass_on

    return Metadata


def _s3(ec2: SimulatedEc2) -> type[_Handler]:
    class S3(_Handler):
        def _judge(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            ec2.programs["CLI" if "aws-cli/2" in self.headers.get("User-Agent", "") else "own"] += 1
            if problem := self._problem(body):
                ec2.refused.append(f"{self.command} {unquote(self.path)[:200]}: {problem}")
                self.answer(403, f"<Error><Code>{problem}</Code><Message>refused</Message></Error>".encode())
                return
            method, path = self.command.replace("HEAD", "GET"), self.path.partition("?")[0]
            headers = {"Authorization": "checked"} | ({"Range": its} if (its := self.headers.get("Range")) else {})
            query = "?delete=" if self.command == "POST" else ""
            response = ec2.ask(method, f"/{ec2.bucket}{path}{query}", headers, body)
            content = response.read()
            known = {"ETag": f'"{hashlib.md5(content).hexdigest()}"', "Last-Modified": self.date_time_string()}
            self.answer(response.status, content, known)

        do_GET = do_HEAD = do_PUT = do_POST = _judge

        def _problem(self, body: bytes) -> str:
            if self.headers["Host"] != ec2.host:
                return f"NoSuchBucket {self.headers['Host']}"
            if "&X-Amz-Signature=" in self.path:
                refusal = ec2.account.presigned_refusal(self.path, self.headers["Host"])
            elif self.headers.get("Authorization", "").startswith("AWS4"):
                refusal = ec2.account.refusal(self.command, self.path, self.headers)
                if self.headers["x-amz-content-sha256"] not in (hashlib.sha256(body).hexdigest(), UNSIGNED):
                    refusal = refusal or "XAmzContentSHA256Mismatch"
            else:
                refusal = "AccessDenied"
            return refusal or ("" if self._is_allowed(body) else "AccessDenied")

        def _is_allowed(self, body: bytes) -> bool:
            path, _, query = self.path.partition("?")
            if self.command == "POST":
                keys = re.findall("<Key>(.*?)</Key>", body.decode())
                return query.startswith("delete") and all(ec2.may("DELETE", key) for key in keys)
            return "list-type" not in query and ec2.may(self.command.replace("HEAD", "GET"), unquote(path[1:]))

    return S3
