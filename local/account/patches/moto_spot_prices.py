"""Returns plausible Spot prices: moto has a single price from 2006, with a description that nobody queries."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.responses.spot_instances import SpotInstances

from .. import price_table
from ..price_and_quota_services import vcpus_of

_LINUX = "Linux/UNIX"


def apply() -> None:
    def history(self: Any) -> ActionResult:
        """Returns the current price of each type in each zone that offers it."""
        types, products = self._get_param("InstanceTypes", []), self._get_param("ProductDescriptions", [])
        offered = self.ec2_backend.describe_spot_price_history(types, self._filters_from_querystring())
        prices = [
            {
                "InstanceType": one["InstanceType"],
                "ProductDescription": _LINUX,
                "SpotPrice": str(price_table.spot(one["InstanceType"], vcpus_of(one["InstanceType"]), one["Location"])),
                "AvailabilityZone": one["Location"],
                "Timestamp": utcnow(),
            }
            for one in offered
            if not products or _LINUX in products
        ]
        return ActionResult({"SpotPriceHistory": prices})

    SpotInstances.describe_spot_price_history = history
