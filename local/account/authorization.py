"""Authorizes requests to moto: the signature must be correct, and the caller's policies must allow the call.

moto checks neither. Every decision is recorded in `decisions.log`.
"""

from __future__ import annotations

import io
import threading
import traceback
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any
from xml.sax.saxutils import escape

from ministack.core.iam_evaluator import EvalContext, evaluate

from . import request_models
from .config import ACCOUNT_ID
from .decisions import log
from .identity import Caller, Refusal, identify
from .launches import launch_subjects
from .subjects import SERVICES, subjects

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
WsgiApp = Callable[[Environ, StartResponse], Iterable[bytes]]


class Gate:
    """WSGI middleware. The lock serialises moto, whose models are not thread-safe."""

    def __init__(self, app: WsgiApp, lock: threading.RLock) -> None:
        self._app = app
        self._lock = lock

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        form = dict(urllib.parse.parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        with self._lock:
            caller = identify(environ, body)
            if isinstance(caller, Refusal):
                return _refuse(start_response, "ec2" if form.get("Version") == "2016-11-15" else "", caller)
            if environ["PATH_INFO"] != "/":  # moto has internal endpoints, for instance to reset it
                return _refuse(start_response, caller.service, Refusal("InvalidAction", "the path must be /"))
            if caller.service not in SERVICES:
                message = f"{caller.service} is not served at this address; use AWS_ENDPOINT_URL"
                return _refuse(start_response, caller.service, Refusal("InvalidAction", message))
            denied = authorize(caller, form) or _unfit(environ, body)
            if denied:
                return _refuse(start_response, caller.service, denied)
            return _answer(self._app, environ, start_response, caller.service)


def _unfit(environ: Environ, body: bytes) -> Refusal | None:
    """Returns the refusal of a request whose values do not fit the model of the API."""
    headers = {"authorization": environ["HTTP_AUTHORIZATION"], "content-type": environ.get("CONTENT_TYPE", "")}
    return request_models.refusal(environ["REQUEST_METHOD"], f"http://{environ['HTTP_HOST']}/", headers, body)


def _answer(app: WsgiApp, environ: Environ, start_response: StartResponse, service: str) -> Iterable[bytes]:
    """Returns moto's response; if moto failed, an error document that SDKs can read."""
    status: list[Any] = []
    try:
        body = list(app(environ, lambda *arguments: status.extend(arguments)))
    except Exception:  # noqa: BLE001 - as a server does
        traceback.print_exc()
        status, body = ["500"], [b""]
    if status[0].startswith("500") and not body[0].lstrip().startswith(b"<?xml"):
        message = "moto failed or does not know this call; its traceback is in the account's log"
        return _refuse(start_response, service, Refusal("InternalFailure", message), "500 Internal Server Error")
    start_response(*status)
    return body


def authorize(caller: Caller, form: dict[str, str]) -> Refusal | None:
    """Returns None if the caller may use every resource of the call, else the refusal of AWS."""
    name = form.get("Action", "")
    needed = subjects(caller.service, name, form)
    if caller.service == "autoscaling":
        needed = needed + launch_subjects(name, form)
    for subject in needed:
        action = subject.action or f"{caller.service}:{name}"
        if caller.policies is None:
            decision = "Allow"
        else:
            context = EvalContext(
                caller.arn,
                caller.kind,
                ACCOUNT_ID,
                action,
                subject.arn,
                caller.region,
                service_context=subject.keys,
                principal_keys=caller.keys,
            )
            decision = evaluate(context, caller.policies, *caller.limits).decision
        log.record(caller.arn, action, subject.arn, decision, "gate")
        if decision != "Allow":
            reason = (
                "with an explicit deny in an identity-based policy"
                if decision == "Deny"
                else f"because no identity-based policy allows the {action} action"
            )
            return Refusal(
                "UnauthorizedOperation" if caller.service == "ec2" else "AccessDenied",
                f"User: {caller.arn} is not authorized to perform: {action} on resource: {subject.arn} {reason}",
            )
    return None


def _refuse(
    start_response: StartResponse, service: str, refusal: Refusal, status: str = "403 Forbidden"
) -> list[bytes]:
    code, message = escape(refusal.code), escape(refusal.message)
    if service == "ec2":
        document = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
            "<RequestID>gate</RequestID></Response>"
        )
    else:
        document = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
            "<RequestId>gate</RequestId></ErrorResponse>"
        )
    body = document.encode()
    start_response(status, [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
    return [body]
