"""The instances that Systems Manager knows, in place of moto, which has none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from tests.unit.account.account import Call


@dataclass
class Managed:
    """Answers ``DescribeInstanceInformation`` when it is the intercept of :func:`tests.unit.account.account.calls`.

    Attributes:
        known: (ping status, platform) by instance; every other instance is unknown.
        requests: the instances that each request named.
    """

    known: dict[str, tuple[str, str]] = field(default_factory=dict)
    requests: list[list[str]] = field(default_factory=list)
    refusal: str = ""

    def register(self, *instances: str, ping: str = "Online", platform: str = "Linux") -> None:
        self.known |= dict.fromkeys(instances, (ping, platform))

    def __call__(self, number: int, operation: str, call: Call) -> Any:
        return self.answer(call.args[-1]) if operation == "DescribeInstanceInformation" else call()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.refusal:
            raise ClientError({"Error": {"Code": self.refusal, "Message": "no"}}, "DescribeInstanceInformation")
        (condition,) = request["Filters"]
        assert condition["Key"] == "InstanceIds"
        assert len(condition["Values"]) <= request["MaxResults"] <= 50
        self.requests.append(condition["Values"])
        shown = [(one, *self.known[one]) for one in condition["Values"] if one in self.known]
        return {
            "InstanceInformationList": [
                {"InstanceId": one, "PingStatus": ping, "PlatformType": platform} for one, ping, platform in shown
            ]
        }
