"""Asks the API's function as API Gateway does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

from handlers import api
from tests.unit.account.account import CONTEXT

ANNA = "arn:aws:sts::123456789012:assumed-role/Owners/anna"
BERT = "arn:aws:iam::123456789012:user/bert"
_requests = count()


def ask(
    method: str,
    path: str,
    body: Any = None,
    caller: str = ANNA,
    headers: Mapping[str, str] = MappingProxyType({}),
    **query: Any,
) -> tuple[int, Any]:
    """The status, and the decoded answer. ``body``: text is sent as it is, anything else as JSON."""
    answer = answered(method, path, body, caller, headers, **query)
    return answer["statusCode"], json.loads(answer["body"])


def answered(
    method: str,
    path: str,
    body: Any = None,
    caller: str = ANNA,
    headers: Mapping[str, str] = MappingProxyType({}),
    **query: Any,
) -> dict[str, Any]:
    """As :func:`ask`: all of the answer, as API Gateway is given it."""
    parameters = {key: str(value) for key, value in query.items()}
    answer: dict[str, Any] = api.handler(
        {
            "resource": path,
            "path": path,
            "httpMethod": method,
            "headers": {"Accept": "application/json", "Content-Type": "application/json; charset=utf-8", **headers},
            "multiValueHeaders": {},
            "queryStringParameters": parameters or None,
            "multiValueQueryStringParameters": {k: [v] for k, v in parameters.items()} or None,
            "requestContext": {"requestId": f"r{next(_requests)}", "stage": "v1", "identity": {"userArn": caller}},
            "body": body if body is None or isinstance(body, str) else json.dumps(body),
            "isBase64Encoded": False,
        },
        CONTEXT,
    )
    assert answer["multiValueHeaders"]["Content-Type"] == ["application/json"]
    return answer


def get(path: str, **query: Any) -> Any:
    """The answer of a GET that must succeed."""
    status, body = ask("GET", path, **query)
    assert status == 200, body
    return body


def patch(path: str, body: Any, caller: str = ANNA) -> Any:
    """The answer of a PATCH that must succeed."""
    status, answer = ask("PATCH", path, body, caller)
    assert status == 200, answer
    return answer
