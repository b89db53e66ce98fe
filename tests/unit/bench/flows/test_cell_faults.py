"""Cells whose nodes and units are hit while they measure."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.unit.account.account import Call, Cut, Intercept, calls, cut_at, refusing
from tests.unit.account.benches import BENCHMARK, BUCKET, CELL, WRITER, Bench
from troop.bench.api.run_models import CellOut
from troop.bench.aws.unit_requests import UnitRequests
from troop.bench.definition import names
from troop.bench.definition.definition import Between, Phase, Point
from troop.bench.definition.planned_fault import CRASH, PAUSE, STOP, Expectation, PlannedFault
from troop.bench.definition.search import Search
from troop.bench.flows.cell_faults import LATEST, RECOVERY
from troop.bench.flows.cell_steps import UnjudgedPointError
from troop.bench.measuring.poll_waits import BEFORE_CRASH
from troop.bench.measuring.verdicts import GRACE
from troop.bench.records.record import CellStatus
from troop.measure.histogram import Histogram
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import Summary
from troop.measure.windows import Windows
from troop.shared import moments

PREPARE, MEASURE = BENCHMARK.phases
AT = 60
LOADED = replace(MEASURE, warm_up=10, measured=180)
LAST = Phase("last", ("servers", "drivers"), "prepare.sh", 600, measured=60)
NOTHING_FAILS = Expectation(failed_at_most=0)
CRASHES = PlannedFault(at=AT, method=CRASH, role="servers", expect=Expectation(failed_at_most=50))
STOPS = PlannedFault(at=AT, method=STOP, role="servers", expect=NOTHING_FAILS)
PAUSES = PlannedFault(at=AT, method=PAUSE, role="servers", lasts=20, expect=NOTHING_FAILS)
HITS = PlannedFault(at=AT, unit="web", method="drain")

EVENT: dict[str, Any] = {
    "event_id": "on-demand#web#k", "status": "TERMINATED", "verdict": None, "group": "web-v1", "instance_id": "i-9",
    "hit_at": None, "terminated_at": None, "recovery_seconds": None, "stages": None, "over": False,
}  # fmt: skip


@pytest.fixture
def prepared(bench: Bench) -> Callable[..., Bench]:
    """Gives a run whose phase with faults has begun."""

    def prepare(*faults: PlannedFault, phases: Sequence[Phase] = (), **changes: Any) -> Bench:
        phase = replace(LOADED, faults=faults, **changes)
        ran = bench.again(f"{faults} {changes}", replace(BENCHMARK, phases=(PREPARE, phase, *phases))).gathered()
        ran.step("release", phase_index=0)
        ran.finish("prepare", ran.nodes())
        assert ran.check(0) == "next"
        ran.step("release", phase_index=1)
        return ran

    return prepare


def forward(bench: Bench, seconds: float, step: str = "measure") -> float:
    """Turns the clock to so many seconds of the measured time, and returns this moment."""
    barrier = bench.barrier(step)
    moment: float = barrier["start_at"] + barrier["warm_up_seconds"] + seconds
    bench.account.clock.forward(seconds=moment - bench.account.clock().timestamp())
    return moment


def say(bench: Bench, node: str, state: str, step: str = "measure", number: int = 1, **more: Any) -> None:
    """A node's document about its fault."""
    document = {"format": "troop.fault/1", "id": node, "role": bench.role_of(node), "phase": step}
    fault = {"number": number, "method": "", "state": state, "begin_at": 0.0, **more}
    bench.put(f"{names.faults_prefix(bench.run, CELL, step)}{WRITER}{node}.json", {**document, "faults": [fault]})


