"""Standing fleets: asked for, launched, grown and shrunk, replaced, told of, and removed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from handlers.fleet import UnknownFleetStepError
from tests.unit.edge.account import SETTINGS, Account, Cut, calls, cut_at
from tests.unit.edge.asking import ANNA, ask, get
from tests.unit.edge.market import Market
from tests.unit.edge.standing import FILE, MACHINES, TWO, Stand, deploy_fleets
from troop.api import fitting
from troop.api.fleet_models import ToldFleetOut
from troop.aws.clients import client
from troop.bench import names
from troop.bench.definition import from_document
from troop.bench.record import CellStatus, RunStatus
from troop.bench.standing import LONGEST_WAIT
from troop.errors import RunClosedError

BERT = "arn:aws:iam::123456789012:user/bert"


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    return copy.deepcopy(SETTINGS) | {"max_nodes": 10, "allowed_buckets": ["my-data"]} | getattr(request, "param", {})


@pytest.fixture
def stand(account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stand]:
    with deploy_fleets(account, monkeypatch, tmp_path) as made:
        yield made


# Starting


def test_a_fleet_is_on_record_when_its_workflow_starts(stand: Stand) -> None:
    status, fleet = stand.ask_up(set={"fleets.workers.count": 3})
    assert status == 202
    assert (fleet["name"], fleet["status"], fleet["expires_at"]) == ("workers", "ADMITTED", "2026-11-21T06:46:00.000Z")
    run = fleet["fleet"]
    assert stand.started("fleet") == {run: {"run": run}}
    assert stand.started("benchmark") == {}
    assert fleet["execution"] == f"{MACHINES.replace('stateMachine', 'execution')}fleet:{run}"
    definition = from_document(stand.bench.get(names.definition_key(run)))
    assert definition.standing
    assert [(p.name, p.script, p.roles, p.timeout) for p in definition.phases] == [
        ("setup", "setup.sh", ("workers",), 600)
    ]
    assert fleet["ready_within"] == 600 + 600 + 300, "to boot, to set up, and to launch"
    told = stand.told(run)
    assert told["fleet"] == fleet
    assert (told["nodes"], told["resources"]) == ([], [])
    assert stand.ask_up(set={"fleets.workers.count": 3})[0] == 200, "the same key is the same fleet"
    assert stand.ask_up()[0] == 409


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"fleets": {"workers": {"count": 11, "instance_type": "c7g.large"}}}, "fleets", "at most 10 in all"),
    ({"fleets": {"workers": {"count": 1, "instance_type": "c7g.huge"}}}, "fleets.workers.instance_type", "that this"),
    ({"setup": "other.sh"}, "setup", "a file beside the fleet's: setup.sh"),
    ({"expires_after": "15m"}, "expires_after", "at least 25m"),
    ({"expires_after": "25h"}, "expires_after", "a duration from 10m to 24h"),
    ({"phases": []}, "phases", "is not known: must be one of"),
    ({"artifacts": [{"name": "d", "source": "./d", "sha256": "0f" * 32}]}, "artifacts.0.sha256", "uploaded first"),
]


@pytest.mark.parametrize(("changes", "where", "words"), REFUSED, ids=[where for _, where, _ in REFUSED])
def test_what_is_wrong_is_refused_before_anything_is_there(
    stand: Stand, changes: dict[str, Any], where: str, words: str
) -> None:
    status, body = stand.ask_up({**FILE, **changes})
    assert status == 400
    assert [
        p["problem"] for p in body["problems"] if p["where"] == f"body.definition.{where}" and words in p["problem"]
    ]
    assert get("/fleets")["fleets"] == []


def test_buckets_that_the_deployment_does_not_allow(stand: Stand) -> None:
    assert stand.ask_up({**FILE, "buckets": ["other"]})[0] == 403


def test_fleets_and_runs_of_benchmarks_are_told_apart(stand: Stand) -> None:
    stand.bench.admit(key="a-benchmark")
    run, fleet = stand.bench.run, stand.up(key="a-fleet")
    assert [one["fleet"] for one in get("/fleets")["fleets"]] == [fleet]
    assert [one["run"] for one in get("/benchmarks")["runs"]] == [run]
    for method, path in [("GET", f"/benchmarks/{fleet}"), ("DELETE", f"/benchmarks/{fleet}")]:
        assert ask(method, path)[0] == 404
    for method in ("GET", "DELETE", "PATCH"):
        assert ask(method, f"/fleets/{run}", {"count": 1} if method == "PATCH" else None)[0] == 404


# Money


def test_a_fleet_without_a_price_or_beyond_its_budget_is_refused(stand: Stand, market: Market) -> None:
    definition = {**FILE, "fleets": {"workers": {"count": 2, "instance_type": "m7g.large"}}}
    del market.products["m7g.large"]
    status, body = stand.ask_up(definition)
    assert (status, "prices of m7g.large, on-demand cannot be had" in body["message"]) == (400, True)
    assert stand.ask_up(definition, set={"accept_unknown_prices": True}, key="accepted")[0] == 202
    by_hand = {**definition, "prices": {"m7g.large": 1}}
    status, body = stand.ask_up({**by_hand, "budget": 16}, key="dear")
    assert (status, "budget is 16: must be at least what it is expected to cost, $16." in body["message"]) == (
        400,
        True,
    )
    status, told = stand.ask_up({**by_hand, "budget": 17}, key="fits")
    assert (status, told["estimate"]["budget"]) == (202, 17)


def test_an_estimate_of_a_fleet_stores_and_starts_nothing(stand: Stand) -> None:
    body = {"definition": {**FILE, "budget": 0.01}, "files": {"setup.sh": ""}}
    status, told = ask("POST", "/fleets/estimate", body)
    assert status == 200
    (cell,) = told["cells"]
    assert (cell["seconds"], cell["items"][0]["what"]) == (8 * 3600, "workers, c7g.large, on-demand")
    assert [problem["loc"] for problem in told["problems"]] == [["budget"]]
    assert get("/fleets")["fleets"] == []
    assert (
        ask("POST", "/fleets/estimate", {"definition": {**FILE, "buckets": ["other"]}, "files": {"setup.sh": ""}})[0]
        == 403
    )
    assert ask("POST", "/fleets/estimate", {"definition": {**FILE, "phases": []}})[0] == 400


def test_what_waits_for_spot_needs_no_price_on_demand(stand: Stand) -> None:
    workers = {"count": 2, "instance_type": "m7g.large", "purchase": "spot"}
    definition = {**FILE, "fleets": {"workers": workers}, "prices": {"m7g.large": {"spot": 0.5}}}
    told = ask("POST", "/fleets/estimate", {"definition": definition, "files": {"setup.sh": ""}})[1]
    assert (told["problems"], told["warnings"]) == ([], [])
    assert 8 < told["expected"] < told["most"] < 9


def test_a_fleet_grows_only_within_its_budget(stand: Stand) -> None:
    run = stand.up(definition={**FILE, "prices": {"c7g.large": 1}, "budget": 25})
    status, body = ask("PATCH", f"/fleets/{run}", {"count": 4})
    assert status == 400
    assert "count is 4: must be at most 3: with so many it is expected to cost $32." in body["message"]
    assert "its budget is $25.00" in body["message"]
    assert ask("PATCH", f"/fleets/{run}", {"count": 3})[0] == 200
    stand.account.clock.forward(hours=4)
    assert ask("PATCH", f"/fleets/{run}", {"count": 6})[0] == 200, "half of the time is left"
    assert ask("PATCH", f"/fleets/{run}", {"count": 7})[0] == 400
    assert ask("PATCH", f"/fleets/{run}", {"count": 1})[0] == 200, "smaller it may always be"


# Standing


def test_it_stands_once_all_nodes_are_ready(stand: Stand) -> None:
    run = stand.launched()
    assert stand.runs.get(run).status is RunStatus.RUNNING
    assert stand.step(run, "keep") == {
        "run": run, "cell": "c001", "state": "waiting", "wait_seconds": 5, "status": "", "reason": "",
    }  # fmt: skip
    assert stand.roles(run) == {"workers": {"desired": 2, "in_service": 2}}
    assert names.STANDING not in stand.bench.cell().phases
    stand.register(run)
    stand.account.clock.forward(minutes=1)
    assert stand.step(run, "keep")["wait_seconds"] == 20
    assert stand.bench.cell().phase == names.STANDING
    assert stand.roles(run) == {"workers": {"desired": 2, "in_service": 2, "ready": 2}}
    assert {node["id"]: (node["place"], node["ready"]) for node in stand.told(run)["nodes"]} == dict.fromkeys(
        stand.nodes(run), ("in-service", True)
    )
    assert stand.on_record(run, gone=False) == set(stand.nodes(run))
    (listed,) = get("/fleets")["fleets"]
    assert (listed["roles"][0]["ready"], listed["seen_at"]) == (2, "2026-11-20T22:47:00.000Z")
    stand.account.clock.forward(hours=2)
    assert stand.told(run)["fleet"]["seen_at"] == "2026-11-21T00:47:00.000Z", "it was looked at just now"
    assert stand.step(run, "keep")["wait_seconds"] == LONGEST_WAIT


def test_what_fails_is_replaced(stand: Stand) -> None:
    """Auto Scaling is left free to do so, unlike in a benchmark's fleets."""
    run = stand.ready()
    assert [p["ProcessName"] for p in stand.group(run)["SuspendedProcesses"]] == ["AZRebalance"]
    before = set(stand.nodes(run))
    lost = min(before)
    client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=lost, ShouldDecrementDesiredCapacity=False
    )
    assert stand.keep(run) == "waiting"
    assert stand.on_record(run, gone=True) == {lost}
    assert stand.on_record(run, gone=False) == set(stand.nodes(run)) != before


