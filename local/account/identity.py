"""Identifies the caller of a request: verifies the signature with the credentials that MiniStack has issued."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass, field
from typing import Any

from ministack.core import iam_evaluator, sigv4
from ministack.core.responses import set_request_account_id, set_request_region

from .config import ACCOUNT_ID


@dataclass(frozen=True)
class Caller:
    """A caller. `policies` is None for the account's root, which may do everything."""

    arn: str
    kind: str
    service: str
    region: str
    policies: list[Any] | None
    limits: list[Any] = field(default_factory=list)
    keys: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    code: str
    message: str


def identify(environ: dict[str, Any], body: bytes) -> Caller | Refusal:
    """Returns the caller of a WSGI request with a signature in its headers (Signature Version 4)."""
    headers = {key[5:].replace("_", "-").lower(): value for key, value in environ.items() if key.startswith("HTTP_")}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers[name.replace("_", "-").lower()] = environ[name]
    if not headers.get("authorization"):
        return Refusal("MissingAuthenticationToken", "Request is missing Authentication Token")
    signature = sigv4.parse_header_signature(headers)
    if isinstance(signature, tuple):
        return Refusal(*signature)
    if skewed := sigv4.request_time_failure(signature):
        return Refusal(*skewed)
    set_request_account_id(ACCOUNT_ID)
    set_request_region(signature.region)
    credential = iam_evaluator.resolve_credential(
        signature.access_key_id, ACCOUNT_ID, headers.get("x-amz-security-token", "")
    )
    if isinstance(credential, iam_evaluator.CredentialResolutionError):
        return Refusal("AuthFailure", "AWS was not able to validate the provided access credentials")
    mismatch = sigv4.header_signature_failure(
        signature,
        credential.secret_access_key,
        environ["REQUEST_METHOD"],
        str(environ.get("RAW_URI") or environ["PATH_INFO"]).partition("?")[0],
        urllib.parse.parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True),
        headers,
        body,
    )
    if mismatch:
        return Refusal(*mismatch)
    principal = iam_evaluator.resolve_principal(signature.access_key_id, ACCOUNT_ID, credential)
    if isinstance(principal, iam_evaluator.AuthError):
        return Refusal(principal.code, principal.message)
    return Caller(
        principal.arn,
        principal.type,
        signature.service,
        signature.region,
        principal.policies,
        principal.limits,
        principal.keys,
    )
