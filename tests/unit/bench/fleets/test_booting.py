"""What a look at fleets that boot means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.build import ALL, BENCHMARK, DRIVER_IDS, NODES, SEEN
from troop.bench.definition.roster import Node
from troop.bench.fleets.booting import FleetStatus, boot_verdict
from troop.bench.fleets.refusals import SPREAD, is_permanent, remedy
from troop.bench.measuring.verdicts import LONGEST_REASON, State, Verdict, name_some
from troop.bench.records.record import CellStatus

subsets = st.sets(st.sampled_from(sorted(ALL))).map(frozenset)


def boot(seen: Any = SEEN, nodes: Any = None, elapsed: float = 0) -> Verdict:
    return boot_verdict(BENCHMARK, seen, NODES if nodes is None else nodes, elapsed)


def without(*ids: str) -> dict[str, Node]:
    return {i: node for i, node in NODES.items() if i not in ids}


@given(subsets, subsets, st.floats(0, 10_000))
def test_all_are_there_exactly_when_every_serving_id_has_registered(
    serving: frozenset[str], registered: frozenset[str], elapsed: float
) -> None:
    seen = [FleetStatus(f.role, f.serving & serving, f.serving - serving) for f in SEEN]
    verdict = boot(seen, {i: NODES[i] for i in registered}, elapsed)
    complete = serving == ALL and registered == ALL
    assert (verdict.state is State.READY) == complete
    if not complete:
        late = elapsed >= 600 or (elapsed >= 300 and not (serving & registered >= DRIVER_IDS))
        assert verdict.state is (State.FAILED if late else State.WAITING)


def test_a_fleet_in_fewer_zones_than_it_is_to_be_makes_its_cell_invalid() -> None:
    one_zone = {i: replace(node, zone="za") for i, node in NODES.items()}
    wide = replace(BENCHMARK, fleets=tuple(replace(fleet, zones=2) for fleet in BENCHMARK.fleets))
    verdict = boot_verdict(wide, SEEN, one_zone, 0)
    assert (verdict.state, verdict.status) == (State.FAILED, CellStatus.INVALID)
    assert "is only in za, not in 2 zones" in str(verdict.reason)
    spread = {i: replace(node, zone="za" if n % 2 else "zb") for n, (i, node) in enumerate(sorted(NODES.items()))}
    assert boot_verdict(wide, SEEN, spread, 0).state is State.READY


@pytest.mark.parametrize(
    ("zones", "is_even"), [("aabbcc", True), ("aabbc", True), ("aaabbc", False), ("aaaabc", False)]
)
def test_no_zone_has_two_nodes_more_than_another(zones: str, is_even: bool) -> None:
    """Ten, one and one are three zones, too; but a zone can be a rack, and then one node has a copy of everything."""
    fleet = replace(BENCHMARK.fleets[1], count=len(zones), zones=3)
    nodes = {f"i-{n}": Node(f"i-{n}", "drivers", zone, f"10.0.0.{n}") for n, zone in enumerate(zones)}
    verdict = boot_verdict(replace(BENCHMARK, fleets=(fleet,)), [FleetStatus("drivers", frozenset(nodes))], nodes, 0)
    assert verdict.state is (State.READY if is_even else State.FAILED)
    if not is_even:
        assert verdict.status is CellStatus.INVALID
        assert f"{zones.count('a')} in a, {zones.count('b')} in b, 1 in c" in str(verdict.reason)


def test_as_many_are_not_the_same() -> None:
    """Three serve and three have registered, but not the same three."""
    seen = (FleetStatus("drivers", frozenset({"i-d0", "i-d1", "i-new"})), SEEN[1])
    assert boot(seen).state is State.WAITING


def test_a_node_of_another_role_does_not_fill_a_place() -> None:
    swapped = NODES | {"i-d0": replace(NODES["i-d0"], role="servers")}
    assert boot(nodes=swapped).state is State.WAITING


def test_node_outside_of_its_group_may_have_failed() -> None:
    assert boot(nodes=NODES | {"i-old": Node("i-old", "drivers", error="no disk")}).state is State.READY


def test_reasons_name_a_few_and_count_the_rest() -> None:
    broken = {i: replace(node, error="no\n disk " + "x" * 1000) for i, node in NODES.items()}
    reason = boot(nodes=broken).reason or ""
    assert reason.startswith("3 nodes could not start: i-d0: no disk xxx")
    assert "\n" not in reason
    assert len(reason) <= LONGEST_REASON
    assert name_some(f"i-{n}" for n in range(9)) == "i-0, i-1, i-2, i-3, i-4 and 4 others"
    assert name_some(f"i-{n}" for n in range(6)) == "i-0, i-1, i-2, i-3, i-4 and 1 other"


def test_late_fleet_fails_with_its_silent_and_missing_nodes() -> None:
    seen = (FleetStatus("drivers", frozenset({"i-d0", "i-d1"}), refusals=("no capacity",)), SEEN[1])
    verdict = boot(seen, without("i-d1"), 300)
    assert verdict == Verdict(
        State.FAILED,
        CellStatus.INVALID,
        "of 3 nodes in the fleet drivers, not all registered within 300 s; i-d1 never registered: see output/boot/; "
        "1 node was never launched: no capacity",
    )


def test_a_fleet_of_which_no_node_registers_has_a_common_cause() -> None:
    """The network, the role or the file: another attempt would take as long, and end the same."""
    verdict = boot(nodes=without("i-d0", "i-d1", "i-d2"), elapsed=300)
    assert (verdict.state, verdict.status) == (State.FAILED, CellStatus.FAILED)
    assert boot(nodes=without("i-d0", "i-d1"), elapsed=300).status is CellStatus.INVALID


@pytest.mark.parametrize(
    ("message", "permanent"),
    [
        ("You have requested more vCPU capacity than your current vCPU limit of 0 allows", True),
        ("VolumeLimitExceeded: Max volumes exceeded", True),
        ("The requested configuration is currently not supported. Please check the documentation", True),
        ("Client.InternalError: Client error on launch.", True),
        ("There are not enough free addresses in subnet 'subnet-1'", True),
        ("The image id '[ami-1]' does not exist. InvalidAMIID.NotFound", True),
        ("The specified instance type is not eligible for Free Tier.", True),
        ("We currently do not have sufficient c5.large capacity in the Availability Zone you requested", False),
        ("InsufficientInstanceCapacity", False),
        ("Server.InternalError: Internal error on launch", False),
        ("RequestLimitExceeded: Request limit exceeded.", False),
    ],
)
def test_only_what_will_not_pass_ends_a_boot_early(message: str, permanent: bool) -> None:
    assert is_permanent(message, 0) == is_permanent(message, SPREAD) == permanent
    seen = (FleetStatus("drivers", frozenset({"i-d0", "i-d1"}), refusals=("on its way", message)), SEEN[1])
    verdict = boot(seen, without("i-d2"))
    assert verdict.state is (State.FAILED if permanent else State.WAITING)
    if permanent:
        assert message[:60] in (verdict.reason or "")
        assert (verdict.reason or "").endswith(remedy(message) or message)


@pytest.mark.parametrize(
    "message",
    [
        "You are not authorized to perform this operation.",
        "UnauthorizedOperation",
        "You are not authorized to use launch template: lt-0123456789abcdef0",
        "Invalid IamInstanceProfile: arn:aws:iam::111122223333:instance-profile/nodes",
        "You have requested more vCPU capacity than your current vCPU limit of 32 allows",
        "VcpuLimitExceeded",
    ],
)
def test_a_lack_of_rights_or_vcpus_ends_a_boot_once_aws_has_settled(message: str) -> None:
    """The first group of an account creates the role with which it launches, which takes a minute or two. EC2 may count
    the vCPUs of the previous cell's nodes for as long.
    """
    seen = (FleetStatus("drivers", frozenset({"i-d0", "i-d1"}), refusals=(message,)), SEEN[1])
    assert boot(seen, without("i-d2"), elapsed=90).state is State.WAITING
    failed = boot(seen, without("i-d2"), elapsed=SPREAD)
    assert (failed.state, message in (failed.reason or "")) == (State.FAILED, True)


def test_a_role_that_auto_scaling_cannot_assume_yet_is_waited_for() -> None:
    role = "arn:aws:iam::111122223333:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
    assert not is_permanent(f"Access denied when attempting to assume role {role}. Validating load balancer", SPREAD)


def test_a_group_that_is_not_seen_yet_is_waited_for() -> None:
    seen = (FleetStatus("drivers", frozenset(), exists=False), SEEN[1])
    assert boot(seen, elapsed=29).state is State.WAITING
    assert boot(seen, elapsed=30).reason == "the Auto Scaling group of the fleet drivers was deleted"
