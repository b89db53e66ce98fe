"""Fleets that grow and shrink: limits, two at once, lost calls, and a launch cut off anywhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tests.unit.account.account import EXHAUSTIVE, Cut, before, calls, cut_at, raising
from tests.unit.account.asking import BERT, ask
from tests.unit.account.fixtures import Log
from tests.unit.account.standing import FILE, TWO, Stand
from troop.bench.records.record import RunStatus
from troop.shared import moments
from troop.shared.tags import PROTECTED_TAG


@pytest.mark.parametrize("count", [5, 1, 0])
def test_another_size_is_on_record_and_carried_out_at_once(stand: Stand, count: int) -> None:
    run = stand.ready()
    status, fleet = stand.scale(run, count, BERT)
    assert (status, fleet["roles"][0]["desired"], fleet["scaled_by"]) == (200, count, BERT)
    assert stand.woken == [{"step": "keep", "run": run}]
    assert stand.size(run) == (2, 2, 2), "the API itself launches nothing"
    assert stand.keep(run) == "waiting"
    assert stand.size(run) == (count, count, count)
    stand.register(run)
    assert stand.keep(run) == "waiting"
    assert stand.on_record(run, gone=False) == set(stand.nodes(run))
    assert len(stand.on_record(run, gone=True)) == max(0, 2 - count)
    with_ready = {"desired": count, "in_service": count, "ready": count, "on_demand": count} if count else {}
    assert stand.roles(run) == {"workers": with_ready}


@pytest.mark.parametrize("why", ["protected group", "protected node", "attached"])
def test_a_group_that_must_stay_keeps_its_size(stand: Stand, why: str, log: Log) -> None:
    """Auto Scaling chooses which instances go: it could be any of them."""
    run = stand.ready()
    name, ec2 = stand.group(run)["AutoScalingGroupName"], stand.bench.ec2
    tag = {"Key": PROTECTED_TAG, "Value": ""}
    if why == "protected group":
        group = {"ResourceId": name, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": False}
        stand.account.autoscaling.create_or_update_tags(Tags=[tag | group])
    elif why == "protected node":
        ec2.create_tags(Resources=stand.nodes(run)[:1], Tags=[tag])
    else:
        started = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
        stand.account.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=9)
        stand.account.autoscaling.attach_instances(AutoScalingGroupName=name, InstanceIds=[started])
    before = stand.size(run)
    stand.scale(run, 1)
    assert stand.keep(run) == "waiting"
    assert stand.size(run) == before
    (line,) = [one for one in log() if one["message"] == "withheld"]
    assert name in line["resizes"][0]


def test_the_roles_of_a_fleet_are_scaled_apart(stand: Stand) -> None:
    run = stand.launched(definition=TWO)
    assert (
        stand.scale(run, 3)[1]["problems"][0]["problem"]
        == "is missing: must be one of queues, workers, the fleet's roles"
    )
    assert stand.scale(run, 3, role="drivers")[1]["problems"][0]["where"] == "body.role"
    assert stand.scale(run, 3, role="queues")[0] == 200
    stand.keep(run)
    assert (stand.size(run, "queues"), stand.size(run, "workers")) == ((3, 3, 3), (1, 1, 1))


def test_no_more_than_the_deployment_allows(stand: Stand) -> None:
    run = stand.launched(definition=TWO)
    status, body = stand.scale(run, 10, role="queues")
    assert status == 400
    assert body["problems"][0]["where"] == "body.count"
    assert "at most 9, beside 1 of other roles: the deployment's setting troop:max_nodes is 10" in body["message"]
    assert stand.woken == []
    assert stand.scale(run, 9, role="queues")[0] == 200


@pytest.mark.parametrize("body", [{}, {"count": -1}, {"count": 1.5}, {"count": "2"}, {"count": 2, "size": 2}])
def test_sizes_that_are_none(stand: Stand, body: dict[str, Any]) -> None:
    assert ask("PATCH", f"/fleets/{stand.up()}", body)[0] == 400


def test_two_at_once_do_not_pass_the_limit_together(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one finds that what it has read is not so any more, and is judged anew."""
    run = stand.launched(definition=TWO)
    other: list[int] = []

    def grow() -> None:
        other.append(stand.scale(run, 6, role="workers")[0])

    with calls(monkeypatch, before("TransactWriteItems", grow)):
        status, body = stand.scale(run, 6, role="queues")
    assert (other[0], status) == (200, 400)
    assert "beside 6 of other roles" in body["message"]
    assert stand.runs.get(run).standing.desired == {"queues": 1, "workers": 6}


