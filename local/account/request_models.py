"""Checks requests against the models of AWS's APIs, which are part of the SDK.

Both servers accept what AWS refuses: unknown values such as a type of volume, numbers and lists above their limits, and
tags that only AWS can set. Not checked: S3, which has a patch, and the protocol CBOR, which nobody here uses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

from .identity import Refusal
from .shapes import Limits, problems, reserved_tags

_MODELS = {
    "dynamodb": ("dynamodb", "dynamodbstreams"),
    "elasticloadbalancing": ("elbv2", "elb"),
    "monitoring": ("cloudwatch",),
    "states": ("stepfunctions",),
    "tagging": ("resourcegroupstaggingapi",),
    **{
        name: (name,)
        for name in (
            *("apigateway", "autoscaling", "cloudformation", "ec2", "events", "iam", "lambda", "logs"),
            *("scheduler", "secretsmanager", "sns", "sqs", "ssm", "sts"),
        )
    },
}
"""The models of a service, by its name in signatures."""
_CODES = {"ec2": "InvalidParameterValue", "query": "ValidationError"}
"""The error code of a bad value by protocol; ValidationException for the others."""
_SCOPE = re.compile(r"Credential=[^/]*/\d+/[^/]*/([^/]+)/aws4_request")
_PAGES = {
    **dict.fromkeys(
        ("DescribeInstances", "DescribeInstanceStatus", "DescribeSpotInstanceRequests", "DescribeTags"), Limits(5, 1000)
    ),
    **dict.fromkeys(("DescribeFleets", "DescribeSpotFleetRequests", "DescribeSpotPriceHistory"), Limits(1, 1000)),
}
"""EC2's sizes of pages that its model had, in botocore 1.27.0, and has no longer."""
_OWN_ERRORS = re.compile(r"\.?(InstanceTypes?|InstanceType\.\w+)\b|\.Attribute(Name)?s cannot\b")
"""Parameters whose bad values have an error code of their own, which the server knows."""


def refusal(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Refusal | None:
    """Returns AWS's refusal of a signed request; None if the models have nothing against it."""
    scope = _SCOPE.search(headers.get("authorization", ""))
    request = Request.from_primitives(method, url, headers, body)
    for service in _MODELS.get(scope[1], ()) if scope else ():
        try:
            operation, in_path = get_service_router(service).match(request)
        except (NotFound, NotImplementedError):
            continue  # the server refuses what it does not know
        return _refusal(service, operation, request, in_path)
    return None


def _refusal(service: str, operation: Any, request: Any, in_path: Mapping[str, Any]) -> Refusal | None:
    if operation.input_shape is None:
        return None
    protocol = determine_request_protocol(get_service_model(service), request.content_type)
    parts = {
        "method": request.method,
        "values": request.values,
        "headers": request.headers,
        "body": request.data,
        "url_path": request.path,
        "url_params": in_path,
    }
    try:
        parameters = PROTOCOL_PARSERS[protocol](operation).parse(parts)
    except (ValueError, TypeError, AttributeError) as error:
        return Refusal("SerializationException", f"the request does not fit the model: {error}")
    wrong = [one for one in problems(operation.input_shape, parameters) if not _OWN_ERRORS.match(one)]
    size = parameters.get("MaxResults")
    if service == "ec2" and isinstance(size, int) and not _PAGES.get(operation.name, Limits()).allow(size):
        wrong.append(f".MaxResults cannot be {size}")
    if not operation.name.startswith(("Describe", "Get", "List")):
        wrong += [f"the tag {name} is reserved for AWS" for name in reserved_tags(parameters)]
    return Refusal(_CODES.get(protocol, "ValidationException"), "; ".join(wrong)) if wrong else None
