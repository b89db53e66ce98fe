"""Where fleets go, and on what."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.build import DRIVERS, SERVERS
from troop.bench.definition.definition import ON_DEMAND, SPOT
from troop.bench.definition.names import fleet_tags, tags
from troop.bench.fleets.fleet_requests import (
    Image,
    LaunchImpossibleError,
    Subnet,
    architecture,
    choose_subnets,
    even_zones,
    group_request,
    is_ours,
    template_data,
)

SUBNETS = [Subnet("s-c", "zc"), Subnet("s-a1", "za"), Subnet("s-b", "zb"), Subnet("s-a2", "za")]
TAGS = fleet_tags(tags("Troop", "r", "c001", "2026"), "drivers")


@pytest.mark.parametrize(
    ("supported", "expected"),
    [({"arm64"}, "arm64"), ({"x86_64"}, "x86_64"), ({"i386", "x86_64"}, "x86_64")],
)
def test_an_architecture_is_one_there_is_an_image_of(supported: set[str], expected: str) -> None:
    assert architecture("t", supported) == expected


@pytest.mark.parametrize("supported", [{"i386"}, {"arm64_mac"}, set()])
def test_a_type_without_an_image_is_refused(supported: set[str]) -> None:
    with pytest.raises(LaunchImpossibleError, match="mac1"):
        architecture("mac1", supported)


@pytest.mark.parametrize(
    ("zones", "offered", "chosen"),
    [
        (1, {"za", "zb", "zc"}, ("s-a1", "s-a2")),
        (2, {"za", "zb", "zc"}, ("s-a1", "s-a2", "s-b")),
        (1, {"zb", "zc", "zd"}, ("s-b",)),
        (2, {"zc", "zb"}, ("s-b", "s-c")),
    ],
)
def test_fleets_take_the_first_zones_that_have_their_type(zones: int, offered: set[str], chosen: tuple[str]) -> None:
    assert choose_subnets(replace(DRIVERS, zones=zones), SUBNETS, offered) == chosen
    assert choose_subnets(replace(DRIVERS, zones=zones), SUBNETS[::-1], offered) == chosen


@pytest.mark.parametrize(("zones", "offered"), [(1, set()), (1, {"zd"}), (4, {"za", "zb", "zc", "zd"})])
def test_too_few_zones_are_an_error(zones: int, offered: set[str]) -> None:
    with pytest.raises(LaunchImpossibleError, match="use fewer zones or another instance type"):
        choose_subnets(replace(DRIVERS, zones=zones), SUBNETS, offered)


def test_user_data_that_ec2_would_refuse_is_refused_first() -> None:
    image = Image("ami-1", "/dev/xvda")
    template_data(SERVERS, image, ["sg-1"], "arn", "x" * 16_384, TAGS)
    with pytest.raises(LaunchImpossibleError, match="16385 bytes"):
        template_data(SERVERS, image, ["sg-1"], "arn", "x" * 16_385, TAGS)


def test_group_launches_from_its_own_template() -> None:
    request = group_request(DRIVERS, "name", "lt-1", ["s-1", "s-2"], TAGS)
    assert request["LaunchTemplate"] == {"LaunchTemplateId": "lt-1", "Version": "1"}
    assert request["VPCZoneIdentifier"] == "s-1,s-2"


def test_a_spot_fleet_is_all_spot_of_the_same_template() -> None:
    request = group_request(replace(DRIVERS, purchase=SPOT), "name", "lt-1", ["s-1"], TAGS)
    assert "LaunchTemplate" not in request
    assert request["MixedInstancesPolicy"] == {
        "LaunchTemplate": {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "1"}},
        "InstancesDistribution": {
            "OnDemandBaseCapacity": 0,
            "OnDemandPercentageAboveBaseCapacity": 0,
            "SpotAllocationStrategy": "price-capacity-optimized",
        },
    }
    assert request["CapacityRebalance"] is False


@pytest.mark.parametrize(("price", "text"), [("0.001", "0.001"), ("1E+2", "100"), ("0.0725", "0.0725")])
def test_a_maximum_price_is_a_plain_number_in_the_policy(price: str, text: str) -> None:
    fleet = replace(DRIVERS, purchase=SPOT, max_price=Decimal(price))
    request = group_request(fleet, "name", "lt-1", ["s-1"], TAGS)
    assert request["MixedInstancesPolicy"]["InstancesDistribution"]["SpotMaxPrice"] == text


@pytest.mark.parametrize("spot", [False, True])
def test_request_is_valid_for_auto_scaling(spot: bool) -> None:
    fleet = replace(DRIVERS, purchase=SPOT if spot else ON_DEMAND, zones=3)
    request = group_request(fleet, "name", "lt-1", ["s-1"], TAGS)
    model = Session().get_service_model("autoscaling").operation_model("CreateAutoScalingGroup").input_shape
    assert model
    assert not ParamValidator().validate(request, model).has_errors()


@pytest.mark.parametrize(
    ("zones", "is_balanced", "expected"), [(3, True, "balanced-only"), (1, True, None), (3, False, None)]
)
def test_a_zone_without_capacity_is_not_replaced_by_others(zones: int, is_balanced: bool, expected: str | None) -> None:
    request = group_request(replace(DRIVERS, zones=zones), "name", "lt-1", ["s-1"], TAGS, is_balanced=is_balanced)
    assert request.get("AvailabilityZoneDistribution", {}).get("CapacityDistributionStrategy") == expected


@pytest.mark.parametrize(
    ("counts", "more", "zones"),
    [
        ({"a": 4, "b": 4, "c": 1}, 3, ("c",)),  # spot had none in one zone
        ({"a": 0, "b": 0, "c": 0}, 5, ("a", "b", "c")),
        ({"a": 2, "b": 1, "c": 1}, 2, ("b", "c")),
        ({"a": 4, "b": 0, "c": 0}, 8, ("b", "c")),
        ({"a": 4, "b": 1, "c": 2}, 5, ("b", "c")),  # 3 and 2 are even; 2 and 3 are not
        ({"a": 3}, 2, ("a",)),
    ],
)
def test_the_zones_of_a_backup_make_up_for_those_of_spot(
    counts: dict[str, int], more: int, zones: tuple[str, ...]
) -> None:
    assert even_zones(counts, more) == zones


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=5),
    st.integers(1, 12),
)
def test_if_one_zone_alone_lacks_nodes_all_are_even_afterwards(full: list[int], missing: int) -> None:
    """All other zones have the same number; the rest fills the one that has fewer."""
    counts = {f"z{n}": 12 for n, _ in enumerate(full)} | {"short": 12 - missing}
    assert even_zones(counts, missing) == ("short",)


@pytest.mark.parametrize("key", ["troop:deployment", "troop:run", "troop:cell"])
def test_ours_is_what_carries_all_of_deployment_run_and_cell(key: str) -> None:
    assert is_ours(TAGS | {"more": "x"}, TAGS)
    assert not is_ours(TAGS | {key: "other"}, TAGS)
    assert not is_ours({k: v for k, v in TAGS.items() if k != key}, TAGS)
