"""Rejects requests before they reach either server.

`Host` must be the server's address, so that no web page can use another name for it (DNS rebinding). MiniStack's port
requires signatures, and verifies them before routing, because MiniStack has internal routes without signatures, for
instance to reset the account or to read its queues.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

from hypercorn.protocol.events import StreamClosed
from ministack import app as ministack
from ministack.core import iam_actions, iam_evaluator
from ministack.core.iam_evaluator import AuthError
from ministack.core.router import extract_access_key_id
from ministack.core.sigv4 import decode_header_value
from ministack.services import s3, sts

from . import request_models
from .authorization import Environ, StartResponse, WsgiApp
from .config import ACCOUNT_ID
from .endpoints import SERVICE, Endpoints
from .patches.node_credentials import SOURCE_VPC

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Message, Receive, Send], Awaitable[None]]
Answer = tuple[int, dict[str, str], bytes]

_FOREIGN = "the header Host must be the address of this server"
_CLOSED = "this endpoint is closed here"


class HostCheck:
    """WSGI middleware that rejects requests for other hosts."""

    def __init__(self, app: WsgiApp) -> None:
        self._app = app

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("HTTP_HOST") == f"127.0.0.1:{environ['SERVER_PORT']}":
            return self._app(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain"), ("Content-Length", str(len(_FOREIGN)))])
        return [_FOREIGN.encode()]


class Door:
    """ASGI middleware in front of MiniStack.

    No signature is necessary for the health check, for responses of custom resources, whose address is secret, and for
    methods of API Gateway, which authorize callers themselves. The connection of a request that would reach no server
    on AWS is closed.
    """

    def __init__(self, app: AsgiApp, endpoints: Endpoints) -> None:
        self._app, self._endpoints = app, endpoints

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await self._app(scope, receive, send)
            case "http":
                await self._http(scope, receive, send)
            case "websocket":  # not used here
                await receive()
                await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
        if hosts != [f"127.0.0.1:{scope['server'][1]}".encode()]:
            await _send(send, (403, {"Content-Type": "text/plain"}, _FOREIGN.encode()))
        elif _is_open(method, path):
            await self._app(scope, receive, send)
        elif path.startswith("/_"):  # internal to MiniStack; no bucket name starts like this
            await _send(send, (404, {"Content-Type": "text/plain"}, _CLOSED.encode()))
        elif (body := await _body(receive)) is not None:
            if refused := _refusal(scope, body):
                await _send(send, refused)
            elif not await self._arrives(scope, body):
                await _hang_up(send)
            else:
                await self._app(scope, _replay(body, receive), send)

    async def _arrives(self, scope: Message, body: bytes) -> bool:
        """Checks whether a request has a way to its service, from where it comes."""
        headers = {name.decode("latin-1").lower(): decode_header_value(value) for name, value in scope["headers"]}
        query = parse_qs(scope["query_string"].decode(), keep_blank_values=True)
        session = sts._sessions.get(extract_access_key_id(headers, query))
        if not session or SOURCE_VPC not in session:
            return True  # it does not come from an instance
        method, path = scope["method"], scope["path"]
        parameters = ministack._routing_params(method, path, headers, body, query)
        if ministack.detect_service(method, path, headers, parameters) != SERVICE:
            return True
        action = iam_actions.extract_iam_action(SERVICE, method, path, headers, body, parameters)
        return await self._endpoints.admit(session["Arn"], session["Arn"].rsplit("/", 1)[-1], str(action))


async def _hang_up(send: Any) -> None:
    """Closes the connection without an answer, as a server does that cannot be reached."""
    stream = send.__self__  # of hypercorn, which answers 500 for an application that does not answer
    stream.closed = True
    await stream.send(StreamClosed(stream_id=stream.stream_id))


def _is_open(method: str, path: str) -> bool:
    if path.startswith("/_ministack/cfn-response/"):
        return method == "PUT"
    return (method, path) == ("GET", "/_ministack/health") or ministack._parse_execute_api_url("", path) is not None


def _refusal(scope: Message, body: bytes) -> Answer | None:
    """Returns the refusal of a request without a valid signature, or with values that AWS refuses; otherwise None."""
    method, path = scope["method"], scope["path"]
    query = parse_qs(scope["query_string"].decode(), keep_blank_values=True)
    headers = {name.decode("latin-1").lower(): decode_header_value(value) for name, value in scope["headers"]}
    iam_evaluator.pin_signed_request(method, scope["raw_path"].decode("latin-1"), query, scope["headers"])
    iam_evaluator.pin_signed_body(body)
    request = iam_evaluator._signed_request.get()
    if request is None:
        failure = AuthError("MissingAuthenticationToken", "Request is missing Authentication Token")
    elif request.s3_scoped:  # S3 verifies presigned requests
        answer: Answer | None = s3._verify_presigned_sigv4(method, path, headers, query)
        return answer
    else:
        checked = iam_evaluator.authenticate(request.access_key_id, ACCOUNT_ID)
        if isinstance(checked, iam_evaluator.ResolvedCredential):
            url = f"https://{headers['host']}{scope['raw_path'].decode('latin-1')}?{scope['query_string'].decode()}"
            wrong = request_models.refusal(method, url, headers, body)
            if wrong is None:
                return None
            failure = AuthError(wrong.code, wrong.message)
        else:
            failure = checked or AuthError("IncompleteSignature", "Request is not signed")
    service = ministack.detect_service(
        method, path, headers, ministack._routing_params(method, path, headers, body, query)
    )
    refused: Answer = ministack._credential_failure(service, "", str(uuid.uuid4()), failure, headers)
    return refused


async def _body(receive: Receive) -> bytes | None:
    """Returns the complete body of a request; None if the client has disconnected."""
    parts = []
    while (message := await receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)
    return None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Replays a body that was already read, then forwards further messages."""
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed


async def _send(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    fields = {**{name.lower(): value for name, value in headers.items()}, "content-length": str(len(body))}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), str(value).encode()) for name, value in fields.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})
