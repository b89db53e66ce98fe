"""Emulates those calls of AWS Price List and Service Quotas that Troop uses, which MiniStack and moto lack.

Both are on the port of moto, behind the same checks of signatures and policies. Both use JSON, with the call in a
header.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from . import price_table
from .authorization import Environ, StartResponse, WsgiApp, authorize
from .config import ACCOUNT_ID, REGION
from .identity import Refusal, identify
from .subjects import backend

_TARGETS = {"AWSPriceListService": "pricing", "ServiceQuotasV20190624": "servicequotas"}


class PriceAndQuotaServices:
    """WSGI middleware that answers calls of the two services, and forwards all others."""

    def __init__(self, app: WsgiApp, lock: threading.RLock) -> None:
        self._app, self._lock = app, lock

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        target, _, call = str(environ.get("HTTP_X_AMZ_TARGET", "")).partition(".")
        service = _TARGETS.get(target)
        if service is None:
            return self._app(environ, start_response)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        with self._lock:
            caller = identify(environ, body)
            if isinstance(caller, Refusal):
                return _answer(start_response, "400 Bad Request", _refusal(caller.code, caller.message))
            if caller.service != service:
                message = f"Credential should be scoped to correct service: '{service}'."
                return _answer(start_response, "400 Bad Request", _refusal("InvalidSignatureException", message))
            if denied := authorize(caller, {"Action": call}):
                return _answer(start_response, "400 Bad Request", _refusal("AccessDeniedException", denied.message))
            request = json.loads(body or b"{}")
            match call:
                case "GetProducts":
                    document: dict[str, Any] = {
                        "FormatVersion": "aws_v1",
                        "PriceList": list(map(json.dumps, _products(request))),
                    }
                case "GetServiceQuota" if request.get("QuotaCode") in price_table.VCPU_QUOTAS:
                    document = {"Quota": _quota(request["QuotaCode"], price_table.VCPU_QUOTAS)}
                case "GetAWSDefaultServiceQuota" if request.get("QuotaCode") in price_table.DEFAULT_VCPU_QUOTAS:
                    document = {"Quota": _quota(request["QuotaCode"], price_table.DEFAULT_VCPU_QUOTAS)}
                case "GetServiceQuota" | "GetAWSDefaultServiceQuota":
                    return _answer(start_response, "400 Bad Request", _refusal("NoSuchResourceException", "no quota"))
                case _:
                    message = f"{service} has no {call} here"
                    return _answer(start_response, "400 Bad Request", _refusal("UnknownOperationException", message))
            return _answer(start_response, "200 OK", document)


def _products(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the prices of an instance type, a volume type, endpoints, or of usage types; none in other regions."""
    filters = {one["Field"]: one["Value"] for one in request.get("Filters", [])}
    service = request.get("ServiceCode")
    if filters.get("regionCode") != REGION:
        return []
    if (part := filters.get("usagetype")) is not None:
        others = price_table.OTHERS.items()
        return [
            _product(usage, price, unit, its)
            for usage, (its, price, unit) in others
            if its == service and part in usage
        ]
    if service == "AmazonVPC" and filters.get("productFamily") == "VpcEndpoint":
        priced = price_table.ENDPOINTS.items()
        return [_product(usage, amount, unit, service) for usage, (amount, unit) in priced]
    if service != "AmazonEC2":
        return []
    if (name := filters.get("instanceType")) is not None:
        vcpus = vcpus_of(name)
        if not vcpus:
            return []
        price = price_table.on_demand(name, vcpus)
        return [_product(f"BoxUsage:{name}", str(price), "Hrs", instanceType=name, vcpu=str(vcpus))]
    kind = str(filters.get("volumeApiName"))
    listed = "piops" if kind == "io1" else kind
    return [
        _product(usage, amount, unit, volumeApiName=kind)
        for usage, (amount, unit) in price_table.VOLUMES.items()
        if usage.endswith(f".{listed}") or f".{listed}." in usage
    ]


def vcpus_of(instance_type: str) -> int:
    """Returns the number of vCPUs of an instance type; 0 for an unknown type."""
    types = backend("ec2").describe_instance_types(filters={"instance-type": [instance_type]})
    return int(types[0].get("VCpuInfo", {}).get("DefaultVCpus", 0)) if types else 0


def _product(usage: str, amount: str, unit: str, service: str = "AmazonEC2", **attributes: str) -> dict[str, Any]:
    attributes = {"regionCode": REGION, "servicecode": service, "usagetype": usage, **attributes}
    dimension = {"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": f"{Decimal(amount):.10f}"}}
    return {
        "serviceCode": service,
        "product": {"sku": usage, "attributes": attributes},
        "terms": {"OnDemand": {f"{usage}.LOCAL": {"priceDimensions": {f"{usage}.LOCAL.HRS": dimension}}}},
    }


def _quota(code: str, values: Mapping[str, float]) -> dict[str, Any]:
    return {
        "ServiceCode": "ec2",
        "QuotaArn": f"arn:aws:servicequotas:{REGION}:{ACCOUNT_ID}:ec2/{code}",
        "QuotaCode": code,
        "Value": values[code],
        "Unit": "None",
    }


def _refusal(code: str, message: str) -> dict[str, str]:
    return {"__type": code, "message": message}


def _answer(start_response: StartResponse, status: str, document: Mapping[str, Any]) -> list[bytes]:
    body = json.dumps(document).encode()
    start_response(status, [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(body)))])
    return [body]
