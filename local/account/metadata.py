"""Serves the instance metadata service of every instance: version 2, and version 1 if an instance allows it.

SDKs find it through their variable AWS_EC2_METADATA_SERVICE_ENDPOINT. The endpoint is `/imds/<secret>` on the port of
EC2. On EC2, only the instance can reach it. Here every user of the machine can, so its address has a secret, which only
the environment of the instance's processes contains. The credentials are those of the instance profile's role, as from
MiniStack's STS. So the policies of that role decide about all calls of a node.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import iam, sts

from .authorization import Environ, StartResponse, WsgiApp
from .config import ACCOUNT_ID, REGION
from .interruptions import Interruptions
from .patches.node_credentials import SOURCE_VPC

PREFIX = "/imds/"
_SESSION_SECONDS = 6 * 3600
_RENEW_SECONDS = 600
_STATUS = {200: "200 OK", 400: "400 Bad Request", 401: "401 Unauthorized", 404: "404 Not Found"}


class Metadata:
    """WSGI middleware. `ec2`: moto's backend; `lock` serialises it."""

    def __init__(self, app: WsgiApp, ec2: Any, lock: threading.RLock, interruptions: Interruptions) -> None:
        self._app = app
        self._ec2 = ec2
        self._lock = lock
        self._interruptions = interruptions
        self._secrets: dict[str, str] = {}
        self._instances: dict[str, str] = {}
        self._tokens: dict[str, tuple[str, float]] = {}
        self._credentials: dict[tuple[str, str], tuple[float, dict[str, str]]] = {}

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith(PREFIX):
            return self._app(environ, start_response)
        secret, _, path = environ["PATH_INFO"].removeprefix(PREFIX).partition("/")
        with self._lock:
            instance_id = self._instances.get(secret)
            status, text = self._answer(instance_id, path, environ) if instance_id else (404, "")
        body = text.encode()
        start_response(_STATUS[status], [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]

    def path_for(self, instance_id: str) -> str:
        """Returns the permanent path of an instance's metadata."""
        with self._lock:
            if instance_id not in self._secrets:
                self._secrets[instance_id] = secrets.token_urlsafe(32)
                self._instances[self._secrets[instance_id]] = instance_id
            return f"{PREFIX}{self._secrets[instance_id]}"

    def _answer(self, instance_id: str, path: str, environ: Environ) -> tuple[int, str]:
        instance = self._ec2.get_instance_by_id(instance_id)
        if instance is None or instance.state not in ("pending", "running"):
            return 404, ""
        if environ["REQUEST_METHOD"] == "PUT" and path == "latest/api/token":
            return self._token(instance_id, environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS", ""))
        if not self._may_read(instance, environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN")):
            return 401, ""
        text = self._read(instance, path)
        return (404, "") if text is None else (200, text)

    def _token(self, instance_id: str, seconds: str) -> tuple[int, str]:
        if not seconds.isdigit() or not 1 <= int(seconds) <= 21600:
            return 400, ""
        token = secrets.token_urlsafe(40)
        self._tokens[token] = instance_id, time.time() + int(seconds)
        return 200, token

    def _may_read(self, instance: Any, token: str | None) -> bool:
        if token is None:
            return bool(instance.metadata_options.http_tokens != "required")
        owner, until = self._tokens.get(token, ("", 0.0))
        return owner == instance.id and time.time() < until

    def _read(self, instance: Any, path: str) -> str | None:
        credentials = "latest/meta-data/iam/security-credentials/"
        role = role_of(instance)
        if role and path.rstrip("/") == credentials.rstrip("/"):
            return str(role["RoleName"])
        if role and path == credentials + role["RoleName"]:
            return json.dumps(self._credentials_of(instance.id, role))
        if path == "latest/dynamic/instance-identity/document":
            return json.dumps(_identity(instance))
        for spot, source in (
            ("latest/meta-data/spot/instance-action", self._interruptions.notice),
            ("latest/meta-data/events/recommendations/rebalance", self._interruptions.recommendation),
        ):
            if path == spot:
                document = source(instance.id)
                return None if document is None else json.dumps(document)
        return _facts(instance).get(path.removeprefix("latest/meta-data/").rstrip("/"))

    def _credentials_of(self, instance_id: str, role: dict[str, Any]) -> dict[str, str]:
        """Returns the same credentials until ten minutes before they expire."""
        until, issued = self._credentials.get((instance_id, role["Arn"]), (0.0, {}))
        if time.time() > until - _RENEW_SECONDS:
            until = time.time() + _SESSION_SECONDS
            issued = _issue(instance_id, role, self._network_of(instance_id), until)
            self._credentials[instance_id, role["Arn"]] = until, issued
        return issued

    def _network_of(self, instance_id: str) -> str:
        return str(self._ec2.get_instance_by_id(instance_id).vpc_id)


def _facts(instance: Any) -> dict[str, str]:
    zone = instance.placement.zone
    return {
        "instance-id": instance.id,
        "instance-type": instance.instance_type,
        "instance-life-cycle": instance.lifecycle or "on-demand",
        "ami-id": instance.image_id,
        "local-ipv4": instance.private_ip,
        "placement/availability-zone": zone,
        "placement/region": REGION,
        "services/domain": "amazonaws.com",
        "services/partition": "aws",
    }


def _identity(instance: Any) -> dict[str, str]:
    return {
        "accountId": ACCOUNT_ID,
        "architecture": instance.architecture,
        "availabilityZone": instance.placement.zone,
        "imageId": instance.image_id,
        "instanceId": instance.id,
        "instanceType": instance.instance_type,
        "privateIp": instance.private_ip,
        "region": REGION,
        "version": "2017-09-30",
    }


def role_of(instance: Any) -> dict[str, Any] | None:
    """Returns the role of the instance's profile, if EC2 may assume it."""
    set_request_account_id(ACCOUNT_ID)
    set_request_region(REGION)
    named = (instance.iam_instance_profile or {}).get("Arn")
    for profile in iam._instance_profiles.values():
        if profile["Arn"] == named:
            roles = [role for name in profile["Roles"] if (role := iam._roles.get(name)) and _trusts_ec2(role)]
            return roles[0] if roles else None
    return None


def _trusts_ec2(role: dict[str, Any]) -> bool:
    document = role.get("AssumeRolePolicyDocument") or "{}"
    statements = (json.loads(document) if isinstance(document, str) else document).get("Statement", [])
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal") or {}
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        if statement.get("Effect") == "Allow" and "ec2.amazonaws.com" in services:
            return True
    return False


def _issue(instance_id: str, role: dict[str, Any], vpc: str, until: float) -> dict[str, str]:
    key, secret, token = iam._gen_session_access_key(), iam._gen_secret(), iam._gen_session_token()
    sts.register_session(
        key,
        {
            "Arn": f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/{role['RoleName']}/{instance_id}",
            "UserId": f"{role['RoleId']}:{instance_id}",
            "SecretAccessKey": secret,
            "SessionToken": token,
            "Expiration": until,
            "AccountId": ACCOUNT_ID,
            "PrincipalType": "AssumedRole",
            SOURCE_VPC: vpc,
        },
    )
    return {
        "Code": "Success",
        "LastUpdated": _iso(time.time()),
        "Type": "AWS-HMAC",
        "AccessKeyId": key,
        "SecretAccessKey": secret,
        "Token": token,
        "Expiration": _iso(until),
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
