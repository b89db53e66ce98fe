"""Standing fleets on spot: the backup on demand comes and goes, whatever fails or happens at the same time."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto.autoscaling import autoscaling_backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2 import ec2_backends

from tests.unit.account.account import EXHAUSTIVE, Cut, calls, changing, cut_at, refusing
from tests.unit.account.asking import ask, get
from tests.unit.account.fast_moto import calls_are_usual, once
from tests.unit.account.market import Market
from tests.unit.account.standing import FILE, Stand
from troop.bench.definition import names
from troop.bench.records.record import Kind
from troop.chaos.groups import Group

REGION = "eu-central-1"
WORKERS = {"count": 5, "instance_type": "c7g.large", "zones": 2, "purchase": "spot", "backup": "on-demand"}


def on_spot(**changes: Any) -> dict[str, Any]:
    return {**FILE, "fleets": {"workers": {**WORKERS, "spot_timeout": "5m", **changes}}}


class Spot:
    """Spot in moto, which gives a group at most so many nodes.

    Attributes:
        gives: how many.
        wants: the sizes that groups on spot were given, by name; moto's are smaller.
        prices: the maximum prices of new groups.
    """

    def __init__(self, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stand, self.gives, self.wants, self.prices = stand, 99, dict[str, int](), list[str | None]()
        real = BaseClient._make_api_call  # type: ignore[attr-defined]
        self.real = real

        def call(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            name = str(parameters.get("AutoScalingGroupName"))
            if operation == "CreateAutoScalingGroup" and "MixedInstancesPolicy" in parameters:
                distribution = parameters["MixedInstancesPolicy"]["InstancesDistribution"]
                self.prices.append(distribution.get("SpotMaxPrice"))
                self.wants[name] = parameters["DesiredCapacity"]
                size = min(self.gives, self.wants[name])
                answer = real(client, operation, {**parameters, "DesiredCapacity": size})
                self._mark(name)
                return answer
            if operation == "UpdateAutoScalingGroup" and name in self.wants:
                self.wants[name] = parameters["DesiredCapacity"]
                return self._supply(name)
            answer = real(client, operation, parameters)
            if operation == "DescribeAutoScalingGroups":
                for group in answer["AutoScalingGroups"]:
                    if (most := self.wants.get(group["AutoScalingGroupName"])) is not None:
                        group |= {"DesiredCapacity": most, "MaxSize": most}
            return answer

        monkeypatch.setattr(BaseClient, "_make_api_call", call)
        calls_are_usual((self, "gives", "wants", "prices"))

    def give(self, most: int) -> Spot:
        """Takes nodes back, or gives those that groups lack."""
        self.gives = most
        for name in self.wants:
            self._supply(name)
        return self

    def restore(self, run: str) -> None:
        """Gives the fleet all nodes on spot, without the time that this takes."""
        own = names.fleet_name(run, "c001", "workers")
        parameters = {"AutoScalingGroupName": f"{own}.backup", "MaxSize": 0, "DesiredCapacity": 0}
        self.real(self.stand.bench.autoscaling, "UpdateAutoScalingGroup", parameters)
        self.wants[own] = 5
        self.give(99)
        assert self.settle(run) == (5, 0)

    def _supply(self, name: str) -> Any:
        group = autoscaling_backends[DEFAULT_ACCOUNT_ID][REGION].autoscaling_groups[name]
        policy, size = group.mixed_instances_policy, min(self.gives, self.wants[name])
        parameters = {"AutoScalingGroupName": name, "MaxSize": self.wants[name], "DesiredCapacity": size}
        answer = self.real(self.stand.bench.autoscaling, "UpdateAutoScalingGroup", parameters)
        group.mixed_instances_policy = policy  # moto forgets it
        self._mark(name)
        return answer

    def _mark(self, name: str) -> None:
        for instance_id in self.stand.account.instances(name):
            ec2_backends[DEFAULT_ACCOUNT_ID][REGION].get_instance(instance_id).lifecycle = "spot"

    def sizes(self, run: str) -> tuple[int, int]:
        """Desired capacities of the spot group and of its backup."""
        groups = self.stand.bench.groups()
        own = names.fleet_name(run, "c001", "workers")
        return groups[own]["DesiredCapacity"], groups[f"{own}.backup"]["DesiredCapacity"]

    def nodes(self, run: str) -> list[str]:
        own = names.fleet_name(run, "c001", "workers")
        return [one["InstanceId"] for name in (own, f"{own}.backup") for one in self.group(name)["Instances"]]

    def group(self, name: str) -> dict[str, Any]:
        group: dict[str, Any] = self.stand.bench.groups()[name]
        return group

    def settle(self, run: str, minutes: int = 0) -> tuple[int, int]:
        """Registers all nodes and checks the fleet, at once or after some minutes."""
        self.stand.account.clock.forward(minutes=minutes)
        self.stand.bench.roles |= dict.fromkeys(self.nodes(run), "workers")
        self.stand.bench.register(self.nodes(run))
        assert self.stand.keep(run) == "waiting"
        return self.sizes(run)


@pytest.fixture
def spot(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Spot:
    return Spot(stand, monkeypatch)


def lacking(spot: Spot, **how: Any) -> str:
    """A fleet whose spot group has lacked three of five nodes for five minutes; no check has seen the end of them."""

    def lack() -> str:
        run = spot.stand.launched(definition=on_spot(**how))
        spot.give(2)
        assert spot.settle(run) == (5, 0)
        spot.stand.account.clock.forward(minutes=5)
        return run

    return once(f"lacking {how}", lack, spot.stand.bench.holder)


def test_the_backup_comes_when_spot_lacks_nodes_and_goes_when_it_serves_again(spot: Spot) -> None:
    stand = spot.stand
    run = stand.launched(definition=on_spot(max_price=0.03))
    assert spot.prices == ["0.03"]
    assert spot.settle(run) == (5, 0)
    (role,) = stand.get_fleet(run)["fleet"]["roles"]
    assert (role["spot"], role["on_demand"], role["backup"], role["max_price"]) == (5, 0, True, 0.03)
    spot.give(2)
    assert spot.settle(run, minutes=2) == (5, 0), "Auto Scaling replaces them, if spot has any"
    assert spot.settle(run, minutes=4) == (5, 0)
    assert spot.settle(run, minutes=1) == (3, 3)
    assert spot.settle(run, minutes=1) == (3, 3)
    (role,) = stand.get_fleet(run)["fleet"]["roles"]
    assert (role["in_service"], role["ready"], role["spot"], role["on_demand"]) == (5, 5, 2, 3)
    bought = {node["id"]: node["purchase"] for node in stand.get_fleet(run)["nodes"]}
    assert sorted(bought.values()) == ["on-demand"] * 3 + ["spot"] * 2
    spot.give(99)
    smallest, history = 5, []
    for _ in range(12):
        history.append(spot.settle(run, minutes=3))
        smallest = min(smallest, len(spot.nodes(run)))
        assert len(spot.nodes(run)) <= 6
    assert smallest == 5
    assert list(dict.fromkeys(history)) == [(3, 3), (4, 2), (5, 1), (5, 0)]
    stand.tear_down(run)
    assert stand.bench.groups() == {}


def test_chaos_knows_the_backup_as_one_of_troops_groups(spot: Spot) -> None:
    run = spot.stand.launched(definition=on_spot())
    backup = spot.group(names.backup_name(run, "c001", "workers"))
    tags = {tag["Key"]: tag["Value"] for tag in backup["Tags"]}
    assert Group(backup["AutoScalingGroupName"], 0, tags=tags).is_own_fleet
    assert (backup["MaxSize"], backup["DesiredCapacity"]) == (0, 0)


def test_checks_are_more_frequent_while_the_backup_may_change(spot: Spot) -> None:
    run = spot.stand.launched(definition=on_spot())
    spot.settle(run)
    spot.stand.account.clock.forward(hours=1)
    assert spot.stand.step(run, "keep")["wait_seconds"] == 120
    spot.give(2)
    assert spot.stand.step(run, "keep")["wait_seconds"] == 60


def test_all_of_it_is_on_record_with_what_spot_has_saved(spot: Spot, market: Market) -> None:
    stand = spot.stand
    run = lacking(spot)
    assert spot.settle(run) == (3, 3)
    assert stand.keep(run) == "waiting"
    detail = stand.get_fleet(run)
    assert {one["purchase"]: one["nodes"] for one in detail["bought"]} == {"on-demand": 3, "spot": 2}
    cost = detail["cost_so_far"]
    (spot_line,) = [item for item in cost["items"] if item["what"] == "workers, c7g.large, spot"]
    listed = next(item["price"] for item in cost["items"] if item["what"] == "workers, c7g.large, on-demand")
    saved = spot_line["quantity"] * (listed - spot_line["price"])
    assert cost["on_demand"] - cost["amount"] == pytest.approx(saved, abs=1e-5)
    assert saved > 0
    stand.tear_down(run)
    ended = stand.get_fleet(run)
    assert ended["fleet"]["cost"]["on_demand"] > ended["fleet"]["cost"]["amount"]
    assert {one["purchase"]: one["nodes"] for one in ended["bought"]} == {"on-demand": 3, "spot": 2}
    groups = [one for one in ended["resources"] if one["kind"] == "auto-scaling-group"]
    assert len(groups) == 2
    assert all(one["gone_at"] for one in groups)


def test_cut_off_anywhere_the_next_check_completes_the_change(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    stand = spot.stand
    run = lacking(spot)
    for number in range(60):
        at = number if EXHAUSTIVE else 5 * number
        try:
            with calls(monkeypatch, cut_at(at, acted=number % 2 == 0)):
                stand.keep(run)
        except Cut:
            assert stand.keep(run) == "waiting"
        else:
            assert at > 10, "there are that many calls"
            break
        assert spot.sizes(run) == (3, 3), number
        spot.restore(run)
        spot.give(2)
        spot.settle(run)
        stand.account.clock.forward(minutes=5)
    stand.account.clock.forward(minutes=5)
    stand.tear_down(run)
    assert stand.bench.groups() == {}


def test_next_check_repeats_a_throttled_change(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lacking(spot)
    with calls(monkeypatch, refusing("UpdateAutoScalingGroup", "Throttling")), pytest.raises(ClientError):
        spot.stand.keep(run)
    assert spot.sizes(run) == (5, 0)
    assert spot.stand.keep(run) == "waiting"
    assert spot.sizes(run) == (3, 3)


def test_check_with_an_older_state_decides_nothing(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has seen the backup as not needed; meanwhile spot has taken nodes back, and another check knows."""
    run = lacking(spot)
    assert spot.settle(run) == (3, 3)
    spot.give(99)
    assert spot.settle(run, minutes=1) == (3, 3)
    assert spot.settle(run, minutes=1) == (3, 3)
    spot.stand.account.clock.forward(minutes=5)
    others: list[tuple[int, int]] = []

    def take_back(answer: Any) -> None:
        spot.give(0)
        assert spot.stand.keep(run) == "waiting"
        others.append(spot.sizes(run))

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", take_back, times=1)):
        assert spot.stand.keep(run) == "waiting"
    assert others[0] == spot.sizes(run) == (3, 3), "three nodes serve, and all of them stay"


