"""`troop fleet`: up, larger, smaller and down, with what is said on the way and what it ends with."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.bench import fleet_show
from cli.client.api import Answer
from cli.commands import fleet
from cli.shared import watching
from cli.shared.errors import Exit
from tests.unit.cli.conftest import FakeApi, Run

ID = "20261120-150000-1f0c9b2e"
ONE = f"fleets/{ID}"

TEXT = """\
name: workers
expires_after: 8h
fleets:
  workers:
    count: 2
    instance_type: c7g.large
setup: setup.sh
"""


@pytest.fixture(autouse=True)
def never_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "_STALE_SECONDS", 0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "setup.sh").write_text("#!/bin/sh\n")
    (tmp_path / "fleet.yaml").write_text(TEXT)
    return tmp_path / "fleet.yaml"


def out(desired: int = 2, in_service: int = 0, ready: int = 0, failed: int = 0, **more: Any) -> dict[str, Any]:
    role = {"role": "workers", "desired": desired, "in_service": in_service, "ready": ready, "failed": failed}
    return {
        "fleet": ID,
        "name": "workers",
        "status": "RUNNING",
        "reason": None,
        "at": "2026-11-20T15:00:00.000Z",
        "expires_at": "2026-11-20T23:00:00.000Z",
        "requested_by": "arn:aws:iam::111122223333:user/ada",
        "roles": [{**role, "starting": 0, "leaving": 0}],
        "seen_at": "2026-11-20T15:01:00.000Z",
        "closed_at": None,
        "ended_at": None,
    } | more


def fleet_document(
    *counts: int, problems: tuple[str, ...] = (), refusals: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    """What GET says."""
    where = {"role": "workers", "zone": "a", "instance_type": "c7g.large", "place": "in-service", "ready": False}
    nodes = [{"id": f"i-{n}", **where, "problem": problem} for n, problem in enumerate(problems)]
    return {"fleet": out(*counts, **more), "nodes": nodes, "refusals": list(refusals), "resources": []}


def going(api: FakeApi, *looks: dict[str, Any]) -> None:
    """What the API answers to each look."""
    api.refusals["POST", "fleets"] = [Answer(202, out())]
    api.refusals["PATCH", ONE] = [Answer(200, out())]
    api.refusals["GET", ONE] = [Answer(200, document) for document in looks]


ENDED: dict[str, Any] = {"status": "STOPPED", "reason": "enough", "closed_at": "2026-11-20T15:10:00.000Z"}
ENDED["ended_at"] = "2026-11-20T15:11:00.000Z"


def test_up_says_how_many_are_there_until_all_are_ready(run: Run, api: FakeApi, file: Path) -> None:
    going(
        api,
        fleet_document(2, 0),
        fleet_document(2, 0),
        fleet_document(2, 1),
        fleet_document(2, 2, 1),
        fleet_document(2, 2, 2),
    )
    result = run("fleet", "up", str(file.parent), "--set", "fleets.workers.count=2", "--key", "k1")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "copied to nodes, 10 bytes in all: setup.sh (10 bytes)",
        "expected to cost $0.13, at most $1.50",
        f"started: {ID}, until 2026-11-20 23:00:00 UTC",
        "workers: 0 of 2 in service, 0 ready",
        "workers: 1 of 2 in service, 0 ready",
        "workers: 2 of 2 in service, 1 ready",
        "workers: 2 of 2 in service, 2 ready",
        f"{ID} is ready; to remove it: troop fleet down {ID}",
    ]
    body = {
        "definition": yaml.safe_load(TEXT),
        "set": {"fleets.workers.count": 2},
        "files": {"setup.sh": base64.b64encode(b"#!/bin/sh\n").decode()},
    }
    assert api.calls[:2] == [("POST", "fleets/estimate", body), ("POST", "fleets", {**body, "key": "k1"})]


@pytest.mark.parametrize("refusal", [Answer(403, {"message": "not allowed"}), Answer(503, {"message": "no prices"})])
def test_with_a_key_what_cannot_be_estimated_may_be_on_record(
    run: Run, api: FakeApi, file: Path, refusal: Answer
) -> None:
    going(api)
    api.refusals["POST", "fleets/estimate"] = [refusal]
    api.refusals["POST", "fleets"] = [Answer(200, out())]
    result = run("fleet", "up", str(file), "--no-wait")
    assert (result.exit_code != 0, ("POST", "fleets") in [call[:2] for call in api.calls]) == (True, False)
    result = run("fleet", "up", str(file), "--no-wait", "--key", "k1")
    assert result.exit_code == 0, result.output
    assert "no cost estimate: " in result.stderr
    assert f"already started: {ID}" in result.stdout


def test_scale_waits_until_there_are_so_many(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    going(api, fleet_document(5, 2, 2), fleet_document(5, 5, 5))
    result = run("fleet", "scale", ID, "--count", "5")
    assert result.exit_code == 0, result.output
    assert "workers: 5 of 5 in service, 5 ready" in result.stdout
    assert api.calls[0] == ("PATCH", ONE, {"count": 5})
    going(api, fleet_document(0, 0, 0))
    assert ok("fleet", "scale", ID, "--count", "0", "--role", "workers")["fleet"]["roles"][0]["desired"] == 0
    assert ("PATCH", ONE, {"count": 0, "role": "workers"}) in api.calls


def test_up_of_a_fleet_without_nodes_waits_for_its_launch(run: Run, api: FakeApi, file: Path) -> None:
    going(api, fleet_document(0, seen_at=None), fleet_document(0))
    result = run("fleet", "up", str(file))
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-2:] == [
        "workers: 0 of 0 in service, 0 ready",
        f"{ID} is ready; to remove it: troop fleet down {ID}",
    ]
    assert [path for method, path, _ in api.calls if method == "GET"] == [ONE, ONE]


def test_without_waiting(run: Run, api: FakeApi, file: Path) -> None:
    going(api)
    for words in (("up", str(file)), ("scale", ID, "--count", "3")):
        result = run("fleet", *words, "--no-wait")
        assert (result.exit_code, f"troop fleet status {ID}" in result.stdout) == (0, True)
    api.refusals["DELETE", ONE] = [Answer(202, out(closed_at="2026-11-20T15:10:00.000Z", status="STOPPING"))]
    assert "is being removed" in run("fleet", "down", ID, "--no-wait").stdout
    assert [(method, path) for method, path, _ in api.calls] == [
        ("POST", "fleets/estimate"),
        ("POST", "fleets"),
        ("PATCH", ONE),
        ("DELETE", ONE),
    ]


def test_nodes_that_cannot_set_themselves_up_are_a_failure(run: Run, api: FakeApi, file: Path) -> None:
    """Once nothing more is to come: the others may yet have been on their way."""
    problem = "setup.sh ended with exit code 3"
    going(api, fleet_document(2, 2, 0, 1, problems=(problem,)), fleet_document(2, 2, 1, 1, problems=(problem,)))
    result = run("fleet", "up", str(file))
    assert result.exit_code == Exit.FAILED
    assert f"i-0: {problem}; the fleet stays; troop fleet status {ID}" in result.stderr
    assert len([call for call in api.calls if call[:2] == ("GET", ONE)]) == 2


def test_launch_refusal_is_shown_once(run: Run, api: FakeApi, file: Path) -> None:
    short = fleet_document(2, 1, refusals=("workers: no capacity",))
    going(api, short, short, fleet_document(2, 2, 2))
    result = run("fleet", "up", str(file))
    assert result.stdout.count("could not be launched: workers: no capacity") == 1


@pytest.mark.parametrize(
    "words",
    ["more vCPU capacity than your current vCPU limit", "MaxSpotInstanceCountExceeded", "You are not authorized"],
)
def test_permanent_launch_refusal_ends_the_wait(run: Run, api: FakeApi, file: Path, words: str) -> None:
    refused = fleet_document(2, 1, 1, refusals=("workers: no capacity", f"workers: {words}"))
    for command in (("up", str(file)), ("scale", ID, "--count", "2")):
        going(api, fleet_document(2, 1, 1, refusals=("workers: no capacity",)), refused)
        result = run("fleet", *command)
        assert result.exit_code == Exit.FAILED, result.output
        assert f"workers: 1 of 2 in service, 1 ready; could not be launched: workers: {words}" in result.stderr
        assert f"the fleet stays, and costs money: troop fleet status {ID}, troop fleet down {ID}" in result.stderr
        assert len([call for call in api.calls if call[:2] == ("GET", ONE)]) == 2
        api.calls.clear()


@pytest.mark.parametrize(
    ("role", "starting", "words", "is_hopeless"),
    [
        ("workers", 0, "You are not authorized", True),
        ("workers", 1, "You are not authorized", False),  # the next launch has gone well so far
        ("blocked", 0, "no capacity", False),  # a role's name says nothing
    ],
)
def test_which_refusals_leave_no_hope(role: str, starting: int, words: str, is_hopeless: bool) -> None:
    seen = fleet_document(2, 1, 1, refusals=(f"{role}: {words}",))
    seen["fleet"]["roles"][0] |= {"role": role, "starting": starting}
    assert (fleet_show.hopeless(seen) is not None) is is_hopeless


def test_a_refusal_of_before_is_not_the_end(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "_STALE_SECONDS", 60.0)
    going(api, fleet_document(2, 1, 1, refusals=("workers: You are not authorized",)), fleet_document(2, 2, 2))
    assert run("fleet", "scale", ID, "--count", "2").exit_code == 0


@pytest.mark.parametrize(("within", "seconds"), [(1500, 1500), (None, 4 * 3600 + 300)])
def test_nodes_that_never_register_are_waited_for_as_long_as_the_file_allows(
    run: Run, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch, within: int | None, seconds: int
) -> None:
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda _: passed.append(passed.pop() + 500))
    going(api, fleet_document(2, 2))
    for method, path in (("POST", "fleets"), ("PATCH", ONE)):
        api.refusals[method, path] = [Answer(200, out(ready_within=within))]
    for command in (("up", str(file)), ("scale", ID, "--count", "2")):
        passed[0] = 0.0
        result = run("fleet", *command)
        assert result.exit_code == Exit.FAILED
        assert f"not all nodes are ready after {seconds} s; the fleet stays, and costs money" in result.stderr
        assert seconds <= passed[0] < seconds + 500


MONEY = {"expected": 1.25, "most": 1.25, "currency": "USD", "budget": None}


def test_fleet_shows_its_expected_and_its_actual_cost(run: Run, api: FakeApi, file: Path) -> None:
    line = "expected to cost $1.25 until it expires at 2026-11-20 23:00:00 UTC"
    going(
        api,
        fleet_document(2, 2, 2, estimate=MONEY),
        fleet_document(2, 2, 2, estimate=MONEY, scaled_at="2026-11-20T16:00:00.000Z"),
    )
    assert f"{line}\n" in run("fleet", "status", ID).stdout
    assert f"{line}, with its initial nodes\n" in run("fleet", "status", ID).stdout
    cost = {"amount": 0.5, "currency": "USD", "items": [], "unknown": ["gp4"]}
    api.refusals["DELETE", ONE] = [Answer(202, out(2, 2, 2, closed_at=ENDED["closed_at"]))]
    going(api, fleet_document(2, **ENDED, cost=cost, estimate=MONEY))
    sentence = f"{ID} STOPPED: enough (nothing is left of it; it cost $0.50, plus items without a price: gp4)"
    for command in ("down", "status"):
        assert run("fleet", command, ID).stdout.splitlines()[-1] == sentence
    going(api, {**fleet_document(2, 2, 2, estimate=MONEY), "cost_so_far": cost})
    assert "cost so far: $0.50, plus items without a price: gp4\n" in run("fleet", "status", ID).stdout
    going(api, fleet_document(2, 2, 2, estimate={**MONEY, "expected": 0.0}))
    assert "none of its resources has a known price" in run("fleet", "status", ID).stdout


def test_a_fleet_that_ends_meanwhile_is_a_failure(run: Run, api: FakeApi, file: Path) -> None:
    going(api, fleet_document(2, 0, **ENDED | {"status": "FAILED", "reason": "no subnet"}))
    result = run("fleet", "up", str(file))
    assert (result.exit_code, f"{ID} FAILED: no subnet" in result.stderr) == (Exit.FAILED, True)


def test_down_waits_until_nothing_is_left(run: Run, api: FakeApi) -> None:
    closed: dict[str, Any] = {"closed_at": "2026-11-20T15:10:00.000Z", "status": "STOPPING"}
    api.refusals["DELETE", ONE] = [Answer(202, out(2, 2, 2, **closed)), Answer(200, out(2, **ENDED))]
    going(api, fleet_document(2, 1, 1, **closed), fleet_document(2, **ENDED))
    result = run("fleet", "down", ID)
    assert result.stdout.splitlines()[-1] == f"{ID} STOPPED: enough (nothing is left of it)"
    assert run("fleet", "down", ID).exit_code == 0


@pytest.mark.parametrize(
    ("status", "code"), [(400, Exit.REFUSED), (404, Exit.REFUSED), (409, Exit.REFUSED), (500, Exit.API_FAILED)]
)
def test_refusal_of_the_api_is_shown_in_its_words(run: Run, api: FakeApi, status: int, code: Exit) -> None:
    problems = [{"where": "body.count", "problem": "is 11"}] if status == 400 else None
    body = {"statusCode": status, "message": "at most 10", "problems": problems}
    api.refusals["PATCH", ONE] = [Answer(status, body)]
    result = run("fleet", "scale", ID, "--count", "11")
    assert (result.exit_code, "at most 10" in result.stderr) == (code, True)


BUDGET = {
    "where": "budget",
    "problem": "is 0.1: must be at least $0.13",
    "allowed": "at least $0.13",
    "loc": ["budget"],
}


def test_fleet_over_its_budget_is_not_started(run: Run, api: FakeApi, file: Path) -> None:
    file.write_text(TEXT + "budget: 0.1\n")
    going(api)
    api.estimate |= {"problems": [BUDGET], "warnings": ["no price of io2"]}
    result = run("fleet", "up", str(file), "--accept-unknown-prices")
    assert result.exit_code == Exit.REFUSED
    assert f"{file}:8: budget is 0.1: must be at least $0.13" in result.stderr
    assert "no price of io2" in result.stderr
    ((_, path, body),) = api.calls
    assert (path, body["set"]) == ("fleets/estimate", {"accept_unknown_prices": True})


def test_an_estimate_line_by_line(run: Run, ok: Callable[..., Any], api: FakeApi, file: Path) -> None:
    result = run("fleet", "estimate", str(file.parent))
    assert result.exit_code == 0, result.output
    assert "c7g.large, on-demand" in result.stdout
    assert result.stdout.splitlines()[-1] == "expected to cost $0.13, at most $1.50"
    assert ok("fleet", "estimate", str(file)) == api.estimate
    api.estimate |= {"problems": [BUDGET]}
    result = run("fleet", "estimate", str(file))
    assert (result.exit_code, "this would be refused: budget is 0.1" in result.stderr) == (Exit.REFUSED, True)
    assert {path for _, path, _ in api.calls} == {"fleets/estimate"}


def test_a_file_is_checked_without_asking_anybody(run: Run, ok: Callable[..., Any], api: FakeApi, file: Path) -> None:
    output = run("fleet", "validate", str(file.parent)).stdout
    assert f"{file}: valid; workers: 2 workers (c7g.large), ready within 25 min; it expires after 8 h" in output
    assert (
        ok("fleet", "validate", str(file), "--set", "fleets.workers.count=5")["fleet"]["fleets"]["workers"]["count"]
        == 5
    )
    file.write_text(TEXT.replace("count: 2", "count: 0"))
    result = run("fleet", "validate", str(file), "--json")
    assert (result.exit_code, [one["line"] for one in json.loads(result.stdout)["problems"]]) == (Exit.USAGE, [5])
    assert api.calls == []


def test_a_wrong_file_asks_for_nothing(run: Run, api: FakeApi, file: Path) -> None:
    file.write_text(TEXT.replace("count: 2", "count: 0") + "phases: []\n")
    result = run("fleet", "up", str(file))
    assert result.exit_code == Exit.USAGE
    assert f"{file}:5: fleets.workers.count is 0: must be at least 1" in result.stderr
    assert f"{file}:8: phases is not known" in result.stderr
    assert api.calls == []


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_it_standing(run: Run, api: FakeApi, file: Path) -> None:
    going(api, fleet_document(2, 0))
    result = run("fleet", "up", str(file))
    assert (result.exit_code, f"troop fleet down {ID}" in result.stderr) == (130, True)
    assert not [call for call in api.calls if call[0] == "DELETE"]


def test_failed_poll_does_not_end_the_command(
    run: Run, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FAILURES", 2)
    going(api)
    api.refusals["GET", ONE] = [Answer(500, None), Answer(200, fleet_document(2, 2, 2))]
    assert run("fleet", "up", str(file)).exit_code == 0
    api.refusals["GET", ONE] = [Answer(500, None)]
    result = run("fleet", "up", str(file))
    assert (result.exit_code, f"the fleet continues: troop fleet status {ID}" in result.stderr) == (12, True)


def test_status_and_list_show_nodes_and_problems(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    going(api, fleet_document(2, 1, 0, 1, problems=("no bucket",), refusals=("workers: no capacity",)))
    shown = run("fleet", "status", ID).stdout
    for words in ("1 of 2 in service, 0 ready, 1 failed", "no capacity", "i-0", "no bucket", "23:00:00"):
        assert words in shown
    assert ok("fleet", "status", ID)["nodes"][0]["id"] == "i-0"
    going(api, {**fleet_document(2, 1, 0, 1, problems=("no bucket",)), "nodes_left_out": 1200})
    assert "and 1,200 more nodes" in run("fleet", "status", ID).stdout
    api.refusals["GET", "fleets"] = [Answer(200, {"fleets": [out(2, 2, 1), out(**ENDED)], "cursor": None})]
    listed = run("fleet", "list").stdout
    assert "workers 1/2" in listed
    assert "enough" in listed
    assert len(ok("fleet", "list")["fleets"]) == 2
    api.refusals["GET", "fleets"] = [Answer(200, {"fleets": [], "cursor": None})]
    assert "there are no fleets" in run("fleet", "list").stderr


def _backed(in_service: int, ready: int, spot: int, starting: int = 0) -> dict[str, Any]:
    document = fleet_document(5, in_service, ready)
    document["fleet"]["roles"][0] |= {
        "starting": starting, "spot": spot, "on_demand": in_service - spot, "backup": True, "max_price": None,
    }  # fmt: skip
    return document


@pytest.mark.parametrize(
    ("counts", "complete"),
    [((5, 5, 2), True), ((6, 5, 3, 1), True), ((5, 4, 2), False), ((4, 4, 4, 1), False), ((9, 9, 5), False)],
)
def test_a_fleet_with_a_backup_is_complete_while_spot_returns(counts: tuple[int, ...], complete: bool) -> None:
    """One node more than wanted may exist meanwhile."""
    assert fleet_show.is_complete(_backed(*counts)["fleet"]) is complete


def test_spot_refusal_with_a_backup_is_not_permanent() -> None:
    document = _backed(2, 2, 2)
    quota = "Max spot instance count exceeded"
    assert fleet_show.hopeless({**document, "refusals": [f"workers on spot: {quota}"]}) is None
    assert fleet_show.hopeless({**document, "refusals": [f"workers on demand: {quota}"]}) is not None


def test_status_says_what_was_bought_and_what_spot_has_saved(run: Run, api: FakeApi) -> None:
    cost = {"amount": 1.0, "currency": "USD", "items": [], "unknown": [], "on_demand": 2.5}
    bought = [
        {"role": "workers", "purchase": "on-demand", "nodes": 1, "hours": 1.5},
        {"role": "workers", "purchase": "spot", "nodes": 7, "hours": 31.25},
    ]
    going(api, {**_backed(5, 5, 4), "bought": bought, "cost_so_far": cost})
    lines = run("fleet", "status", ID).stdout.splitlines()
    assert lines[0].endswith("workers: 5 of 5 in service (4 on spot, 1 on demand), 5 ready")
    assert lines[-3:] == [
        "cost so far: $1.00",
        "workers so far: 1 node on demand (1.50 hours), 7 nodes on spot (31.25 hours)",
        "saved by spot: $1.50 of $2.50, the cost with all nodes on demand",
    ]