def test_a_size_that_others_keep_changing(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.ready()
    seen: dict[str, Any] = {"inside": False, "size": 2}

    def intercept(at: int, operation: str, call: Any) -> Any:
        if operation == "TransactWriteItems" and not seen["inside"]:
            seen["inside"] = True
            seen["size"] = 3 if seen["size"] != 3 else 4
            assert stand.scale(run, seen["size"])[0] == 200
            seen["inside"] = False
        return call()

    with calls(monkeypatch, intercept):
        status, body = stand.scale(run, 5)
    assert status == 409
    assert "at the same time" in body["message"]


def test_the_later_word_holds(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for while a look is under way is what that look carries out."""
    run = stand.ready()
    stand.scale(run, 5)
    statuses: list[int] = []
    with calls(monkeypatch, before("DescribeAutoScalingGroups", lambda: statuses.append(stand.scale(run, 1)[0]))):
        stand.keep(run)
    assert statuses == [200]
    assert stand.size(run) == (1, 1, 1)


def test_next_check_makes_up_for_a_lost_call(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.ready()
    with calls(monkeypatch, raising("Invoke", EndpointConnectionError(endpoint_url="https://lambda"))):
        assert stand.scale(run, 4)[0] == 200
    assert stand.woken == []
    stand.keep(run)
    assert stand.size(run) == (4, 4, 4)


def test_size_from_before_the_launch_is_applied_after_it(stand: Stand) -> None:
    run = stand.up()
    assert stand.scale(run, 4)[0] == 200
    assert stand.keep(run) == "waiting", "there is nothing yet"
    stand.bench.launch()
    assert stand.size(run) == (2, 2, 2)
    stand.keep(run)
    assert stand.size(run) == (4, 4, 4)


def test_a_closed_fleet_takes_no_other_size(stand: Stand) -> None:
    run = stand.ready()
    assert ask("DELETE", f"/fleets/{run}")[0] == 202
    status, body = stand.scale(run, 5)
    assert (status, body["message"]) == (409, f"the fleet {run} is being removed: start another one")
    stand.tear_down(run)
    assert stand.scale(run, 5)[1]["message"] == f"the fleet {run} has ended: start another one"
    assert stand.woken == []


def test_a_fleet_that_is_closed_while_it_grows_launches_nothing(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed after the look and before the right to launch is asked for."""
    run = stand.ready()
    stand.scale(run, 5)

    def close() -> None:
        stand.runs.close(run, RunStatus.STOPPED, "enough", stand.account.clock())

    with calls(monkeypatch, before("TransactWriteItems", close)) as operations:
        assert stand.keep(run) == "done"
    assert "UpdateAutoScalingGroup" not in operations
    assert stand.size(run) == (2, 2, 2)


def test_teardown_waits_for_a_fleet_that_is_growing(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives a group another size has the right to launch: until it is given back, no teardown is over."""
    run = stand.ready()
    stand.scale(run, 5)
    held: list[Any] = []
    with calls(monkeypatch, before("UpdateAutoScalingGroup", lambda: held.extend(stand.runs.launches.get_all(run)))):
        stand.keep(run)
    assert [(launch.cell, launch.until - stand.account.clock()) for launch in held] == [
        ("c001", timedelta(seconds=130))
    ]
    assert stand.runs.launches.get_all(run) == []


def test_next_check_completes_one_that_was_cut_at_any_call(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fleet, each look cut off at one call later than the one before; then one that is not.

    Each call is cut once; with ``TROOP_EXHAUSTIVE`` twice, with both sizes.
    """
    run = stand.ready()
    sizes = [5, 1]
    for number in range(40):
        size, at = sizes[number % 2], number // (2 if EXHAUSTIVE else 1)
        stand.scale(run, size)
        try:
            with calls(monkeypatch, cut_at(at, acted=number % 4 < 2)):
                stand.keep(run)
        except Cut:
            assert stand.keep(run) == "waiting"
        else:
            assert at > 10, "there are that many calls"
            break
        assert stand.keep(run) == "waiting"
        assert stand.size(run) == (size, size, size)
        assert stand.on_record(run, gone=False) == set(stand.nodes(run)), number
    stand.account.clock.forward(minutes=5)  # the rights to launch of those that were cut off are over
    stand.tear_down(run)
    assert stand.on_record(run, gone=False) == set()
    assert stand.bench.groups() == {}


@pytest.mark.parametrize("settings", [{"max_nodes_total": 6}], indirect=True)
def test_a_fleet_holds_its_nodes_of_those_of_all_fleets_together(stand: Stand) -> None:
    first, second = stand.up(key="first"), stand.up(key="second")
    status, body = stand.scale(first, 5)
    assert status == 400
    assert (
        f"count brings 5 nodes: must be at most 4 beside the 2 of other open runs and fleets: {second} holds 2"
        in body["message"]
    )
    assert "troop:max_nodes_total is 6" in body["message"]
    assert stand.scale(first, 4)[0] == 200
    assert stand.scale(second, 3)[0] == 400
    assert stand.scale(first, 1)[0] == 200
    assert stand.scale(second, 5)[0] == 200
    stand.tear_down(second)
    assert stand.runs.reservations.read().nodes == {first: 1}


@pytest.mark.parametrize("settings", [{"max_nodes_total": 12, "max_run_cost": 20}], indirect=True)
def test_one_refusal_names_all_limits(stand: Stand) -> None:
    """Who raises one limit should not meet the next one only then."""
    first, second = stand.up(key="first"), stand.up(key="second")
    status, body = stand.scale(first, 200)
    assert (status, [one["where"] for one in body["problems"]]) == (400, ["body.count"] * 3)
    for setting in ("max_nodes is 10", "max_run_cost is $20.00", "max_nodes_total is 12"):
        assert f"troop:{setting}" in body["message"]
    assert f"beside the 2 of other open runs and fleets: {second} holds 2" in body["message"]
    large = {**FILE, "fleets": {"workers": {"count": 200, "instance_type": "c7g.large"}}}
    status, body = stand.ask_up(definition=large, key="third")
    assert status == 400
    for setting in ("max_nodes is 10", "max_run_cost is $20.00", "max_nodes_total is 12"):
        assert f"troop:{setting}" in body["message"]
    beside = {**FILE, "fleets": {"workers": {"count": 11, "instance_type": "c7g.large"}}}
    status, body = stand.ask_up(definition=beside, key="fourth")
    assert status == 400
    assert "troop:max_nodes is 10" in body["message"]
    assert "at most 8 beside the 4 of other open runs and fleets" in body["message"]


@pytest.mark.parametrize("settings", [{"results_retention_days": 8}], indirect=True)
def test_a_fleet_that_costs_nothing_ends_before_its_objects_do(stand: Stand) -> None:
    run = stand.ready()
    assert stand.scale(run, 0)[0] == 200
    start = stand.runs.get(run).at

    def extend(end: datetime) -> tuple[int, str]:
        status, body = ask("PATCH", f"/fleets/{run}", {"expires_at": moments.iso(end)})
        return status, body.get("message", "")

    status, message = extend(datetime(9999, 12, 31, tzinfo=UTC))
    assert (status, "troop:results_retention_days is 8" in message) == (400, True)
    assert extend(start + timedelta(days=7, seconds=1))[0] == 400
    assert extend(start + timedelta(days=7))[0] == 200