def test_another_size_during_a_change_wins(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lacking(spot)
    statuses: list[int] = []

    def scale(answer: Any) -> None:
        statuses.append(spot.stand.scale(run, 2)[0])

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", scale, times=1)):
        spot.stand.keep(run)
    assert statuses == [200]
    assert spot.sizes(run) == (5, 0), "what was decided for the other size is not done"
    assert spot.settle(run) == (2, 0)


def test_nothing_is_launched_for_a_fleet_that_is_removed_meanwhile(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    run = lacking(spot)
    stopped: list[int] = []

    def stop(answer: Any) -> None:
        stopped.append(ask("DELETE", f"/fleets/{run}")[0])

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", stop, times=1)):
        spot.stand.keep(run)
    assert stopped == [202]
    assert spot.sizes(run) == (5, 0)
    assert spot.stand.keep(run) == "done"


def test_a_deleted_backup_group_ends_the_fleet(spot: Spot) -> None:
    run = lacking(spot)
    spot.stand.account.drop_group(names.backup_name(run, "c001", "workers"))
    assert spot.stand.keep(run) == "done"
    assert "the Auto Scaling group of the fleet workers was deleted" in spot.stand.step(run, "settle")["reason"]


def test_refusals_name_spot_and_backup_separately(spot: Spot) -> None:
    run = lacking(spot)
    spot.stand.refusals = ["There is no Spot capacity available"]
    assert spot.stand.get_fleet(run)["refusals"] == [f"workers on spot: {spot.stand.refusals[0]}"]


def test_the_nodes_that_exist_while_spot_returns_count_for_the_limits(spot: Spot) -> None:
    """Ten nodes are allowed: eight, and two that spot may have more."""
    status, body = spot.stand.ask_up(on_spot(count=9))
    assert status == 400
    assert "fleets have 11 nodes: must be at most 10 in all" in body["message"]
    run = spot.stand.launched(definition=on_spot())
    assert spot.stand.runs.reservations.read().nodes == {run: 6}
    status, body = spot.stand.scale(run, 9)
    assert (status, "count is 9: must be at most 8: the deployment's setting troop:max_nodes" in body["message"]) == (
        400,
        True,
    )
    assert spot.stand.scale(run, 8)[0] == 200
    assert spot.stand.runs.reservations.read().nodes == {run: 10}


def test_its_budget_must_pay_for_the_backup(spot: Spot, market: Market) -> None:
    """On spot for eight hours it costs less than two dollars."""
    answers = {}
    for budget in (2, 5):
        body = {"definition": {**on_spot(), "budget": budget}, "files": {"setup.sh": ""}}
        answers[budget] = ask("POST", "/fleets/estimate", body)[1]
    assert answers[2]["expected"] < 2 < answers[2]["most"]
    (problem,) = answers[2]["problems"]
    assert "at least what it is expected to cost if its backups run on demand, $" in problem["problem"]
    assert answers[5]["problems"] == []
    run = spot.stand.up(definition={**on_spot(), "budget": 4})
    assert "count is 8: must be at most" in spot.stand.scale(run, 8)[1]["message"]


def test_a_maximum_price_is_compared_with_those_of_today(spot: Spot, market: Market) -> None:
    def estimate(price: float) -> Any:
        return ask("POST", "/fleets/estimate", {"definition": on_spot(max_price=price), "files": {"setup.sh": ""}})[1]

    (problem,) = estimate(3)["problems"]
    assert problem["where"] == "fleets.workers.max_price"
    assert "must be at most 0.0" in problem["problem"]
    assert "the price of c7g.large on demand, or left out" in problem["problem"]
    low = estimate(0.001)
    assert low["problems"] == []
    assert [one for one in low["warnings"] if one.startswith("workers gets no spot nodes now: its max_price of 0.001")]
    assert estimate(0.05)["problems"] == []


def test_without_its_price_on_demand_a_backup_is_refused(spot: Spot, market: Market) -> None:
    definition = {**on_spot(instance_type="m7g.large"), "prices": {"m7g.large": {"spot": 0.05}}}
    del market.products["m7g.large"]
    answer = ask("POST", "/fleets/estimate", {"definition": definition, "files": {"setup.sh": ""}})[1]
    assert "prices of m7g.large, on-demand are unknown" in str(answer["problems"]).replace("of m7g", "prices of m7g")


def test_fleets_list_how_their_nodes_were_bought(spot: Spot) -> None:
    run = lacking(spot)
    spot.settle(run)
    spot.settle(run)
    (listed,) = get("/fleets")["fleets"]
    assert (listed["roles"][0]["spot"], listed["roles"][0]["on_demand"]) == (2, 3)
    assert {r.purchase for r in spot.stand.runs.resources.get_all(run) if r.kind is Kind.INSTANCE} == {
        "spot",
        "on-demand",
    }
