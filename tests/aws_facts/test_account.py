"""What `make deploy` and the documents assume about accounts, in data that AWS publishes."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.session import Session


@pytest.fixture(scope="module")
def session() -> Session:
    session = botocore.session.get_session()
    session.set_credentials("a", "b")
    return session


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1", "ap-southeast-2"])
def test_the_plan_of_an_account_is_read_in_one_region_from_everywhere(session: Session, region: str) -> None:
    client: Any = session.create_client("freetier", region)
    request: dict[str, Any] = {}

    def keep(request: Any, request_dict: dict[str, Any] = request, **_: Any) -> Any:
        request_dict.update(url=request.url, signature=str(request.headers["Authorization"]))
        raise InterruptedError

    client.meta.events.register("before-send", keep)
    with pytest.raises(InterruptedError):
        client.get_account_plan_state()
    assert request["url"].startswith("https://freetier.us-east-1.api.aws")
    assert "/us-east-1/freetier/aws4_request" in request["signature"]


def test_a_plan_is_free_or_paid(session: Session) -> None:
    answer: Any = session.get_service_model("freetier").operation_model("GetAccountPlanState").output_shape
    assert answer.members["accountPlanType"].enum == ["FREE", "PAID"]
    assert answer.members["accountPlanExpirationDate"].type_name == "timestamp"


def test_instance_types_can_be_filtered_by_free_tier_eligibility(session: Session) -> None:
    request: Any = session.get_service_model("ec2").operation_model("DescribeInstanceTypes").input_shape
    assert "free-tier-eligible" in request.members["Filters"].documentation
