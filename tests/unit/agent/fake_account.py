"""What a node sees of AWS, over HTTP on 127.0.0.1: buckets, presigned addresses, and the metadata service."""

from __future__ import annotations

import calendar
import json
import secrets
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote_plus, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.patience import PATIENCE
from tests.unit.work.model_account import ModelAccount

METADATA = {
    "placement/availability-zone": "us-west-2a",
    "instance-type": "c7g.large",
    "local-ipv4": "127.0.0.1",
    "ami-id": "ami-0123456789abcdef0",
}
ROLE, REGION = "troop-nodes", "us-west-2"


class FakeAccount:
    """Objects by ``bucket/key``. Requests that the CLI does not send must have a valid signature.

    Attributes:
        refuse: how many of the next requests for objects are answered 503.
        answers: what the next ranges are answered, each as (status, body), before anything is checked.
        page: the most keys of a page of a listing.
        forbidden: the object that nobody may write.
        undeletable: whether nobody may delete.
        busy: what the next deletions answer with status 200: an error in place of all, or for every second key.
        drop: whether connections are closed after each answer, without a word.
        credentials: the only valid ones, as the metadata service tells them.
        issued: how often it has told them.
        clock_ahead: seconds that the account's clock is ahead of this machine's.
        slowness: seconds before a range is answered.
        ranges: that were asked for.
        connections: that were made.
        spot: what the metadata service says of it, by path, when nodes are spot instances; else None.
        requests: their number by method and kind (``object``, ``list``, ``delete``, ``presigned``, ``presign``,
            ``metadata``).
        queue: a fleet's queue, by this machine's clock.
        poll_seconds: how long a request for a task waits.
        lose: methods, or operations of the queue, whose next answers do not arrive.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.signatures: set[str] = set()
        self.token = secrets.token_hex(8)
        self.refuse, self.clock_ahead, self.slowness = 0, 0.0, 0.0
        self.ranges: list[str] = []
        self.answers: list[tuple[int, bytes]] = []
        self.page, self.drop, self.issued = 1000, False, 0
        self.forbidden, self.undeletable = "", False
        self.busy: list[str] = []
        self.credentials = {"AccessKeyId": "ASIAFIRST", "SecretAccessKey": "secret", "Token": "token+/="}
        self.lasts = 6 * 3600.0
        self.spot: dict[str, str] | None = None
        self.connections = 0
        self.requests: Counter[tuple[str, str]] = Counter()
        self.changed = threading.Condition()
        self.queue, self.poll_seconds = ModelAccount(), 0.5
        self.lose: list[str] = []
        self.headers: dict[str, dict[str, str]] = {}
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

    def listed(self, bucket: str, query: dict[str, str]) -> bytes:
        """A page of ListObjectsV2, whose token is the number of the next object."""
        assert query["encoding-type"] == "url"
        begin = f"{bucket}/{query.get('prefix', '')}"
        below = sorted((key, body) for key, body in self.objects.items() if key.startswith(begin))
        first = int(query.get("continuation-token", 0))
        contents = "".join(
            f"<Contents><Key>{escape(quote_plus(key.removeprefix(bucket + '/'), safe='/'))}</Key>"
            f"<Size>{len(body)}</Size></Contents>"
            for key, body in below[first : first + self.page]
        )
        more = first + self.page < len(below)
        token = f"<NextContinuationToken>{first + self.page}</NextContinuationToken>" if more else ""
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{contents}</ListBucketResult>"
        ).encode()

    def role(self) -> str:
        """The credentials as the metadata service tells them."""
        self.issued += 1
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lasts))
        return json.dumps({"Code": "Success", "Type": "AWS-HMAC", **self.credentials, "Expiration": until})

    def refusal(self, method: str, path: str, headers: Any) -> str:
        """The code of the error with which S3 answers a signed request; empty if it is valid."""
        authorization = headers["Authorization"]
        parts = dict(part.strip().split("=", 1) for part in authorization.partition(" ")[2].split(","))
        access_key = parts["Credential"].split("/")[0]
        if access_key != self.credentials["AccessKeyId"]:
            return "ExpiredToken"
        signed = {name: headers[name] for name in parts["SignedHeaders"].split(";")}
        moment = time.strptime(signed["x-amz-date"], "%Y%m%dT%H%M%SZ")
        if abs(calendar.timegm(moment) - time.time() - self.clock_ahead) > 900:
            return "RequestTimeTooSkewed"
        request = AWSRequest(method, f"http://{headers['Host']}{path}", headers=signed)
        request.context["timestamp"] = signed["x-amz-date"]
        service = parts["Credential"].split("/")[3]
        signer = (S3SigV4Auth if service == "s3" else SigV4Auth)(self._keys(), service, REGION)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        return "" if parts["Signature"] == signer.signature(text, request) else "SignatureDoesNotMatch"

    def presigned_refusal(self, path: str, host: str) -> str:
        """The same for a presigned address with AWS's own signature."""
        signed, _, signature = path.partition("&X-Amz-Signature=")
        query = {name: values[0] for name, values in parse_qs(urlsplit(signed).query).items()}
        signed_at = calendar.timegm(time.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ"))
        if not 0 <= time.time() + self.clock_ahead - signed_at + 900 < int(query["X-Amz-Expires"]) + 900:
            return "AccessDenied"
        request = AWSRequest("GET", f"https://{host}{signed}", headers={"Host": host})
        request.context["timestamp"] = query["X-Amz-Date"]
        signer = S3SigV4QueryAuth(self._keys(), "s3", REGION)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        return "" if signature == signer.signature(text, request) else "SignatureDoesNotMatch"

    def _keys(self) -> Credentials:
        return Credentials(*(self.credentials[name] for name in ("AccessKeyId", "SecretAccessKey", "Token")))

    def send(self, **bodies: str) -> None:
        """Puts tasks on the queue: bodies by id."""
        with self.changed:
            for name, body in bodies.items():
                self.queue.send(name, body)

    def ask_queue(self, target: str, body: bytes) -> tuple[int, bytes]:
        """Answers a request for the queue; one for a task waits for a while."""
        until = time.time() + self.poll_seconds
        while True:
            with self.changed:
                self.queue.now = time.time()
                answer = self.queue.answer("POST", "/", {"x-amz-target": target}, body)
                is_over = not target.endswith("ReceiveMessage") or b"Messages" in answer.body or time.time() > until
                if not is_over:
                    self.queue.requests.pop()
                self.changed.notify_all()
            if is_over:
                return answer.status, answer.body
            time.sleep(0.05)

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
                if unquote(self.path.lstrip("/")) == account.forbidden:
                    self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
                    return
                if self.headers.get("If-None-Match") == "*" and unquote(self.path.lstrip("/")) in account.objects:
                    self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                    return
                self._keep_headers()
                account.put(unquote(self.path.lstrip("/")), body)
                self._answer(200, b"")

        def _keep_headers(self) -> None:
            names = [name for name in self.headers if name.lower().startswith("x-amz-meta-")]
            account.headers[unquote(self.path.lstrip("/"))] = {name: self.headers[name] for name in names}

        def do_HEAD(self) -> None:
            if self._allowed("HEAD", "object"):
                key = unquote(self.path.lstrip("/"))
                self._answer(200 if key in account.objects else 403, b"", account.headers.get(key))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if target := self.headers.get("X-Amz-Target"):
                if self._allowed("POST", target.rpartition(".")[2]):
                    self._answer(*account.ask_queue(target, body))
                return
            if self.path.endswith("/?delete="):
                self._delete(body)
                return
            account.requests["POST", "presign"] += 1
            signature = secrets.token_hex(8)
            account.signatures.add(signature)
            self._answer(
                200, f"{account.url}/{self.path.removeprefix('/presign/')}?X-Amz-Signature={signature}".encode()
            )

        def _get(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            signature = query.get("X-Amz-Signature", "")
            if "Range" in self.headers and account.answers:
                self._answer(*account.answers.pop(0))
                return
            kind = "presigned" if signature else "list" if "list-type" in query else "object"
            if not self._allowed("GET", kind, signature):
                return
            if kind == "list":
                self._answer(200, account.listed(parts.path.strip("/"), query))
                return
            body = account.objects.get(unquote(parts.path.lstrip("/")))
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
            authorization = self.headers.get("Authorization", "")
            if authorization.startswith("AWS4"):
                if code := account.refusal(self.command, self.path, self.headers):
                    self._answer(403, f"<Error><Code>{code}</Code></Error>".encode())
                return not code
            if signature in account.signatures or authorization:
                return True
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            return False

        def _delete(self, body: bytes) -> None:
            if self._allowed("POST", "delete"):
                bucket, errors, busy = self.path.split("/")[1], "", account.busy.pop(0) if account.busy else ""
                if busy == "all":
                    self._answer(200, b"<Error><Code>SlowDown</Code></Error>")
                    return
                keys = [node.text for node in ElementTree.fromstring(body).iter() if node.tag.endswith("}Key")]
                for number, key in enumerate(keys):
                    if account.undeletable or (busy and number % 2):
                        code = "AccessDenied" if account.undeletable else "SlowDown"
                        errors += f"<Error><Key>{key}</Key><Code>{code}</Code></Error>"
                    else:
                        account.objects.pop(f"{bucket}/{key}", None)
                self._answer(200, f"<DeleteResult>{errors}</DeleteResult>".encode())

        def _metadata(self, method: str) -> None:
            account.requests[method, "metadata"] += 1
            node, path = self.path.removeprefix("/metadata-of/").split("/latest/")
            if method == "PUT":
                self._answer(200, account.token.encode())
            elif self.headers.get("X-aws-ec2-metadata-token") != account.token:
                self._answer(401, b"")
            else:
                cycle = "on-demand" if account.spot is None else "spot"
                roles = "iam/security-credentials/"
                known = {
                    **METADATA,
                    "instance-id": node,
                    "instance-life-cycle": cycle,
                    **(account.spot or {}),
                    roles: ROLE,
                }
                if path == f"meta-data/{roles}{ROLE}":
                    known[roles + ROLE] = account.role()
                text = known.get(path.removeprefix("meta-data/"))
                self._answer(404 if text is None else 200, (text or "").encode())

        def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
            if (target or self.command) in account.lose:
                account.lose.remove(target or self.command)
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = self.close_connection or account.drop

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate((timestamp or time.time()) + account.clock_ahead, usegmt=True)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    return Handler