def load(bench: Bench, step: str = "measure", failing: Iterable[int] = (), each: int = 10, **changes: Any) -> None:
    """Summaries of drivers that have done ten operations a second, and failed in some seconds of the measured time.

    Args:
        changes: of the operation.
    """
    barrier, failing = bench.barrier(step), set(failing)
    begin, warm_up, seconds = barrier["start_at"], barrier["warm_up_seconds"], barrier["measured_seconds"]
    first, whole = int(begin), int(warm_up + seconds)
    for rank, node in enumerate(bench.nodes("drivers")):
        times, over_time, succeeded = Histogram(), Windows(first, 1), []
        for second in range(whole):
            good = second - warm_up not in failing
            succeeded.append(each if good else 0)
            if good:
                one = Histogram()
                for _ in range(each):
                    one.record(1000)
                over_time.take(first + second, one)
                times.add(one) if second >= warm_up else None
        failed = [each - count for count in succeeded]
        operation = Operation(
            times, {"refused": sum(failed)} if sum(failed) else {},
            per_second=PerSecond(first, succeeded, failed), over_time=over_time,
        )  # fmt: skip
        operation = replace(operation, **changes)
        summary = Summary(
            node=node, role="drivers", rank=rank, phase=step, outcome="ok", started_at=begin,
            ended_at=begin + whole, reason=None, exit_code=0, measured_from=begin + warm_up,
            measured_seconds=float(seconds), operations={"read": operation}, warm_up_seconds=float(warm_up),
        )  # fmt: skip
        bench.put(f"{names.phase_prefix(bench.run, CELL, step)}{WRITER}{node}.json", summary.document())


def victim(bench: Bench, step: str = "measure") -> str:
    return str(bench.barrier(step)["faults"][0]["nodes"][0])


def assert_lost(bench: Bench, node: str) -> None:
    assert bench.check(1) == "failed"
    cell = bench.cell()
    assert (cell.status, cell.reason) == (CellStatus.INVALID, f"{node} was lost during the phase measure")


def collected(bench: Bench) -> list[dict[str, Any]]:
    """The planned faults in the results."""
    assert bench.step("collect")["state"] == "done"
    assert bench.cell().status is CellStatus.SUCCEEDED
    phases = bench.get(names.results_key(bench.run, CELL))["phases"]
    return [fault for phase in phases for fault in phase.get("faults", ())]


# Nodes


def test_a_node_that_crashes_as_announced_is_missed_by_nothing_afterwards(prepared: Callable[..., Bench]) -> None:
    ran = prepared(CRASHES, phases=(LAST,))
    node = victim(ran)
    say(ran, node, "PLANNED")
    begin_at = forward(ran, AT)
    forward(ran, AT + 1)
    ran.lose(node)
    assert ran.check(1) == "waiting"
    forward(ran, 190)
    load(ran, failing=[AT, AT + 1])
    assert ran.check(1) == "next"
    ran.step("release", phase_index=2)
    assert ran.check(2) == "waiting"
    ran.finish("last", set(ran.nodes()) - {node})
    assert ran.check(2) == "done"
    (fault,) = collected(ran)
    assert (fault["outcome"], fault["began_at"], fault["failed"], fault["verdict"]) == ("DONE", begin_at, 60, "BROKEN")
    assert [one["id"] for one in fault["nodes"]] == [node]
    (stored,) = ran.cell().faults or []
    assert {**stored, "sentence": ""} == {
        "phase": "measure", "point": None, "repeat": 1, "setting": "", "number": 1, "what": "crash 1 of servers",
        "verdict": "BROKEN", "sentence": "",
    }  # fmt: skip
    shown = CellOut.from_cell(ran.cell())
    assert (shown.faults[0].sentence, shown.verdict) == (fault["sentence"], None)
    assert [row["phase"] for row in shown.results or [] if row.get("has_faults")] == ["measure"]


@pytest.mark.parametrize("state", [None, "FAILED"])
def test_a_crash_that_no_document_announces_is_a_loss(prepared: Callable[..., Bench], state: str | None) -> None:
    ran = prepared(CRASHES)
    node = victim(ran)
    if state:
        say(ran, node, state, why="no")
    forward(ran, AT + 1)
    ran.lose(node)
    assert_lost(ran, node)


def test_a_node_that_is_lost_before_it_was_to_crash_is_a_loss(prepared: Callable[..., Bench]) -> None:
    """The last poll before the moment sees it."""
    ran = prepared(CRASHES)
    node = victim(ran)
    say(ran, node, "PLANNED")
    forward(ran, AT - 40)
    assert ran.check(1) == "waiting"
    wait = ran.step("check", phase_index=1)["wait_seconds"]
    assert wait == 40 - BEFORE_CRASH
    forward(ran, AT - 40 + wait)
    ran.lose(node)
    assert ran.check(1) == "failed"
    assert ran.cell().status is CellStatus.INVALID


