"""What AWS says of prices and quotas, which moto does not: in the form in which AWS says it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from tests.unit.account.account import OVERDUE

STANDARD, STANDARD_SPOT = "L-1216C47A", "L-34B43A08"
PREFIX = "EUC1-"


def product(usage: str, amount: str, unit: str = "Hrs", currency: str = "USD", **attributes: str) -> str:
    """One entry of a price list, with what is read of it and some of what is not."""
    sku = f"SKU{abs(hash(usage))}"
    dimension = {
        "unit": unit,
        "beginRange": "0",
        "endRange": "Inf",
        "description": f"{amount} per {unit}",
        "pricePerUnit": {currency: amount},
        "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
    }
    return json.dumps(
        {
            "serviceCode": "AmazonEC2",
            "product": {"sku": sku, "attributes": {"usagetype": usage, **attributes}},
            "terms": {
                "OnDemand": {f"{sku}.JRTCKXETXF": {"priceDimensions": {f"{sku}.6YS6EN2CT7": dimension}}},
                "Reserved": {"x": {"priceDimensions": {}}},
            },
        }
    )


def instance_products(name: str, amount: str, currency: str = "USD") -> list[str]:
    return [
        product(f"{PREFIX}UnusedBox:{name}", "99", currency=currency),
        product(f"{PREFIX}BoxUsage:{name}", amount, currency=currency),
    ]


GP3 = [
    product(f"{PREFIX}EBS:VolumeP-Throughput.gp3", "48.7424", "GiBps-mo"),
    product(f"{PREFIX}EBS:VolumeP-IOPS.gp3", "0.006", "IOPS-Mo"),
    product("EUC1-HAM1-EBS:VolumeUsage.gp3", "9", "GB-Mo"),
    product(f"{PREFIX}EBS:VolumeUsage.gp3", "0.0952", "GB-Mo"),
]

ENDPOINTS = [
    product(f"{PREFIX}VpcEndpoint-Bytes", "0.01", "GB"),
    product(f"{PREFIX}VpcEndpoint-GWLBE-Hours", "0.011"),
    product(f"{PREFIX}VpcEndpoint-Hours", "0.012"),
]


@dataclass
class Market:
    """Prices and quotas of one account.

    Attributes:
        products: what the list has, by the value of the filter that names it.
        spot: by instance type and zone.
        quotas, default_quotas: by code.
        fails: error code by operation.
        requests: parameters of the calls that were made, by operation.
    """

    products: dict[str, list[str]] = field(
        default_factory=lambda: {
            "c7g.large": instance_products("c7g.large", "0.0775"),
            "c5.large": instance_products("c5.large", "0.097"),
            "m7g.large": instance_products("m7g.large", "0.1"),
            "gp3": list(GP3),
            "VpcEndpoint": list(ENDPOINTS),
            "EBS:SnapshotUsage": [product(f"{PREFIX}EBS:SnapshotUsage", "0.054", "GB-Mo")],
            "PublicIPv4:IdleAddress": [product(f"{PREFIX}PublicIPv4:IdleAddress", "0.005")],
        }
    )
    spot: dict[str, dict[str, str]] = field(
        default_factory=lambda: {"c7g.large": {"eu-central-1a": "0.0301", "eu-central-1b": "0.0305"}}
    )
    quotas: dict[str, float] = field(default_factory=lambda: {STANDARD: 1000.0, STANDARD_SPOT: 1000.0})
    default_quotas: dict[str, float] = field(default_factory=dict)
    fails: dict[str, str] = field(default_factory=dict)
    requests: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def answering(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """In the place of botocore's own way to make a call."""

        def call(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            answer = {
                "GetProducts": self._products,
                "GetServiceQuota": self._quota,
                "GetAWSDefaultServiceQuota": self._default_quota,
                "DescribeSpotPriceHistory": self._history,
            }.get(operation)
            if answer is None:
                return real(client, operation, parameters)
            # What botocore itself would refuse to send.
            shape = client.meta.service_model.operation_model(operation).input_shape
            report = ParamValidator().validate(parameters, shape)
            assert not report.has_errors(), report.generate_report()
            self.requests.setdefault(operation, []).append(parameters)
            if code := self.fails.get(operation):
                raise ClientError({"Error": {"Code": code, "Message": "no"}}, operation)
            return answer(parameters)

        return call

    def _products(self, parameters: dict[str, Any]) -> dict[str, Any]:
        filters = {one["Field"]: one["Value"] for one in parameters["Filters"]}
        assert filters["regionCode"] == "eu-central-1"
        (name,) = {"instanceType", "volumeApiName", "productFamily", "usagetype"} & filters.keys()
        is_of_vpc = name == "productFamily" or filters[name].startswith("PublicIPv4")
        assert parameters["ServiceCode"] == ("AmazonVPC" if is_of_vpc else "AmazonEC2")
        assert all((one["Type"] == "CONTAINS") == (one["Field"] == "usagetype") for one in parameters["Filters"])
        return {"PriceList": self.products.get(filters[name], [])}

    def _quota(self, parameters: dict[str, Any]) -> dict[str, Any]:
        if parameters["QuotaCode"] not in self.quotas:
            raise ClientError({"Error": {"Code": "NoSuchResourceException", "Message": "no"}}, "GetServiceQuota")
        return {"Quota": {"QuotaCode": parameters["QuotaCode"], "Value": self.quotas[parameters["QuotaCode"]]}}

    def _default_quota(self, parameters: dict[str, Any]) -> dict[str, Any]:
        if parameters["QuotaCode"] not in self.default_quotas:
            raise ClientError({"Error": {"Code": "NoSuchResourceException", "Message": "no"}}, "GetServiceQuota")
        return {"Quota": {"Value": self.default_quotas[parameters["QuotaCode"]]}}

    def _history(self, parameters: dict[str, Any]) -> dict[str, Any]:
        (zones,) = [one["Values"] for one in parameters["Filters"] if one["Name"] == "availability-zone"]
        prices = [
            {
                "InstanceType": name,
                "AvailabilityZone": zone,
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": price if age == 0 else "9",
                "Timestamp": OVERDUE - timedelta(hours=age),
            }
            for name in parameters["InstanceTypes"]
            for zone, price in self.spot.get(name, {}).items()
            if zone in zones
            for age in (5, 0, 3)
        ]
        return {"SpotPriceHistory": prices}
