"""Phases of a cell that go wrong: scripts that fail, nodes that are lost, and what nobody can read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.account.account import calls, changing
from tests.unit.account.benches import BUCKET, CELL, WRITER, Bench
from troop.bench.aws.cell_store import CellStore
from troop.bench.definition import names
from troop.bench.flows.cell_steps import CellDamagedError
from troop.bench.measuring.verdicts import GRACE
from troop.bench.records import stored_table
from troop.bench.records.record import CellStatus
from troop.measure.operations import document_of
from troop.measure.separate import REQUESTS, Separate
from troop.measure.summary import BEFORE, SummaryError, parse


def test_a_script_that_fails_ends_the_cell_at_once_with_its_last_lines(bench: Bench) -> None:
    bench.measuring()
    first = bench.nodes("drivers")[0]
    bench.printed("measure", first, "".join(f"line {i}\n" for i in range(1000)))
    bench.finish("measure", [first], "failed", "read.py ended with 7")
    assert bench.check(1) == "failed"
    cell = bench.cell()
    assert cell.status is CellStatus.FAILED
    reason = cell.reason or ""
    assert f"read.py failed on 1 node in the phase measure: {first} failed: read.py ended with 7" in reason
    assert reason.endswith("line 998\nline 999")
    assert "line 5\n" not in reason


def test_a_failure_among_many_early_summaries_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troop.bench.flows.cell_steps.READ_EARLY", 1)
    bench.measuring()
    good, bad, _ = bench.nodes("drivers")
    bench.finish("measure", [good])
    assert bench.check(1) == "waiting"
    bench.finish("measure", [bad], "timed-out", "it took longer than 600 s")
    with calls(monkeypatch) as operations:
        bench.check(1)
    assert bench.cell().status is CellStatus.FAILED or operations.count("GetObject") < 6
    bench.finish("measure", [n for n in bench.nodes("drivers") if n != bad])
    assert bench.check(1) == "failed"
    assert f"{bad} timed-out" in (bench.cell().reason or "")


def test_a_barrier_that_times_out_names_who_did_not_come(bench: Bench) -> None:
    bench.measuring()
    *good, late = bench.nodes("drivers")
    bench.finish("measure", good)
    started = bench.barrier("measure")["start_at"]
    bench.account.clock.forward(seconds=started + 600 + GRACE - 1 - bench.account.clock().timestamp())
    assert bench.check(1) == "waiting"
    bench.account.clock.forward(seconds=1)
    assert bench.check(1) == "failed"
    assert bench.cell().reason == f"{late} did not finish the phase measure within 600 s"
    assert bench.cell().status is CellStatus.FAILED


@pytest.mark.parametrize("role", ["drivers", "servers"])
def test_a_node_that_dies_while_measuring_makes_the_cell_invalid(bench: Bench, role: str) -> None:
    """A server takes no part in the phase; but the drivers talk to it."""
    bench.measuring()
    dead = bench.nodes(role)[0]
    drivers = bench.nodes("drivers")
    bench.lose(dead)
    bench.finish("measure", drivers)
    assert bench.check(1) == "failed"
    cell = bench.cell()
    assert (cell.status, cell.reason) == (CellStatus.INVALID, f"{dead} was lost during the phase measure")
    bench.step("fail", error="", cause="")
    assert bench.cell() == replace(cell, phase="teardown", phases=bench.cell().phases)
    assert names.console_key(bench.run, CELL, dead) in bench.objects()
    settled = bench.step("settle", error="", cause="")
    assert settled["status"] == "FAILED"
    assert settled["reason"] == f"c001 INVALID: {dead} was lost during the phase measure"
    assert bench.cell().results is None, "the results do not count"


def test_measurements_before_a_loss_are_stored_as_partial(bench: Bench) -> None:
    bench.measuring()
    dead, other, done = bench.nodes("drivers")
    for node, count in ((dead, 100), (other, 140), (done, 10)):
        bench.measured("measure", node, count)
    bench.measured("measure", bench.nodes("servers")[0], 7)
    bench.finish("measure", [done])
    bench.lose(dead)
    assert bench.check(1) == "failed"
    bench.step("fail", error="", cause="")
    stored = bench.get(names.results_key(bench.run, CELL))
    assert stored["complete"] is False
    (phase,) = stored["phases"]
    assert (phase["phase"], phase["partial"], phase["nodes"]) == ("measure", True, 3)
    lines = phase["roles"]["drivers"]["nodes"]
    assert {i: (line["outcome"], line["count"], line["purchase"]) for i, line in lines.items()} == {
        dead: ("partial", 100, "on-demand"), other: ("partial", 140, "on-demand"), done: ("ok", 1000, "on-demand"),
    }  # fmt: skip
    assert [(row["operation"], row["count"]) for row in phase["table"]] == [("read", 1240)]
    assert "limits" not in phase
    cell = bench.cell()
    assert (cell.status, cell.results) == (CellStatus.INVALID, None)
    bench.s3.delete_object(Bucket=BUCKET, Key=f"{names.live_prefix(bench.run, CELL)}{WRITER}{dead}.json")
    bench.step("fail", error="", cause="")
    assert bench.get(names.results_key(bench.run, CELL)) == stored, "a retry finds less, and changes nothing"


def test_interrupted_spot_node_retains_its_measurements(bench: Bench) -> None:
    bench.measuring()
    taken, *others = bench.nodes("drivers")
    bench.measured("measure", taken, 100)
    bench.finish("measure", [taken], "lost", "spot interruption: terminate at 2026-11-20T22:50:00Z")
    key = f"{names.phase_prefix(bench.run, CELL, 'measure')}{WRITER}{taken}.json"
    bench.put(key, bench.get(key) | {"operations": {}, "measured_from": 1.0, "ended_at": 31.0, "separate": []})
    bench.measured("measure", others[0], 100, until=-1)
    bench.measured("measure", others[1], 100, role="servers")
    assert bench.check(1) == "failed"
    bench.step("fail", error="", cause="")
    (phase,) = bench.get(names.results_key(bench.run, CELL))["phases"]
    (line,) = phase["roles"]["drivers"]["nodes"].values()
    assert (line["outcome"], line["count"], phase["measured_seconds"]) == ("lost", 100, 20.0)


def test_phase_that_ended_before_a_failure_is_stored_whole(bench: Bench) -> None:
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))
    bench.step("fail", error="X", cause="a later step")
    stored = bench.get(names.results_key(bench.run, CELL))
    assert (stored["complete"], [phase.get("partial") for phase in stored["phases"]]) == (False, [None])


@pytest.mark.parametrize("phases", [[], ["measure"]])
def test_a_cell_that_has_measured_nothing_has_no_results(bench: Bench, phases: list[str]) -> None:
    bench.measuring()
    for phase in phases:
        bench.finish(phase, bench.nodes("drivers"), "failed", "no server")
        for node in bench.nodes("drivers"):
            key = f"{names.phase_prefix(bench.run, CELL, phase)}{WRITER}{node}.json"
            bench.put(key, bench.get(key) | {"operations": {}})
    bench.lose(bench.nodes("servers")[0])
    bench.check(1)
    bench.step("fail", error="", cause="")
    assert names.results_key(bench.run, CELL) not in bench.objects()


def test_a_node_that_dies_makes_the_scripts_of_others_fail_and_is_the_reason(bench: Bench) -> None:
    bench.measuring()
    dead = bench.nodes("servers")[0]
    bench.lose(dead)
    bench.finish("measure", bench.nodes("drivers"), "failed", "connection refused")
    assert bench.check(1) == "failed"
    assert (bench.cell().status, bench.cell().reason) == (
        CellStatus.INVALID,
        f"{dead} was lost during the phase measure",
    )


def test_a_node_that_dies_in_another_phase_makes_the_cell_invalid_too(bench: Bench) -> None:
    bench.gathered()
    bench.step("release", phase_index=0)
    bench.lose(bench.nodes("drivers")[0])
    assert bench.check(0) == "failed"
    assert bench.cell().status is CellStatus.INVALID


def test_a_node_whose_status_check_fails_once_is_not_lost(bench: Bench) -> None:
    bench.measuring()
    bench.account.clock.forward(minutes=6)
    bench.fail_status_check(bench.nodes("servers")[0])
    for _ in range(3):
        assert bench.check(1) == "waiting"
        bench.account.clock.forward(seconds=15)
    bench.finish("measure", bench.nodes("drivers"))
    assert bench.check(1) == "done"


def _unseen(node: str) -> Any:
    """AWS answers from before the node."""

    def hide(answer: Any) -> None:
        for group in answer["AutoScalingGroups"]:
            group["Instances"] = [one for one in group["Instances"] if one["InstanceId"] != node]

    return changing("DescribeAutoScalingGroups", hide)


def test_a_node_that_one_check_misses_is_not_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.measuring()
    bench.account.clock.forward(minutes=6)
    node = bench.nodes("servers")[0]
    for _ in range(2):  # not two in a row
        with calls(monkeypatch, _unseen(node)):
            answer = bench.step("check", phase_index=1)
        assert (answer["state"], answer["wait_seconds"]) == ("waiting", 15)
        bench.account.clock.forward(seconds=15)
        assert bench.check(1) == "waiting"
        bench.account.clock.forward(seconds=15)
    bench.finish("measure", bench.nodes("drivers"))
    assert bench.check(1) == "done"


def test_a_node_that_two_checks_miss_is_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.measuring()
    node = bench.nodes("servers")[0]
    bench.finish("measure", bench.nodes("drivers"))
    with calls(monkeypatch, _unseen(node)):
        assert bench.check(1) == "waiting"
        bench.account.clock.forward(seconds=5)
        assert bench.check(1) == "waiting", "a retry may repeat the check at once"
        bench.account.clock.forward(seconds=10)
        assert bench.check(1) == "failed"
    assert (bench.cell().status, bench.cell().reason) == (
        CellStatus.INVALID,
        f"{node} was lost during the phase measure",
    )


def test_loss_that_only_ec2_knows_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.measuring()
    drivers, dead = bench.nodes("drivers"), bench.nodes("servers")[0]
    before = {name: [dict(i) for i in group["Instances"]] for name, group in bench.groups().items()}
    bench.lose(dead)
    bench.finish("measure", drivers)

    def lag(answer: Any) -> None:
        for group in answer["AutoScalingGroups"]:
            group["Instances"] = before[group["AutoScalingGroupName"]]

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", lag)):
        assert bench.check(1) == "failed"
    assert bench.cell().status is CellStatus.INVALID


@pytest.mark.parametrize("health", [{"LifecycleState": "Terminating"}, {"HealthStatus": "Unhealthy"}])
def test_a_node_that_auto_scaling_gives_up_is_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, health: dict[str, str]
) -> None:
    bench.measuring()

    def sicken(answer: Any) -> None:
        answer["AutoScalingGroups"][0]["Instances"][0].update(health)

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", sicken)):
        assert bench.check(1) == "waiting"
        bench.account.clock.forward(seconds=15)
        assert bench.check(1) == "failed"
    assert bench.cell().status is CellStatus.INVALID


def test_a_group_deleted_while_measuring_makes_the_cell_invalid(bench: Bench) -> None:
    bench.measuring()
    bench.account.drop_group(names.fleet_name(bench.run, CELL, "drivers"))
    assert bench.check(1) == "failed"
    assert bench.cell().status is CellStatus.INVALID
    assert "were lost" in (bench.cell().reason or "")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "must be an object with format"),
        (b'{"format": "troop.summary/9"}', "must be an object with format"),
        (b" " * (17 << 20), "it has 17.0 MiB; the limit is 16.0 MiB"),
    ],
    ids=["cut", "another", "large"],
)
def test_a_summary_that_cannot_be_read_is_no_success(bench: Bench, body: bytes, problem: str) -> None:
    bench.measuring()
    first, *others = bench.nodes("drivers")
    bench.finish("measure", others)
    bench.s3.put_object(
        Bucket=BUCKET, Key=f"{names.phase_prefix(bench.run, CELL, 'measure')}{WRITER}{first}.json", Body=body
    )
    assert bench.check(1) == "failed"
    reason = bench.cell().reason or ""
    assert f"{first} has left a summary that cannot be read: " in reason
    assert problem in reason


def test_a_check_reads_the_outcomes_of_nodes_and_not_what_they_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))

    def refuse(*_: Any) -> Any:
        raise AssertionError("reads whole summaries")

    with monkeypatch.context() as patch:
        patch.setattr(CellStore, "documents", refuse)
        assert bench.check(1) == "done"
    bench.step("collect")
    assert bench.get(names.results_key(bench.run, CELL))["phases"][0]["nodes"] == 3


def test_nodes_that_began_before_an_upgrade_are_read(bench: Bench) -> None:
    bench.measuring()
    drivers = bench.nodes("drivers")
    bench.finish("measure", drivers)
    for node in drivers[:2]:
        key = f"{names.phase_prefix(bench.run, CELL, 'measure')}{WRITER}{node}.json"
        document = bench.get(key)
        summary = parse(document)
        outcome = document.pop("outcome")
        bench.put(
            key, {**document, "format": BEFORE, "operations": document_of(summary.operations), "outcome": outcome}
        )
    assert bench.check(1) == "done"
    bench.step("collect")
    (phase,) = bench.get(names.results_key(bench.run, CELL))["phases"]
    assert (phase["nodes"], phase["table"][0]["count"]) == (3, 3000)


def test_a_summary_under_another_nodes_name_is_no_success(bench: Bench) -> None:
    bench.measuring()
    first, *others = bench.nodes("drivers")
    bench.finish("measure", others)
    prefix = names.phase_prefix(bench.run, CELL, "measure")
    bench.put(f"{prefix}{WRITER}{first}.json", bench.get(f"{prefix}{WRITER}{others[0]}.json"))
    assert bench.check(1) == "failed"
    assert first in (bench.cell().reason or "")


def test_strangers_in_a_phase_are_passed_over(bench: Bench) -> None:
    bench.measuring()
    prefix = names.phase_prefix(bench.run, CELL, "measure")
    bench.put(f"{prefix}i-stranger.json", {"format": "troop.summary/1", "outcome": "failed"})
    assert bench.check(1) == "waiting"
    bench.finish("measure", bench.nodes("drivers"))
    assert bench.check(1) == "done"
    bench.step("collect")
    assert bench.get(names.results_key(bench.run, CELL))["phases"][0]["nodes"] == 3


def test_requests_that_nodes_count_are_on_record_for_the_cost(bench: Bench) -> None:
    bench.measuring()
    drivers = bench.nodes("drivers")
    bench.finish("measure", drivers)
    for rank, node in enumerate(drivers):
        key = f"{names.phase_prefix(bench.run, CELL, 'measure')}{WRITER}{node}.json"
        document = bench.get(key)
        rows = [Separate(REQUESTS, "s3_gets", 100 + rank).document(), Separate(REQUESTS, "emails", 5).document()]
        bench.put(key, document | {"separate": rows})
    assert bench.check(1) == "done"
    bench.step("collect")
    assert bench.cell().requests == {"s3_gets": sum(100 + rank for rank in range(len(drivers)))}


def test_a_table_that_no_item_has_room_for_is_cut_on_record_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_table, "LARGEST", 10)
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))
    bench.step("collect")
    assert [row["operation"] for row in bench.cell().results or []] == ["1 more rows in results.json"]
    assert len(bench.get(names.results_key(bench.run, CELL))["phases"][0]["table"]) == 1


def test_results_are_never_merged_of_less_than_all(bench: Bench) -> None:
    bench.measuring()
    first, *others = bench.nodes("drivers")
    bench.finish("measure", others)
    with pytest.raises(CellDamagedError, match=first):
        bench.step("collect")
    bench.s3.put_object(
        Bucket=BUCKET, Key=f"{names.phase_prefix(bench.run, CELL, 'measure')}{WRITER}{first}.json", Body=b"{"
    )
    with pytest.raises(SummaryError, match=first):
        bench.step("collect")
    assert bench.cell().status is CellStatus.RUNNING
    assert names.results_key(bench.run, CELL) not in bench.objects()
