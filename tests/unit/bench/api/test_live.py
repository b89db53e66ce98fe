"""The route of what a run does right now: whose summaries count, and that one merge serves all viewers."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from tests.unit.account.account import calls as intercepted
from tests.unit.account.account import refusing
from tests.unit.account.asking import ask, get
from tests.unit.account.bench import BUCKET, Half, post
from troop.bench.definition import names
from troop.bench.definition.roster import Node, make_roster, to_document
from troop.bench.records.record import CellStatus, RunStatus
from troop.measure.live import Live, LiveOperation
from troop.measure.windows import highest_in, index_of

CELL = "c001"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, half: Half) -> Counter[str]:
    """AWS's operations by how often they are called. Objects are as old as the account's clock says."""
    counted: Counter[str] = Counter()
    written: dict[str, datetime] = {}
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        counted[operation] += 1
        if operation == "PutObject":
            written[parameters["Key"]] = half.account.clock.moment
        answer = real(self, operation, parameters)
        for one in answer.get("Contents", []) if operation == "ListObjectsV2" else []:
            one["LastModified"] = written.get(one["Key"], one["LastModified"])
        return answer

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return counted


def measuring(half: Half, phase: str = "measure") -> str:
    """A run whose cell is in a phase."""
    status, answer = post()
    assert status == 202, answer
    run = str(answer["run"])
    definition = half.objects()[names.definition_key(run)]
    half.s3.put_object(Bucket=BUCKET, Key=names.cell_definition_key(run, CELL), Body=definition)
    nodes = {f"i-{n}": Node(f"i-{n}", "drivers", "eu-central-1a") for n in range(1, 3)}
    roster = json.dumps(to_document(make_roster(list(nodes.values()))))
    half.s3.put_object(Bucket=BUCKET, Key=names.roster_key(run, CELL), Body=roster)
    half.runs.cells.change(run, CELL, phase=phase, at=half.account.clock.moment, status=CellStatus.RUNNING)
    return run


def live(half: Half, node: str = "i-1", count: int = 1500, **more: Any) -> Live:
    now = half.account.clock.moment.timestamp()
    values: dict[str, Any] = {"role": "drivers", "phase": "measure", "until": int(now), "seconds": 15}
    values |= {"measured_from": now - 60, "measured_seconds": 300.0, "cpu": 420}
    operations = {"read": LiveOperation(count, 30, {index_of(1000): count})}
    return Live(node=node, operations=operations, **{**values, **more})


def upload(half: Half, run: str, one: Live, body: bytes | None = None) -> None:
    key = f"{names.live_prefix(run, CELL)}AROA:{one.node}.json"
    content = json.dumps(one.document()).encode() if body is None else body
    half.s3.put_object(Bucket=BUCKET, Key=key, Body=content)


def test_live_view_shows_rates_times_processors_and_time_left(half: Half, calls: Counter[str]) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    upload(half, run, live(half, "i-2", 750))
    answer = get(f"/benchmarks/{run}/live")
    assert (answer["state"], answer["status"], answer["unread"]) == ("measuring", "ADMITTED", 0)
    (cell,) = answer["cells"]
    assert (cell["cell"], cell["phase"], cell["seconds_left"], cell["warm_up_seconds_left"]) == (
        CELL,
        "measure",
        240,
        0,
    )
    p50 = highest_in(index_of(1000)) / 1000
    figures = {"per_second": 150.0, "errors_per_second": 4.0, "p50_ms": p50, "p99_ms": p50}
    assert cell["total"] == figures
    assert cell["operations"] == [{**figures, "role": "drivers", "operation": "read"}]
    assert cell["roles"] == [
        {
            "role": "drivers",
            "reporting": 2,
            "expected": 2,
            "cpu_percent": 42.0,
            "cpu_percent_max": 42.0,
            "iowait_percent": None,
        }
    ]
    assert cell["history"] == [{**figures, "at": answer["at"], "phase": "measure"}]


def test_one_merge_serves_all_viewers_for_fifteen_seconds(half: Half, calls: Counter[str]) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    first = get(f"/benchmarks/{run}/live")
    upload(half, run, live(half, count=3000))
    calls.clear()
    half.account.clock.forward(seconds=14)
    again = get(f"/benchmarks/{run}/live")
    assert again["cells"] == first["cells"]
    assert calls == {"GetItem": 1, "GetObject": 1}, "a fresh merge costs as much as the API's description says"
    half.account.clock.forward(seconds=2)
    later = get(f"/benchmarks/{run}/live")
    assert (later["cells"][0]["total"]["per_second"], len(later["cells"][0]["history"])) == (200.0, 2)


def test_who_comes_during_a_merge_gets_the_one_before(half: Half, calls: Counter[str]) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    first = get(f"/benchmarks/{run}/live")
    half.account.clock.forward(seconds=20)
    get(f"/benchmarks/{run}/live")  # claims
    half.s3.put_object(Bucket=BUCKET, Key=names.live_key(run), Body=json.dumps(stored_at(half, run, first["at"])))
    calls.clear()
    assert get(f"/benchmarks/{run}/live")["at"] == first["at"]
    assert calls["PutObject"] == 0
    half.s3.delete_object(Bucket=BUCKET, Key=names.live_key(run))
    nothing = get(f"/benchmarks/{run}/live")
    assert (nothing["state"], nothing["at"], nothing["cells"]) == ("waiting", None, [])
    assert "nothing is measured" in nothing["message"]


def stored_at(half: Half, run: str, at: str) -> dict[str, Any]:
    return {**json.loads(half.objects()[names.live_key(run)]), "at": at}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"[" * 100_000, b'{"format": "troop.live/2"}', b" " * 1_100_000], ids=len
)
def test_unreadable_live_file_is_counted_and_breaks_nothing(half: Half, calls: Counter[str], body: bytes) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    upload(half, run, live(half, "i-2"), body)
    answer = get(f"/benchmarks/{run}/live")
    assert (answer["unread"], answer["cells"][0]["roles"][0]["reporting"]) == (1, 1)


def test_a_node_speaks_for_itself_alone(half: Half, calls: Counter[str]) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    upload(half, run, live(half, "i-2"), json.dumps(live(half, "i-3").document()).encode())
    answer = get(f"/benchmarks/{run}/live")
    assert (answer["unread"], answer["cells"][0]["total"]["per_second"]) == (1, 100.0)


def test_summaries_of_a_minute_ago_or_of_another_phase_do_not_count(half: Half, calls: Counter[str]) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    half.account.clock.forward(seconds=61)
    upload(half, run, live(half, "i-2", phase="measure.0"))
    answer = get(f"/benchmarks/{run}/live")
    assert answer["state"] == "waiting"
    assert answer["cells"][0]["roles"][0] == {
        "role": "drivers", "reporting": 0, "expected": 2, "cpu_percent": None, "cpu_percent_max": None,
        "iowait_percent": None
    }  # fmt: skip


def test_nodes_of_other_runs_do_not_count(half: Half, calls: Counter[str]) -> None:
    """Every node of the deployment may write under its own id into any run."""
    run = measuring(half)
    upload(half, run, live(half))
    upload(half, run, live(half, "i-2"))
    for n in range(3, 15):
        upload(half, run, live(half, f"i-{n}", 2**50, role=("drivers", "drivers\u202e<b>")[n % 2]))
    calls.clear()
    answer = get(f"/benchmarks/{run}/live")
    assert (answer["unread"], answer["cells"][0]["total"]["per_second"]) == (0, 200.0)
    assert [(role["role"], role["reporting"]) for role in answer["cells"][0]["roles"]] == [("drivers", 2)]
    assert calls["GetObject"] <= 3 + 2, "besides the merge before, the definition and the roster"


def test_a_node_has_the_role_of_the_roster(half: Half, calls: Counter[str]) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    upload(half, run, live(half, "i-2", role="servers"))
    answer = get(f"/benchmarks/{run}/live")
    assert (answer["unread"], [role["role"] for role in answer["cells"][0]["roles"]]) == (1, ["drivers"])


@pytest.mark.parametrize("exists", [False, True])
def test_without_a_roster_nobody_counts(
    half: Half, calls: Counter[str], monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    """S3 answers ``AccessDenied`` for a missing object to whoever may list only part of the bucket."""
    run = measuring(half)
    key = names.roster_key(run, CELL)
    if not exists:
        half.s3.delete_object(Bucket=BUCKET, Key=key)
    upload(half, run, live(half))
    counting = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation == "GetObject" and parameters["Key"] == key:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, operation)
        return counting(self, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    status, answer = ask("GET", f"/benchmarks/{run}/live")
    if exists:
        assert status == 500, "a permission is missing"
    else:
        assert answer["cells"][0]["roles"][0]["reporting"] == 0


@pytest.mark.parametrize("phase", ["launch", "boot", "collect", "teardown"])
def test_between_phases_nothing_is_listed(half: Half, calls: Counter[str], phase: str) -> None:
    run = measuring(half, phase)
    upload(half, run, live(half))
    calls.clear()
    answer = get(f"/benchmarks/{run}/live")
    assert (answer["state"], answer["cells"][0]["phase"]) == ("waiting", phase)
    assert "begin with the next measured phase" in answer["message"]
    assert calls["ListObjectsV2"] == 0


def test_without_a_definition_it_shows_what_nodes_say(half: Half, calls: Counter[str]) -> None:
    run = measuring(half)
    half.s3.delete_object(Bucket=BUCKET, Key=names.cell_definition_key(run, CELL))
    upload(half, run, live(half))
    (role,) = get(f"/benchmarks/{run}/live")["cells"][0]["roles"]
    assert (role["reporting"], role["expected"]) == (1, None)


@pytest.mark.parametrize("body", [b"{", b'{"format": "troop.live-view/9"}', b"[1]"])
def test_merge_of_another_version_is_merged_again(half: Half, calls: Counter[str], body: bytes) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    half.s3.put_object(Bucket=BUCKET, Key=names.live_key(run), Body=body)
    assert get(f"/benchmarks/{run}/live")["state"] == "measuring"


def test_an_ended_run_says_how_it_ended(half: Half, calls: Counter[str]) -> None:
    run = measuring(half)
    upload(half, run, live(half))
    get(f"/benchmarks/{run}/live")
    half.runs.close(run, RunStatus.SUCCEEDED, None, half.account.clock.moment)
    half.runs.conclude(run, half.account.clock.moment)
    answer = get(f"/benchmarks/{run}/live")
    assert (answer["state"], answer["status"], answer["cells"]) == ("ended", "SUCCEEDED", [])
    assert answer["message"] == "the run has ended: SUCCEEDED"


def test_a_run_that_there_is_not(half: Half) -> None:
    status, body = ask("GET", "/benchmarks/20261120-224600-00000000/live")
    assert (status, body["code"]) == (404, "no-such-run")


def test_a_permission_that_is_missing_is_no_silence_of_the_nodes(
    half: Half, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = measuring(half)
    with intercepted(monkeypatch, refusing("ListObjectsV2", "AccessDenied")):
        assert ask("GET", f"/benchmarks/{run}/live")[0] == 500