def test_a_node_that_cannot_set_itself_up_is_told_of_and_stays(stand: Stand) -> None:
    run = stand.launched()
    good, bad = sorted(stand.nodes(run))
    stand.bench.roles |= {good: "workers", bad: "workers"}
    stand.bench.register([good])
    stand.bench.cannot_start(bad, "setup.sh ended with exit code 3")
    assert stand.keep(run) == "waiting"
    assert stand.roles(run) == {"workers": {"desired": 2, "in_service": 2, "ready": 1, "failed": 1}}
    problems = {node["id"]: node["problem"] for node in stand.told(run)["nodes"]}
    assert problems == {good: None, bad: "setup.sh ended with exit code 3"}


def test_of_very_much_as_much_is_told_as_fits(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.launched()
    good, bad = sorted(stand.nodes(run))
    stand.bench.roles |= {good: "workers", bad: "workers"}
    stand.bench.register([good])
    stand.keep(run)
    whole = stand.told(run)
    assert (len(whole["nodes"]), whole["nodes_left_out"]) == (2, 0)
    assert whole["resources_created"] == whole["resources_left"] == len(whole["resources"]) > 3
    monkeypatch.setattr(fitting, "MOST_RESOURCES", 3)
    first = stand.told(run)
    assert first["resources"] == whole["resources"][:3]
    assert first["resources_created"] == whole["resources_created"]
    gone = whole["resources"][0]
    stand.runs.resources.gone(
        [r for r in stand.runs.resources.of(run) if r.name == gone["name"]], stand.account.clock()
    )
    later = stand.told(run)
    assert later["resources"] == whole["resources"][1:4], "what is gone can wait"
    assert later["resources_left"] == whole["resources_left"] - 1
    with_one = ToldFleetOut.model_validate({**later, "nodes": later["nodes"][:1]})
    monkeypatch.setattr(fitting, "LARGEST", fitting.size(with_one) + 20)
    short = stand.told(run)
    assert ([node["id"] for node in short["nodes"]], short["nodes_left_out"]) == ([bad], 1)


def test_why_nodes_are_missing_is_told(stand: Stand) -> None:
    run = stand.ready()
    stand.refusals = ["You have requested more vCPU capacity than your current vCPU limit"]
    assert stand.told(run)["refusals"] == [], "none is missing"
    assert stand.scale(run, 5)[0] == 200
    assert stand.told(run)["refusals"] == [f"workers: {stand.refusals[0]}"]


def test_a_group_that_somebody_has_deleted_ends_the_fleet(stand: Stand) -> None:
    run = stand.ready()
    stand.account.drop_group(names.fleet_name(run, "c001", "workers"))
    assert stand.keep(run) == "waiting", "what was just made may not be seen yet"
    stand.account.clock.forward(minutes=1)
    assert stand.keep(run) == "done"
    settled = stand.step(run, "settle", error="", cause="")
    assert (settled["status"], settled["reason"]) == (
        "FAILED",
        "somebody has deleted the Auto Scaling group of the fleet workers",
    )


# Growing and shrinking


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
    with_ready = {"desired": count, "in_service": count, "ready": count} if count else {}
    assert stand.roles(run) == {"workers": with_ready}


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

    def intercept(at: int, operation: str, call: Any) -> Any:
        if operation == "UpdateItem" and not other:
            other.append(0)
            other.append(stand.scale(run, 6, role="workers")[0])
        return call()

    with calls(monkeypatch, intercept):
        status, body = stand.scale(run, 6, role="queues")
    assert (other[1], status) == (200, 400)
    assert "beside 6 of other roles" in body["message"]
    assert stand.runs.get(run).standing.desired == {"queues": 1, "workers": 6}


def test_a_size_that_others_keep_changing(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.ready()
    seen: dict[str, Any] = {"inside": False, "size": 2}

    def intercept(at: int, operation: str, call: Any) -> Any:
        if operation == "UpdateItem" and not seen["inside"]:
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
    asked: list[int] = []

    def intercept(at: int, operation: str, call: Any) -> Any:
        if operation == "DescribeAutoScalingGroups" and not asked:
            asked.append(stand.scale(run, 1)[0])
        return call()

    with calls(monkeypatch, intercept):
        stand.keep(run)
    assert asked == [200]
    assert stand.size(run) == (1, 1, 1)


def test_a_lost_call_is_made_up_for_by_the_next_look(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.ready()

    def intercept(at: int, operation: str, call: Any) -> Any:
        if operation == "Invoke":
            raise EndpointConnectionError(endpoint_url="https://lambda")
        return call()

    with calls(monkeypatch, intercept):
        assert stand.scale(run, 4)[0] == 200
    assert stand.woken == []
    stand.keep(run)
    assert stand.size(run) == (4, 4, 4)


def test_a_size_that_is_asked_for_before_the_launch(stand: Stand) -> None:
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

    def intercept(at: int, operation: str, call: Any) -> Any:
        if operation == "TransactWriteItems":
            stand.runs.close(run, RunStatus.STOPPED, "enough", stand.account.clock())
        return call()

    with calls(monkeypatch, intercept) as made:
        assert stand.keep(run) == "done"
    assert "UpdateAutoScalingGroup" not in made
    assert stand.size(run) == (2, 2, 2)


def test_teardown_waits_for_a_fleet_that_is_growing(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives a group another size has the right to launch: until it is given back, no teardown is over."""
    run = stand.ready()
    stand.scale(run, 5)
    held: list[Any] = []

    def intercept(at: int, operation: str, call: Any) -> Any:
        if operation == "UpdateAutoScalingGroup":
            held.extend(stand.runs.launches.of(run))
        return call()

    with calls(monkeypatch, intercept):
        stand.keep(run)
    assert [(launch.cell, launch.until - stand.account.clock()) for launch in held] == [
        ("c001", timedelta(seconds=130))
    ]
    assert stand.runs.launches.of(run) == []


def test_cut_off_anywhere_the_next_look_makes_it_good(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fleet, each look cut off at one call later than the one before; then one that is not."""
    run = stand.ready()
    sizes = [5, 1]
    for number in range(40):
        wanted = sizes[number % 2]
        stand.scale(run, wanted)
        try:
            with calls(monkeypatch, cut_at(number // 2, acted=number % 4 < 2)):
                stand.keep(run)
        except Cut:
            assert stand.keep(run) == "waiting"
        else:
            assert number > 20, "there are that many calls"
            break
        assert stand.keep(run) == "waiting"
        assert stand.size(run) == (wanted, wanted, wanted)
        assert stand.on_record(run, gone=False) == set(stand.nodes(run)), number
    stand.account.clock.forward(minutes=5)  # the rights to launch of those that were cut off are over
    stand.tear_down(run)
    assert stand.on_record(run, gone=False) == set()
    assert stand.bench.groups() == {}


# The end


def test_a_removed_fleet_is_closed_its_workflow_ended_and_its_teardown_started(stand: Stand) -> None:
    run = stand.ready()
    status, fleet = ask("DELETE", f"/fleets/{run}", caller=BERT)
    assert (status, fleet["status"], fleet["reason"]) == (202, "STOPPING", f"stopped by {BERT}")
    arn = f"{MACHINES.replace('stateMachine', 'execution')}fleet:{run}"
    assert client("stepfunctions").describe_execution(executionArn=arn)["status"] == "ABORTED"
    (work,) = stand.started("teardown").values()
    assert work == {"run": run, "status": "STOPPED", "reason": f"stopped by {BERT}"}
    stand.tear_down(run)
    told = stand.told(run)
    assert (told["fleet"]["status"], told["nodes"], told["refusals"]) == ("STOPPED", [], [])
    assert told["fleet"]["roles"][0]["in_service"] == 0
    assert all(resource["gone_at"] for resource in told["resources"])
    assert stand.bench.cell().status is CellStatus.STOPPED
    assert ask("DELETE", f"/fleets/{run}")[0] == 200


def test_its_money_is_told(stand: Stand) -> None:
    run = stand.ready()
    (listed,) = get("/fleets")["fleets"]
    told = stand.told(run)["fleet"]
    assert told["estimate"] == listed["estimate"]
    assert (told["estimate"]["expected"] > 0, told["cost"]) == (True, None)
    stand.account.clock.forward(hours=2)
    stand.tear_down(run)
    cost = stand.told(run)["fleet"]["cost"]
    assert 0 < cost["amount"] < told["estimate"]["expected"]
    assert "c7g.large" in str(cost["items"])


def test_it_ends_by_itself_when_its_time_is_over(stand: Stand) -> None:
    run = stand.ready()
    stand.account.clock.forward(hours=7, minutes=59, seconds=30)
    assert stand.step(run, "keep")["wait_seconds"] == 31
    stand.account.clock.forward(seconds=30)
    assert stand.scale(run, 5)[0] == 409
    assert stand.keep(run) == "done"
    settled = stand.step(run, "settle", error="", cause="")
    assert (settled["status"], settled["reason"]) == ("STOPPED", "its time was over: expires_after")


def test_a_launch_that_fails_is_the_reason(stand: Stand) -> None:
    run = stand.up()
    settled = stand.step(run, "settle", error="LaunchImpossibleError", cause='{"errorMessage": "no zones"}')
    assert (settled["status"], settled["reason"]) == ("FAILED", "LaunchImpossibleError: no zones")


def test_a_fleet_that_was_closed_before_it_began(stand: Stand) -> None:
    run = stand.up()
    stand.runs.close(run, RunStatus.STOPPED, f"stopped by {ANNA}", stand.account.clock())
    with pytest.raises(RunClosedError):
        stand.step(run, "open", execution="arn")
    assert stand.step(run, "settle", error="RunClosedError", cause="")["status"] == "STOPPED"


def test_a_refusal_of_aws_is_the_steps_failure(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.ready()
    stand.scale(run, 5)

    def intercept(at: int, operation: str, call: Any) -> Any:
        if operation == "UpdateAutoScalingGroup":
            raise ClientError({"Error": {"Code": "ScalingActivityInProgress", "Message": "wait"}}, operation)
        return call()

    with calls(monkeypatch, intercept), pytest.raises(ClientError):
        stand.keep(run)
    assert stand.runs.launches.of(run) == [], "the right is given back"
    assert stand.keep(run) == "waiting"


def test_a_step_that_there_is_not(stand: Stand) -> None:
    with pytest.raises(UnknownFleetStepError):
        stand.step("r", "wait")


@pytest.mark.parametrize("settings", [{"benchmarks": False}], indirect=True)
def test_a_deployment_without_this_half(account: Account) -> None:
    assert ask("GET", "/fleets")[0] == 403


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
def test_a_fleet_that_there_is_not(stand: Stand, method: str) -> None:
    status, body = ask(method, "/fleets/20261120-224600-00000000", {"count": 1} if method == "PATCH" else None)
    assert status == 404
    assert "GET /fleets lists" in body["message"]
