"""`make deploy` chooses zones once and for all, refuses a network without room, and warns of too few functions."""

from __future__ import annotations

import pytest

from cli.shared.errors import CliError, Exit
from lifecycle.resources import Resource
from tests.unit.lifecycle.world import Printed, Run, World


def zones_of(world: World) -> list[str]:
    return [word for word in world.done[0] if word.startswith("troop:zones=")]


def test_zones_are_named_once_and_for_all(run: Run, world: World, capsys: Printed) -> None:
    world.zones.reverse()
    run(typed="y\n")
    output = capsys.readouterr().out
    assert output.index("a subnet in each of these zones: eu-west-1a, eu-west-1b, eu-west-1c") < output.index("[y/N]")
    assert zones_of(world) == ["troop:zones=eu-west-1a,eu-west-1b,eu-west-1c"]


def test_subnets_stay_where_they_are_whatever_the_region_has_now(run: Run, world: World) -> None:
    world.status, world.zones = "UPDATE_COMPLETE", ["eu-west-1a", "eu-west-1b", "eu-west-1c", "eu-west-1d"]
    prefix = "BenchmarksNetworkVpcNodesSubnet"
    world.resources = {
        "BenchmarksNetworkVpc0123ABCD": Resource("AWS::EC2::VPC", "vpc-1"),
        f"{prefix}1Subnet0123ABCD": Resource("AWS::EC2::Subnet", "eu-west-1b"),
        f"{prefix}2Subnet0123ABCD": Resource("AWS::EC2::Subnet", "eu-west-1d"),
        f"{prefix}2RouteTable0123ABCD": Resource("AWS::EC2::RouteTable", "rtb-1"),
    }
    world.vpcs = 5  # of which this is one
    run(yes=True)
    assert zones_of(world) == ["troop:zones=eu-west-1b,eu-west-1d,eu-west-1a"]
    world.done.clear()
    run("troop:zones=2", yes=True)
    assert zones_of(world) == ["troop:zones=eu-west-1b,eu-west-1d"]
    world.done.clear()
    with pytest.raises(CliError, match="must begin with eu-west-1b, eu-west-1d"):
        run("troop:zones=eu-west-1a,eu-west-1d", yes=True)
    assert world.done == []


def test_fewer_zones_than_configured_are_used_with_a_notice(run: Run, world: World, capsys: Printed) -> None:
    world.zones.pop()
    run(typed="y\n")
    output = capsys.readouterr().out
    assert (
        output.index("troop:zones is 3, but eu-west-1 has only 2")
        < output.index("-c troop:zones=2")
        < output.index("[y/N]")
    )
    assert zones_of(world) == ["troop:zones=eu-west-1a,eu-west-1b"]


def test_a_zone_the_region_does_not_have_is_refused(run: Run, world: World) -> None:
    with pytest.raises(
        CliError, match=r"eu-west-1z is not a zone .* Choose from eu-west-1a, eu-west-1b, eu-west-1c"
    ) as refused:
        run("troop:zones=eu-west-1a,eu-west-1z", yes=True)
    assert refused.value.code == Exit.USAGE
    assert world.done == []


NETWORK = 'troop:network={"vpc": "vpc-0123abcd", "subnets": ["subnet-0123abcd"]}'


def test_network_beyond_the_quota_is_refused_before_anything_is_created(run: Run, world: World) -> None:
    world.vpcs = 5
    with pytest.raises(CliError, match=r"5 of the 5 VPCs.*troop:network.*troop:benchmarks=false"):
        run(yes=True)
    world.refuses = {"get_service_quota": "NoSuchResourceException"}  # the account has none of its own
    with pytest.raises(CliError, match="5 of the 5 VPCs"):
        run(yes=True)
    assert world.done == []


@pytest.mark.parametrize("settings", [(NETWORK,), ("troop:benchmarks=false",)])
def test_deployment_without_a_network_checks_no_quota_of_networks(
    run: Run, world: World, settings: tuple[str, ...]
) -> None:
    world.vpcs = 5
    run(*settings, yes=True)
    assert zones_of(world) == []


def test_low_concurrency_is_a_warning_with_the_command_that_raises_it(run: Run, world: World, capsys: Printed) -> None:
    run(yes=True)
    assert "Warning" not in capsys.readouterr().out
    world.concurrency = 10
    run(typed="y\n")
    output, _ = capsys.readouterr().out.split("[y/N]")
    assert "Lambda runs at most 10 functions at a time here" in output
    assert "--region eu-west-1 --service-code lambda --quota-code L-B99A9384 --desired-value 1000" in output


@pytest.mark.parametrize("operation", ["get_service_quota", "describe_vpcs", "get_account_settings"])
def test_a_quota_that_nobody_tells_ends_nothing(run: Run, world: World, operation: str, capsys: Printed) -> None:
    world.refuses = {operation: "AccessDeniedException"}
    run(yes=True)
    assert f"in this region (An error occurred (AccessDeniedException) when calling the {operation}" in (
        capsys.readouterr().out
    )
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]
