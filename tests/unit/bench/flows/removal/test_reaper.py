"""The reaper: what it hears of, what it finds, what it leaves alone."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from handlers.reaper import ReapingIncompleteError
from tests.unit.account.account import before, calls, refusing
from tests.unit.bench.flows.removal.tables import NOON, OTHER, RUN
from tests.unit.bench.flows.removal.test_teardown import all_gone
from tests.unit.bench.flows.removal.world import ENVIRONMENT, PREFIX, World
from tests.unit.shared.aws.test_metrics import values_of, written
from troop.bench.definition import names
from troop.bench.flows.reaper import Reaped
from troop.bench.records.record import RunStatus
from troop.bench.removal.reaping import CELL_TIME, PATIENCE
from troop.bench.wiring import removal

BENCHMARK, TEARDOWN = ENVIRONMENT["TROOP_BENCHMARK_MACHINE"], ENVIRONMENT["TROOP_TEARDOWN_MACHINE"]
FLEET = ENVIRONMENT["TROOP_FLEET_MACHINE"]
EXPIRED = NOON + timedelta(hours=2, minutes=16)


def event(machine: str, name: str, status: str, work: dict[str, Any] | None) -> dict[str, Any]:
    """As EventBridge delivers it."""
    return {
        "version": "0",
        "id": "315c1398-40ff-a850-213b-158f73e60175",
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": "123456789012",
        "time": "2036-11-20T12:00:00Z",
        "region": "eu-central-1",
        "resources": [f"{machine.replace(':stateMachine:', ':execution:')}:{name}"],
        "detail": {
            "executionArn": f"{machine.replace(':stateMachine:', ':execution:')}:{name}",
            "stateMachineArn": machine,
            "name": name,
            "status": status,
            "startDate": 2110795200000,
            "stopDate": 2110795300000,
            "input": json.dumps(work) if work is not None else None,
            "inputDetails": {"included": work is not None},
            "output": None,
            "outputDetails": None,
        },
    }


def sweep(world: World) -> Reaped:
    """A round of the reaper,."""
    return removal.reaper().sweep()


def test_a_failed_run_is_torn_down_at_once(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.launched()
    heard = event(BENCHMARK, RUN, "ABORTED", {"run": RUN})
    assert world.reap(heard) == {"started": [f"{RUN}-1"], "removed": []}
    world.reap(heard)  # events come twice at times
    assert list(world.teardowns()) == [f"{RUN}-1"]
    world.tear_down(**world.teardowns()[f"{RUN}-1"])
    all_gone(world)
    assert world.runs.get(RUN).status is RunStatus.FAILED
    assert "was stopped" in str(world.runs.get(RUN).reason)
    assert values_of(capsys, "ReaperFinds") == [], "that is the usual way, and no alarm"


@pytest.mark.parametrize(
    "heard",
    [
        event(BENCHMARK, RUN, "SUCCEEDED", {"run": RUN}),
        event(BENCHMARK, OTHER, "FAILED", {"run": OTHER}),
        event(BENCHMARK, "by-hand", "FAILED", {"run": RUN}),
        event(f"{BENCHMARK}/Cells", "0b2d4f6a-1111-2222-3333-444455556666", "FAILED", {"run": RUN, "cell": "c001"}),
        event(f"{PREFIX}:stateMachine:chaos", RUN, "FAILED", {"run": RUN}),
        event(TEARDOWN, "x", "FAILED", {"run": RUN, "cell": "c001"}),
        event(TEARDOWN, f"{RUN}-3", "FAILED", {"run": RUN}),
        event(TEARDOWN, "x", "FAILED", None),
        event(TEARDOWN, "x", "FAILED", {"run": 7}),
    ],
    ids=lambda heard: f"{heard['detail']['stateMachineArn'][-12:]}-{heard['detail']['name']}",
)
def test_event_that_is_no_failed_run_of_ours_starts_nothing(world: World, heard: dict[str, Any]) -> None:
    world.admit()
    assert world.reap(heard) == {"started": [], "removed": []}
    assert world.teardowns() == {}


def test_failed_teardown_is_restarted(world: World) -> None:
    world.admit()
    world.reap(event(TEARDOWN, "0b2d4f6a", "FAILED", {"run": RUN, "status": "SUCCEEDED"}))
    world.reap(event(TEARDOWN, f"{RUN}-1", "TIMED_OUT", {"run": RUN}))
    assert sorted(world.teardowns()) == [f"{RUN}-1", f"{RUN}-2"]


def test_an_ended_run_is_left_in_peace(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.doubles()
    world.launched()
    world.tear_down(status="STOPPED", reason="stopped by ann")
    world.forward(hours=5)
    assert world.reap(event(BENCHMARK, RUN, "ABORTED", {"run": RUN})) == {"started": [], "removed": []}
    assert world.reap() == {"started": [], "removed": []}
    assert values_of(capsys, "ReaperFinds") == [0], "a zero ends an alarm"
    assert [one for one in world.strangers if one not in world.existing()] == []


def test_a_run_that_goes_on_in_its_time_is_left_alone(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.launched()
    world.start_workflow()
    before = world.existing()
    world.forward(hours=1, minutes=59)
    assert world.reap() == {"started": [], "removed": []}
    assert world.existing() == before
    assert values_of(capsys, "ReaperFinds") == [0]


def test_an_expired_run_is_stopped_and_torn_down(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.doubles()
    world.launched()
    execution = world.start_workflow()
    world.forward(hours=2, minutes=10)
    (name,) = world.reap()["started"]
    assert world.states.describe_execution(executionArn=execution)["status"] == "ABORTED"
    assert values_of(capsys, "ReaperFinds") == [1]
    world.tear_down(**world.teardowns()[name])
    all_gone(world)
    assert "expired" in str(world.runs.get(RUN).reason)


def test_a_standing_fleet_whose_workflow_has_failed_is_torn_down_at_once(world: World) -> None:
    world.admit_fleet()
    world.launch_by_the_rules()
    assert world.reap(event(FLEET, RUN, "TIMED_OUT", {"run": RUN}))["started"] == [f"{RUN}-1"]
    world.tear_down(**world.teardowns()[f"{RUN}-1"])
    all_gone(world)


def test_a_standing_fleet_has_a_while_to_end_by_itself(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """To expire is its usual end, and no reason for an alarm; but it is one not to."""
    world.admit_fleet()
    world.launch_by_the_rules()
    execution = world.start_workflow(machine="FLEET")
    world.forward(hours=2, minutes=9)
    assert world.reap() == {"started": [], "removed": []}
    assert values_of(capsys, "ReaperFinds") == [0]
    world.forward(minutes=1)
    assert len(world.reap()["started"]) == 1
    assert world.states.describe_execution(executionArn=execution)["status"] == "ABORTED"
    assert values_of(capsys, "ReaperFinds") == [1]


def test_while_a_teardown_is_under_way_none_is_started(world: World) -> None:
    world.admit()
    world.forward(minutes=20)
    assert world.reap()["started"] == [f"{RUN}-20361120T1220"]
    world.forward(minutes=15)
    assert world.reap()["started"] == []
    world.states.stop_execution(executionArn=f"{PREFIX}:execution:teardown:{RUN}-20361120T1220")
    world.forward(minutes=15)
    assert world.reap()["started"] == [f"{RUN}-20361120T1250"]


def test_a_cell_that_is_left_over_is_torn_down_while_its_run_goes_on(world: World) -> None:
    """Its own workflow has tried, and failed; the run has days before it, and its other cells nothing to do with it."""
    world.admit(cells=2)
    world.expire_in(days=3)
    for cell in ("c001", "c002"):
        world.launch_by_the_rules(cell=cell)
    world.start_workflow()
    world.runs.cells.close(RUN, "c001", world.now)
    world.forward(seconds=CELL_TIME.total_seconds() - 1)
    assert world.reap()["started"] == []
    world.forward(seconds=1)
    name = f"{RUN}-c001-20361120T1615"
    assert world.reap() == {"started": [name], "removed": []}
    world.forward(minutes=15)
    assert world.reap()["started"] == [], "it is under way"
    assert world.teardowns()[name] == {"run": RUN, "cell": "c001"}
    world.tear_down(**world.teardowns()[name])
    assert {r.cell for r in world.runs.resources.get_all(RUN) if r.gone_at is None} == {"c002"}
    assert world.runs.get(RUN).closed_at is None
    world.states.stop_execution(executionArn=f"{PREFIX}:execution:teardown:{name}")
    assert world.reap()["started"] == [], "nothing is left of it"


def test_a_run_whose_workflow_is_over_and_was_not_heard_of(world: World) -> None:
    """An API function that died before it started one; and events that never came."""
    world.admit()
    world.admit(OTHER)
    world.states.stop_execution(executionArn=world.start_workflow(OTHER))
    world.forward(minutes=14)
    assert world.reap()["started"] == []
    world.forward(minutes=1)
    assert len(world.reap()["started"]) == 2
    reasons = {work["run"]: work["reason"] for work in world.teardowns().values()}
    assert reasons == {RUN: "its workflow was never started", OTHER: "its workflow was stopped"}


def test_a_workflow_that_just_goes_over_to_its_next_execution_is_not_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.admit_fleet()
    first = world.start_workflow(machine="FLEET")
    world.runs.set_running(RUN, first)

    def go_on() -> None:
        following = world.states.start_execution(stateMachineArn=FLEET, name=f"{RUN}-2", input="{}")
        world.runs.set_running(RUN, following["executionArn"])
        world.states.stop_execution(executionArn=first)

    world.forward(minutes=30)
    with calls(monkeypatch, before("DescribeExecution", go_on)):
        assert world.reap()["started"] == []
    assert world.reap()["started"] == []
    world.states.stop_execution(executionArn=f"{first}-2")
    assert len(world.reap()["started"]) == 1


def test_leftovers_of_an_ended_run_are_removed_and_recorded(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """However it came about: here, a launch that kept to none of the rules."""
    world.doubles()
    world.admit()
    world.tear_down(status="SUCCEEDED")
    world.launch()
    world.forward(minutes=16)
    reaped = world.reap()
    assert [one for one in world.left() if one[0] in ("group", "instance", "template")] == []
    assert values_of(capsys, "ReaperFinds")[0] >= 3
    assert any(words.startswith("auto-scaling-group") for words in reaped["removed"])
    (name,) = reaped["started"]
    assert [r for r in world.runs.resources.get_all(RUN) if not r.gone_at], "it was there after all"
    world.tear_down(**world.teardowns()[name])
    all_gone(world)
    record = world.runs.get(RUN)
    assert (record.status, record.reason) == (RunStatus.SUCCEEDED, None), "what it came to, it came to"
    world.forward(minutes=15)
    assert world.reap() == {"started": [], "removed": []}


def test_leftovers_of_an_expired_run_are_removed_although_its_teardown_hangs(world: World) -> None:
    world.launched()
    world.states.start_execution(stateMachineArn=TEARDOWN, name=f"{RUN}-1", input="{}")
    world.clock.moment = EXPIRED
    assert world.reap()["started"] == [f"{RUN}-20361120T1416"], "to put it on record"
    assert [one for one in world.left() if one[0] in ("group", "instance", "template")] == []


def test_resources_of_an_unknown_run_are_reported_and_stay(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.launch()
    before = world.existing()
    world.forward(minutes=16)
    assert world.reap() == {"started": [], "removed": []}
    assert world.existing() == before
    values = [values for _, values in written(capsys)]
    assert [one["LeftBehind"] for one in values if "LeftBehind" in one] == [[6]]
    assert [one["ReaperFinds"] for one in values if "ReaperFinds" in one] == [[0]]


def test_young_resources_stay_and_are_not_reported(world: World) -> None:
    world.launch()
    before = world.existing()
    created = world.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"][0]["CreatedTime"]
    run = created.strftime("%Y%m%d-%H%M%S") + "-00000001"
    world.security_group("x", names.tags("Troop", run, "c001", ""))
    world.clock.moment = created + PATIENCE - timedelta(minutes=1)
    assert [one for one in sweep(world).left_behind if run in one or "security-group" not in one] == []
    world.clock.moment = created + PATIENCE + timedelta(minutes=1)
    reported = sweep(world).left_behind
    assert len([one for one in reported if run in one]) == 1
    assert len([one for one in reported if run not in one]) == 4, "of today; its run's id says 2036"
    assert [one for one in before if one not in world.existing()] == []


def test_one_that_cannot_be_looked_at_stops_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.admit(OTHER)
    world.tear_down(OTHER)
    world.launch(OTHER)
    world.admit()
    world.forward(minutes=20)
    throttled = refusing("ListExecutions", "ThrottlingException")
    with calls(monkeypatch, throttled), pytest.raises(ReapingIncompleteError, match=r"the open runs: .*Throttling"):
        world.reap()
    assert "group" not in [kind for kind, _ in world.existing()]
    throttled = refusing("DescribeInstances", "RequestLimitExceeded")
    with calls(monkeypatch, throttled), pytest.raises(ReapingIncompleteError, match="the resources: "):
        world.reap()
    assert f"{RUN}-20361120T1220" in world.teardowns()


MALFORMED = ["run", "resource#auto-scaling-group#x"]


@pytest.mark.parametrize("item", MALFORMED)
def test_unreadable_run_blocks_no_other_and_its_resources_stay(world: World, item: str) -> None:
    world.doubles()
    world.admit(OTHER)
    world.tear_down(OTHER)
    world.launch(OTHER)
    world.admit()
    others = set(world.existing())
    world.launch_by_the_rules()
    before = set(world.existing()) - others
    assert {"group", "instance"} <= {kind for kind, _ in before}
    dynamodb = world.runs.client
    (edited, *_) = [one for one in dynamodb.scan(TableName="Runs")["Items"] if one["run"]["S"] == RUN]
    wrong = {**edited, "item": {"S": item}, "expires_at": {"N": "5"}, "planned_at": {"M": {}}}
    dynamodb.put_item(TableName="Runs", Item=wrong)
    world.clock.moment = EXPIRED
    reaped = sweep(world)
    assert [text for text in reaped.failed if f"Runs: {RUN}, {item} is malformed" in text], reaped.failed
    assert any(OTHER in words for words in reaped.removed), reaped
    assert before <= set(world.existing())
    with pytest.raises(ReapingIncompleteError, match="is malformed"):
        world.reap()


def test_open_runs_live_nodes_and_ended_runs_are_counted(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """What is open and alive at every look; how a run ended, and its cost, once."""
    world.launched()
    world.start_workflow()
    world.admit_fleet(OTHER)
    world.start_workflow(OTHER, "FLEET")
    world.launch_by_the_rules(OTHER)
    world.reap()
    kinds = {"RunsOpen": [("benchmark", 1), ("fleet", 1)], "NodesAlive": [("benchmark", 2), ("fleet", 2)]}
    assert counted(capsys, "kind") == kinds
    world.tear_down(status="SUCCEEDED")
    assert counted(capsys, "status") == {"RunsEnded": [("SUCCEEDED", 1)]}
    world.tear_down(status="FAILED")
    assert counted(capsys, "status") == {}, "it had ended before"
    world.forward(hours=3)
    world.reap()
    assert ("teardown-started", 1) in counted(capsys, "kind")["Repairs"], "the fleet has expired"


def counted(capsys: pytest.CaptureFixture[str], dimension: str) -> dict[str, list[tuple[str, float]]]:
    """What was counted by the values of a dimension since this was last asked."""
    counts: dict[str, list[tuple[str, float]]] = {}
    for dimensions, values in written(capsys):
        for name, (value,) in values.items():
            if dimension in dimensions:
                counts.setdefault(name, []).append((dimensions[dimension], value))
    return {name: sorted(values) for name, values in counts.items()}
