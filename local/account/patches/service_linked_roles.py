"""Gives service-linked roles the names of AWS, and makes IAM know them by path and service.

MiniStack invents other names ("AWSServiceRoleForAutoscaling"), and roles of services that do not exist. It omits a
role's path in the resource that it compares with policies, and does not support the key ``iam:AWSServiceName``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core import iam_actions
from ministack.services import iam

from ..config import ACCOUNT_ID
from ._wrap import wrap

NAMES = {
    "ops.apigateway.amazonaws.com": "AWSServiceRoleForAPIGateway",
    "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
    "spot.amazonaws.com": "AWSServiceRoleForEC2Spot",
}


def apply() -> None:
    @wrap(iam, "_create_service_linked_role")
    def create(original: Callable[..., Any], params: Any) -> Any:
        service = iam._p(params, "AWSServiceName")
        if (name := NAMES.get(service)) is None:
            message = f"{service} is no service with a service-linked role, or one that the local account does not know"
            return iam._error(400, "InvalidInput", message, ns="iam")
        if name in iam._roles:
            message = f"Service role name {name} has been taken in this account, please try a different suffix."
            return iam._error(400, "InvalidInput", message, ns="iam")
        others = set(iam._roles)
        status, headers, body = original(params)
        if new_names := set(iam._roles) - others:
            own = new_names.pop()
            role = iam._roles.pop(own)
            iam._roles[name] = role | {"RoleName": name, "Arn": role["Arn"].removesuffix(own) + name}
            body = body.replace(own.encode(), name.encode())
        return status, headers, body

    iam._IAM_HANDLERS["CreateServiceLinkedRole"] = iam._create_service_linked_role

    @wrap(iam_actions, "extract_resource_arn")
    def resource(original: Callable[..., str], service: str, *arguments: Any) -> str:
        arn = original(service, *arguments)
        if service != "iam":
            return arn
        linked = iam_actions._query_param(arguments[4], "AWSServiceName")
        if linked:
            return _arn(linked, NAMES.get(linked, "*"))
        name = iam_actions._query_param(arguments[4], "RoleName")
        return next((_arn(one, name) for one, known in NAMES.items() if known == name), arn)

    @wrap(iam_actions, "request_tag_context")
    def context(original: Callable[..., dict[str, Any]], service: str, action: str, body: bytes, params: Any) -> Any:
        conditions = original(service, action, body, params)
        linked = iam_actions._query_param(params, "AWSServiceName") if service == "iam" else ""
        return conditions | {"iam:AWSServiceName": linked} if linked else conditions


def _arn(service: str, name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT_ID}:role/aws-service-role/{service}/{name}"