def test_a_crash_excuses_no_other_node(prepared: Callable[..., Bench]) -> None:
    ran = prepared(CRASHES)
    node = victim(ran)
    (other,) = set(ran.nodes("servers")) - {node}
    say(ran, node, "PLANNED")
    say(ran, other, "PLANNED")
    forward(ran, AT + 1)
    ran.lose(node)
    assert ran.check(1) == "waiting"
    ran.lose(other)
    assert_lost(ran, other)


def test_a_step_waits_until_its_victims_say_how_it_went(prepared: Callable[..., Bench]) -> None:
    ran = prepared(STOPS)
    node = victim(ran)
    say(ran, node, "PLANNED")
    began_at = forward(ran, AT) + 0.25
    forward(ran, 181)
    load(ran)
    assert ran.check(1) == "waiting"
    say(ran, node, "DONE", began_at=began_at)
    assert ran.check(1) == "done"
    (fault,) = collected(ran)
    assert (fault["began_at"], fault["nodes"][0]["began_at"], fault["ended_at"]) == (began_at, began_at, None)
    assert (fault["outcome"], fault["verdict"], fault["failed"]) == ("DONE", "HELD", 0)


def test_a_victim_that_says_nothing_has_failed_and_the_cell_succeeds(prepared: Callable[..., Bench]) -> None:
    ran = prepared(STOPS)
    forward(ran, 180 + GRACE - 1)
    load(ran)
    assert ran.check(1) == "waiting"
    forward(ran, 180 + GRACE)
    assert ran.check(1) == "done"
    (fault,) = collected(ran)
    assert (fault["outcome"], fault["verdict"], fault["windows"]["before"]) == ("FAILED", "UNKNOWN", None)
    assert fault["why"] == f"{victim(ran)} did not say how it went"


@pytest.mark.parametrize("state", ["FAILED", "BEGUN"])
def test_a_fault_that_fails_in_a_point_makes_the_cell_invalid(prepared: Callable[..., Bench], state: str) -> None:
    points = tuple(Point({"threads": n}) for n in (1, 2))
    ran = prepared(PAUSES, points=points, between=Between("prepare.sh", ("servers",), 300))
    node = victim(ran, "measure.1")
    say(ran, node, state, "measure.1", why="could not undo: x")
    forward(ran, 181, "measure.1")
    if state == "BEGUN":
        ran.lose(node)
    load(ran, "measure.1")
    assert ran.check(1) == "failed"
    assert ran.cell().status is CellStatus.INVALID
    assert ran.cell().reason == (f"the fault pause 1 of servers failed in measure.1: {node}: could not undo: x")


def test_a_search_goes_by_the_expectations_of_its_faults(prepared: Callable[..., Bench]) -> None:
    search = Search("threads", (1, 2))
    ran = prepared(PAUSES, search=search, between=Between("prepare.sh", ("servers",), 300))
    steps, at = ran.benchmark.steps, 1
    while at < len(steps):
        step = steps[at]
        if not step.is_between and not ran.barrier(step.name)["skipped"]:
            begin_at = ran.barrier(step.name)["faults"][0]["begin_at"]
            forward(ran, 181, step.name)
            say(ran, victim(ran, step.name), "DONE", step.name, began_at=begin_at, ended_at=begin_at + 20)
            load(ran, step.name, failing=[AT] if ran.barrier(step.name)["parameters"]["threads"] == 2 else [])
        elif step.is_between:
            ran.finish(step.name, ran.nodes("servers"))
        assert ran.check(at) in ("next", "done")
        at += 1
        if at < len(steps):
            at = ran.step("release", phase_index=at)["phase_index"]
    ran.step("collect")
    cell = ran.cell()
    entries = cell.limits or []
    assert [one["held"] for one in entries] == [True, False, True, False]
    assert "30 operations failed" in entries[1]["reason"]
    (answer,) = cell.searches or []
    assert (answer["outcome"], answer["largest"]) == ("BRACKETED", 1)
    assert answer["text"].startswith("the largest threads that holds the expectations is 1; 2 does not hold them")
    assert CellOut.from_cell(cell).verdict == "PASSED"


@pytest.mark.parametrize(
    ("lacks", "why"),
    [
        ({"over_time": None}, "not all times over time are on record"),
        ({"per_second": PerSecond()}, "a tool does not count operations and errors by second"),
        ({"counts_failures": False}, "failures are not counted by this tool"),
    ],
)
@pytest.mark.parametrize("is_last", [False, True])
def test_a_search_fails_if_its_tool_cannot_say_whether_a_point_holds(
    prepared: Callable[..., Bench], lacks: dict[str, Any], why: str, is_last: bool
) -> None:
    """Otherwise the answer would be that no value holds the expectations."""
    search = Search("threads", (1, 2))
    ran = prepared(PAUSES, search=search, between=Between("prepare.sh", ("servers",), 300))
    steps, at = ran.benchmark.steps, 1
    points = sum(not step.is_between for step in steps[1:])
    for point in range(1, points + 1 if is_last else 2):
        step = steps[at]
        begin_at = ran.barrier(step.name)["faults"][0]["begin_at"]
        forward(ran, 181, step.name)
        say(ran, victim(ran, step.name), "DONE", step.name, began_at=begin_at, ended_at=begin_at + 20)
        lacking = point == points if is_last else True
        failing = [AT] if ran.barrier(step.name)["parameters"]["threads"] == 2 else []
        load(ran, step.name, [] if lacking else failing, **(lacks if lacking else {}))
        ran.check(at)
        if lacking:
            break
        ran.step("release", phase_index=at + 1)
        ran.finish(steps[at + 1].name, ran.nodes("servers"))
        assert ran.check(at + 1) == "next"
        at += 2
        ran.step("release", phase_index=at)
    name = steps[at].name
    text = f"the search of measure cannot go on from {name}: pause 1 of servers: {why}"
    after: dict[str, Any] = {"name": "collect"} if is_last else {"name": "release", "phase_index": at + 1}
    with pytest.raises(UnjudgedPointError, match=text):
        ran.step(**after)
    ran.step("fail", error="UnjudgedPointError", cause=json.dumps({"errorMessage": text}))
    cell = ran.cell()
    assert (cell.status, cell.reason) == (CellStatus.FAILED, f"UnjudgedPointError: {text}")
    assert all(one["outcome"] is None for one in cell.searches or ())
    results = ran.get(names.results_key(ran.run, CELL))
    assert all(one["outcome"] is None for one in results.get("searches", ()))
    assert results["phases"][-1]["faults"][0]["verdict"] == "UNKNOWN"


def test_faults_of_a_cell_that_ended_early_have_no_figures(prepared: Callable[..., Bench]) -> None:
    ran = prepared(STOPS)
    say(ran, victim(ran), "DONE", began_at=forward(ran, AT))
    lost = ran.nodes("drivers")[1]
    load(ran)
    ran.s3.delete_object(Bucket=BUCKET, Key=f"{names.phase_prefix(ran.run, CELL, 'measure')}{WRITER}{lost}.json")
    ran.lose(lost)
    assert ran.check(1) == "failed"
    ran.step("fail", error="", cause="")
    (phase,) = ran.get(names.results_key(ran.run, CELL))["phases"]
    (fault,) = phase["faults"]
    assert (phase["partial"], fault["verdict"], fault["failed"]) == (True, "UNKNOWN", None)


# Units


def answering(*answers: Any) -> tuple[Intercept, list[dict[str, Any]]]:
    """Answers invocations one after another, the last one for ever; and the requests."""
    requests: list[dict[str, Any]] = []

    def intercept(number: int, name: str, call: Call) -> Any:
        if name != "Invoke":
            return call()
        requests.append(json.loads(call.args[2]["Payload"]))
        answer = answers[min(len(requests), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        error = {"FunctionError": "Unhandled"} if "errorMessage" in answer else {}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode()), **error}

    return intercept, requests


def done(event: dict[str, Any]) -> dict[str, Any]:
    return {"outcome": "DONE", "why": None, "event": event}


def test_a_unit_is_hit_once_when_its_moment_has_come(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = prepared(HITS)
    due = forward(ran, AT)
    hit = done({**EVENT, "hit_at": due + 1.5})
    recovered = {**EVENT, "hit_at": due + 1.5, "recovery_seconds": 7.0, "stages": {"launched": due + 5.0}}
    final = {**recovered, "verdict": "HELD", "over": True}
    intercept, requests = answering(done(EVENT), hit, done(recovered), done(final))
    forward(ran, AT - 1)
    with calls(monkeypatch, intercept):
        assert ran.step("check", phase_index=1)["wait_seconds"] == 1
        assert requests == []
        forward(ran, AT)
        ran.check(1)
        ran.check(1)
        (request,) = requests
        assert moments.parse(request.pop("requested_at")).timestamp() == pytest.approx(due, abs=0.001)
        assert request == {
            "run": ran.run, "cell": CELL, "step": "measure", "number": 1, "unit": "web", "choice": "drain",
            "latest": moments.iso(datetime.fromtimestamp(due + LATEST, UTC)),
        }  # fmt: skip
        forward(ran, 181)
        load(ran)
        answer = ran.step("check", phase_index=1)
        assert (answer["state"], answer["phase_index"], answer["wait_seconds"]) == ("waiting", 1, 15)
        assert ran.check(1) == "done"
        assert requests[1:] == [{"event_id": EVENT["event_id"]}] * 2
        (fault,) = collected(ran)
        assert len(requests) == 4
        ran.step("collect")
    assert (fault["requested_at"], fault["began_at"], fault["event"]) == (due, due + 1.5, final)
    assert (fault["outcome"], fault["verdict"], fault["unit"], fault["nodes"]) == ("DONE", None, "web", [])
    assert len(requests) == 4, "what is over is not read again"


def test_a_recovery_is_awaited_for_two_minutes_after_the_measured_time(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = prepared(HITS)
    intercept, _ = answering(done({**EVENT, "hit_at": forward(ran, AT)}))
    with calls(monkeypatch, intercept):
        ran.check(1)
        forward(ran, 180 + RECOVERY - 1)
        load(ran)
        assert ran.check(1) == "waiting"
        forward(ran, 180 + RECOVERY)
        assert ran.check(1) == "done"
        (fault,) = collected(ran)
    assert (fault["outcome"], fault["event"]["recovery_seconds"]) == ("DONE", None)


def test_a_refusal_is_a_result_and_fails_no_cell(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = prepared(HITS)
    due = forward(ran, AT)
    intercept, requests = answering({"outcome": "REFUSED", "why": "calendar_closed: it is Sunday", "event": None})
    with calls(monkeypatch, intercept):
        ran.check(1)
        forward(ran, 181)
        load(ran)
        assert ran.check(1) == "done"
        (fault,) = collected(ran)
    assert (fault["outcome"], fault["why"], fault["requested_at"]) == ("REFUSED", "calendar_closed: it is Sunday", due)
    assert (fault["verdict"], fault["event"], len(requests)) == ("UNKNOWN", None, 1)


def test_a_claim_that_is_abandoned_later_is_a_refusal(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = prepared(HITS)
    forward(ran, AT)
    abandoned = {"outcome": "REFUSED", "why": "an alarm went off", "event": {**EVENT, "over": True}}
    with calls(monkeypatch, answering(done(EVENT), abandoned)[0]):
        ran.check(1)
        forward(ran, 181)
        load(ran)
        assert ran.check(1) == "done"
        (fault,) = collected(ran)
    assert (fault["outcome"], fault["why"], fault["began_at"]) == ("REFUSED", "an alarm went off", None)


@pytest.mark.parametrize(
    "intercept",
    [
        refusing("Invoke", "TooManyRequestsException"),
        answering({"errorMessage": "KeyError: x"})[0],
        answering({"outcome": "MAYBE"})[0],
        answering([])[0],
    ],
)
def test_a_function_that_fails_fails_no_cell(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, intercept: Intercept
) -> None:
    ran = prepared(HITS)
    forward(ran, AT)
    with calls(monkeypatch, intercept) as operations:
        ran.check(1)
        ran.check(1)
    assert 1 <= operations.count("Invoke") <= 2
    forward(ran, 181)
    load(ran)
    assert ran.check(1) == "done"
    (fault,) = collected(ran)
    assert fault["outcome"] == "FAILED"
    assert fault["why"].startswith("the function for units ")


def test_a_workflow_whose_answer_was_lost_asks_again_however_late(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit may have been hit, and only chaos knows it."""
    ran = prepared(HITS)
    event = {**EVENT, "hit_at": forward(ran, AT)}
    intercept, requests = answering(done(event))

    def lost(number: int, name: str, call: Call) -> Any:
        answer = intercept(number, name, call)
        if name == "Invoke":
            raise Cut
        return answer

    with calls(monkeypatch, lost), pytest.raises(Cut):
        ran.check(1)
    forward(ran, AT + 3 * LATEST)
    with calls(monkeypatch, intercept):
        ran.check(1)
    assert len({one["latest"] for one in requests}) == 1 < len(requests)
    assert ran.get(names.unit_fault_key(ran.run, CELL, "measure", 1))["event"] == event


def test_a_claim_whose_request_timed_out_stands_in_the_results(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = prepared(HITS)
    event = {**EVENT, "hit_at": forward(ran, AT), "recovery_seconds": 7.0, "over": True}
    slow = ReadTimeoutError(endpoint_url="lambda")
    intercept, requests = answering(slow, slow, done(event))
    with calls(monkeypatch, intercept):
        ran.check(1)
        forward(ran, 181)
        load(ran)
        assert ran.check(1) == "done"
        (fault,) = collected(ran)
    assert (fault["outcome"], fault["why"], fault["event"]) == ("DONE", None, event)
    assert len(requests) == 3
    assert len({(one["run"], one["number"], one["latest"]) for one in requests}) == 1


def test_a_hit_that_was_never_claimed_has_failed_for_the_reason_of_its_moment(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = prepared(HITS)
    forward(ran, AT)
    too_late = {"outcome": "REFUSED", "why": "too-late: no request was claimed", "event": None}
    with calls(monkeypatch, answering(*[{"errorMessage": "KeyError: x"}] * 2, too_late)[0]):
        ran.check(1)
        forward(ran, 181)
        load(ran)
        assert ran.check(1) == "done"
        (fault,) = collected(ran)
    assert (fault["outcome"], fault["why"]) == ("FAILED", "the function for units failed: KeyError: x")


def test_a_function_that_fails_delays_no_end_of_a_step(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time-out takes a minute, and the step itself must end."""
    ran = prepared(HITS, replace(HITS, at=AT + 40))
    intercept, requests = answering(ReadTimeoutError(endpoint_url="lambda"))
    with calls(monkeypatch, intercept):
        forward(ran, AT + 40)
        ran.check(1)
        forward(ran, 181)
        load(ran)
        requests.clear()
        assert ran.check(1) == "done"
    assert [one["number"] for one in requests] == [1, 1]


def test_a_node_that_may_be_lost_delays_no_hit(prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    ran = prepared(HITS)
    forward(ran, AT - 5)
    node, (intercept, _) = ran.nodes("servers")[0], answering(done(EVENT))

    def unseen(number: int, name: str, call: Call) -> Any:
        answer = intercept(number, name, call)
        for group in answer["AutoScalingGroups"] if name == "DescribeAutoScalingGroups" else ():
            group["Instances"] = [one for one in group["Instances"] if one["InstanceId"] != node]
        return answer

    with calls(monkeypatch, unseen):
        answers = [ran.step("check", phase_index=1)]
        forward(ran, AT)
        answers.append(ran.step("check", phase_index=1))
    assert [(one["state"], one["wait_seconds"]) for one in answers] == [("waiting", 5), ("waiting", 15)]
    assert ran.get(names.unit_fault_key(ran.run, CELL, "measure", 1))["outcome"] == "DONE"


def test_a_deployment_that_allows_no_hits_says_so() -> None:
    with pytest.raises(Exception, match="troop:under_load is false"):
        UnitRequests(None, None).read("x")


def test_a_closed_run_hits_nothing(prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    ran = prepared(HITS)
    forward(ran, AT)
    ran.account.clock.moment = ran.runs.get(ran.run).expires_at + timedelta(seconds=1)
    with calls(monkeypatch) as operations:
        assert ran.check(1) == "failed"
    assert "Invoke" not in operations


def test_a_check_that_is_cut_off_repeats_the_same_request(
    prepared: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = prepared(HITS)
    event = {**EVENT, "hit_at": forward(ran, AT)}
    intercept, requests = answering(done(event))
    for number in range(60):
        cut = cut_at(number, acted=True)

        def both(n: int, name: str, call: Call, cut: Intercept = cut) -> Any:
            return cut(n, name, Call(intercept, n, name, call))

        with calls(monkeypatch, both) as operations:
            try:
                ran.check(1)
            except Cut:
                continue
        if number >= len(operations):
            break
    assert len({json.dumps(one) for one in requests}) == 1
    assert ran.get(names.unit_fault_key(ran.run, CELL, "measure", 1))["event"] == event
