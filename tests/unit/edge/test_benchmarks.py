"""The routes of benchmarks: what is refused before anything is launched, one run for each key, and stopping it."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.unit.edge.account import SETTINGS, Account, calls, cut_at
from tests.unit.edge.asking import ANNA, ask, get
from tests.unit.edge.bench import BUCKET, FILE, FILES, MACHINES, Half, post, request
from troop.aws.clients import client
from troop.bench.definition import from_document
from troop.bench.plan import from_plan_document
from troop.bench.record import CellStatus, Kind, Resource, RunStatus

CALLS = 15
"""To AWS, of a request that nothing speaks against."""

ON = {"benchmarks": True, "max_nodes": 10, "allowed_buckets": ["my-data"]}
BERT = "arn:aws:iam::123456789012:user/bert"


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    return copy.deepcopy(SETTINGS) | ON | getattr(request, "param", {})


@pytest.fixture
def half(account: Account, monkeypatch: pytest.MonkeyPatch) -> Half:
    made = Half(account, ["eu-central-1a", "eu-central-1b"])
    made.deploy()
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made


def changed(**changes: Any) -> dict[str, Any]:
    """The file with some keys of its own, or of its fleet."""
    document = copy.deepcopy(FILE)
    for key, value in changes.items():
        (document["fleets"]["drivers"] if key in ("count", "instance_type", "zones") else document)[key] = value
    return document


def problems(**how: Any) -> dict[str, str]:
    """What is wrong with a request, and it must be something."""
    status, body = post(**how)
    assert status == 400, body
    return {problem["where"]: problem["problem"] for problem in body["problems"]}


def test_a_run_is_on_record_and_has_all_it_needs_when_its_workflow_starts(half: Half) -> None:
    status, run = post(caller=BERT, size="smoke", set={"parameters.threads": 8})
    assert status == 202, run
    assert (run["name"], run["status"], run["nodes"]) == ("reads", "ADMITTED", 1)
    assert run["requested_by"] == BERT
    assert run["at"] == "2026-11-20T22:46:00.000Z"
    assert run["expires_at"] == "2026-11-21T00:46:00.000Z"
    assert half.started() == {run["run"]: {"run": run["run"]}}
    assert run["execution"] == f"{MACHINES.replace('stateMachine', 'execution')}benchmark:{run['run']}"
    objects = half.objects()
    definition = from_document(json.loads(objects.pop(f"runs/{run['run']}/definition.json")))
    assert (definition.size, definition.nodes, definition.parameters["threads"]) == ("smoke", 1, 8)
    assert definition.files == ("ranges.csv", "read.py")
    plan = from_plan_document(json.loads(objects.pop(f"runs/{run['run']}/plan.json")))
    assert [(planned.cell, planned.benchmark) for planned in plan.cells] == [("c001", definition)]
    estimate = json.loads(objects.pop(f"runs/{run['run']}/estimate.json"))
    assert estimate["expected"] == run["estimate"]["expected"]
    assert objects == {f"runs/{run['run']}/files/{name}": content for name, content in FILES.items()}
    told = get(f"/benchmarks/{run['run']}")
    assert told["run"] == run
    assert [(cell["cell"], cell["status"]) for cell in told["cells"]] == [("c001", "PENDING")]
    assert told["resources"] == []


def test_the_same_key_is_the_same_run(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    _, first = post()
    half.account.clock.forward(minutes=1)
    with calls(monkeypatch, lambda number, operation, call: call()) as made:
        assert post() == (200, first)
    assert made == ["GetItem", "GetItem", "StartExecution"]
    assert list(half.started()) == [first["run"]]
    _, second = post(key="k2")
    assert second["run"] != first["run"]


@pytest.mark.parametrize(
    "other", [{"definition": changed(name="other")}, {"size": "smoke"}, {"files": {**FILES, "read.py": b"else"}}]
)
def test_a_key_stands_for_one_request(half: Half, other: dict[str, Any]) -> None:
    _, first = post()
    status, body = post(**other)
    assert status == 409
    assert first["run"] in body["message"]
    assert list(half.started()) == [first["run"]]


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize("number", range(CALLS))
def test_a_request_that_is_cut_off_is_made_good_by_the_next_of_its_key(
    half: Half, monkeypatch: pytest.MonkeyPatch, number: int, acted: bool
) -> None:
    with calls(monkeypatch, cut_at(number, acted)) as made:
        assert post()[0] == 500
    assert len(made) == number + 1
    half.account.clock.forward(minutes=2)
    status, run = post()
    assert status in (200, 202)
    assert half.started() == {run["run"]: {"run": run["run"]}}
    assert [run.run for run in half.runs.page(10)[0]] == [run["run"]]
    assert {key.split("/")[1] for key in half.objects()} == {run["run"]}


def test_a_request_costs_what_it_says(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch, lambda number, operation, call: call()) as made:
        assert post()[0] == 202
    assert made == [
        "GetItem",
        *("DescribeSubnets", "DescribeInstanceTypes", "DescribeInstanceTypeOfferings"),
        *("BatchGetItem", "GetServiceQuota"),  # the prices are kept
        *("UpdateItem", "GetItem"),
        *["PutObject"] * 5,
        "TransactWriteItems",
        "StartExecution",
    ]
    assert len(made) == CALLS


@pytest.mark.parametrize(
    ("how", "where", "said"),
    [
        ({"definition": {}}, "body.definition.name", "is missing: must be given"),
        ({"definition": changed(count=0)}, "body.definition.fleets.drivers.count", "is 0: must be a whole number"),
        ({"definition": changed(count=11)}, "body.definition.fleets", "at most 10 in all"),
        ({"size": "huge"}, "body.size", "is 'huge': must be one of smoke"),
        ({"set": {"parameters.treads": 1}}, "body.set.parameters.treads", "must be one of threads"),
        ({"files": {"other.py": b""}}, "body.definition.phases.0.script", "a file beside the benchmark's: other.py"),
        ({"files": {**FILES, "a/b": b""}}, "body.files.a/b", "is no name that can be used: must be a file's name"),
        ({"files": {**FILES, "large": bytes(2**20)}}, "body.files", "at most 1048576 in all: make artifacts"),
        (
            {"definition": changed(instance_type="c7g.huge")},
            "body.definition.fleets.drivers.instance_type",
            "is 'c7g.huge': must be an instance type that this region has",
        ),
        (
            {"definition": changed(instance_type="mac1.metal")},
            "body.definition.fleets.drivers.instance_type",
            "is 'mac1.metal' (x86_64_mac): must be one of arm64 or x86_64",
        ),
        (
            {"definition": changed(count=3, zones=3, sizes={})},
            "body.definition.fleets.drivers.zones",
            "at most 2: of the network's zones, eu-central-1a, eu-central-1b offer it",
        ),
        (
            {"definition": changed(artifacts=[{"name": "d", "source": "./d", "sha256": "0f" * 32}])},
            "body.definition.artifacts.0.sha256",
            "of d is not in the bucket: must be uploaded first",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_made(
    half: Half, how: dict[str, Any], where: str, said: str
) -> None:
    found = problems(**how)
    assert said in found.get(where, ""), found
    assert half.objects() == {}
    assert half.runs.page(10)[0] == []
    assert half.started() == {}


def test_a_refusal_can_be_read_by_programs(half: Half) -> None:
    _, body = post(definition=changed(count=0))
    (problem,) = body["problems"]
    assert problem["loc"] == ["fleets", "drivers", "count"]
    assert problem["allowed"] == "a whole number from 1 to 10000"
    assert body["message"] == "fleets.drivers.count is 0: must be a whole number from 1 to 10000"


def test_files_must_be_base64(half: Half) -> None:
    status, body = ask("POST", "/benchmarks", request() | {"files": {"read.py": "print()"}})
    assert (status, body["problems"][0]["where"]) == (400, "body.files.read.py")


@pytest.mark.parametrize("depth", [20, 200, 2000, 100_000])
def test_a_document_without_end_is_refused(half: Half, depth: int) -> None:
    body = json.dumps(request()).replace('"threads": 32', '"threads": ' + "[" * depth + "]" * depth)
    assert ask("POST", "/benchmarks", body)[0] == 400


def test_an_answer_names_no_more_than_it_can_hold(half: Half) -> None:
    status, body = post(definition=changed(parameters={f"K{n}": None for n in range(10_000)}))
    assert (status, len(body["problems"])) == (400, 50)
    assert body["message"].endswith(" more")


def test_after_a_refusal_the_key_is_free(half: Half) -> None:
    assert post(definition=changed(count=11))[0] == 400
    assert post()[0] == 202


def test_zones_that_do_not_offer_the_type_do_not_count(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    offers = [{"InstanceType": "c7g.large", "Location": f"eu-central-1{zone}"} for zone in "bc"]

    def answered(number: int, operation: str, call: Callable[[], Any]) -> Any:
        return {"InstanceTypeOfferings": offers} if operation == "DescribeInstanceTypeOfferings" else call()

    with calls(monkeypatch, answered):
        assert "at most 1" in problems(definition=changed(zones=2, sizes={}))["body.definition.fleets.drivers.zones"]
        assert post(definition=changed(zones=1))[0] == 202
        offers.clear()
        found = problems(definition=changed(zones=1), key="k2")
    assert "one that a zone of the deployment's network offers" in found["body.definition.fleets.drivers.instance_type"]


def test_only_allowed_buckets_may_be_read(half: Half) -> None:
    status, body = post(definition=changed(buckets=["my-data", "payroll"]))
    assert status == 403
    assert "may not read payroll: its setting troop:allowed_buckets names my-data. To allow it" in body["message"]
    assert "with its STAGE or DEPLOYMENT where it has one" in body["message"]
    assert "`make deploy ARGS='-c troop:allowed_buckets=my-data,payroll'`" in body["message"]
    assert post(definition=changed(buckets=["my-data"]))[0] == 202


@pytest.mark.parametrize("settings", [{"benchmarks": False}], indirect=True)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/benchmarks", request()),
        ("GET", "/benchmarks", None),
        ("GET", "/benchmarks/20261120-224600-00000000", None),
        ("DELETE", "/benchmarks/20261120-224600-00000000", None),
        ("POST", "/benchmarks/artifacts", {"sha256": "0f" * 32, "size": 1}),
    ],
)
def test_a_deployment_without_benchmarks_says_so(account: Account, method: str, path: str, body: Any) -> None:
    status, answer = ask(method, path, body)
    assert (status, answer["message"]) == (
        403,
        "this deployment runs no benchmarks: its setting troop:benchmarks is false",
    )


# Artifacts


def test_an_artifact_is_put_where_only_it_can_be(half: Half) -> None:
    content = b"x" * 10
    sha256 = "0f" * 32
    status, told = ask("POST", "/benchmarks/artifacts", {"sha256": sha256, "size": len(content)})
    assert status == 200
    assert told["headers"] == {
        "content-length": "10",
        "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(sha256)).decode(),
    }
    url = urlsplit(told["upload_url"])
    assert url.path.endswith(f"artifacts/{sha256}")
    signed = parse_qs(url.query)
    assert signed["X-Amz-SignedHeaders"] == ["content-length;host;x-amz-checksum-sha256"]
    assert signed["X-Amz-Expires"] == ["3600"]


def test_the_oldest_region_signs_headers_too(monkeypatch: pytest.MonkeyPatch, half: Half) -> None:
    from troop.aws import clients
    from troop.aws.run_files import RunFiles

    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    here = clients.presigning_client.__wrapped__("s3")  # not kept: it would serve later tests, of another region
    url = RunFiles(here, BUCKET).upload("0f" * 32, 1).url
    assert "x-amz-checksum-sha256" in parse_qs(urlsplit(url).query)["X-Amz-SignedHeaders"][0]


@pytest.mark.parametrize("region", ["eu-west-1", "ap-southeast-5"])
def test_an_artifact_goes_to_its_region_at_once(monkeypatch: pytest.MonkeyPatch, half: Half, region: str) -> None:
    """The address of all regions redirects what is put into a young bucket, and knows none of the later regions."""
    from troop.aws import clients
    from troop.aws.run_files import RunFiles

    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    here = clients.presigning_client.__wrapped__("s3")  # not kept: it would serve later tests, of another region
    url = RunFiles(here, BUCKET).upload("0f" * 32, 1).url
    assert urlsplit(url).hostname == f"{BUCKET}.s3.{region}.amazonaws.com"


def test_an_artifact_that_is_there_need_not_be_put_again_unless_it_goes_soon(half: Half) -> None:
    sha256 = half.stage(b"data")
    staged = {"sha256": sha256, "size": 4}
    uploaded = half.s3.head_object(Bucket=BUCKET, Key=f"artifacts/{sha256}")["LastModified"]
    half.account.clock.moment = uploaded + timedelta(days=21)
    there = {"sha256": sha256, "staged": True, "upload_url": None, "headers": {}}
    assert ask("POST", "/benchmarks/artifacts", staged) == ask("POST", "/benchmarks/artifacts", {"sha256": sha256})
    assert ask("POST", "/benchmarks/artifacts", staged) == (200, there)
    definition = changed(artifacts=[{"name": "d", "source": "./d", "sha256": sha256}])
    assert post(definition=definition)[0] == 202
    half.account.clock.moment = uploaded + timedelta(days=22, seconds=1)
    assert ask("POST", "/benchmarks/artifacts", {"sha256": sha256}) == (200, there | {"staged": False})
    assert ask("POST", "/benchmarks/artifacts", staged)[1]["upload_url"]
    assert "is not in the bucket" in problems(definition=definition, key="k2")["body.definition.artifacts.0.sha256"]


@pytest.mark.parametrize(
    "body", [{"sha256": "0F" * 32, "size": 1}, {"sha256": "0f" * 32, "size": 5 * 1024**3 + 1}, {"size": 1}]
)
def test_artifacts_that_cannot_be(half: Half, body: dict[str, Any]) -> None:
    assert ask("POST", "/benchmarks/artifacts", body)[0] == 400


# What is told


def test_runs_are_listed_by_time_page_by_page(half: Half) -> None:
    made = []
    for number in range(5):
        made.append(post(key=f"k{number}")[1]["run"])
        half.account.clock.forward(minutes=1)
    first = get("/benchmarks", limit=2)
    second = get("/benchmarks", limit=2, cursor=first["cursor"])
    third = get("/benchmarks", limit=2, cursor=second["cursor"])
    found = [run["run"] for page in (first, second, third) for run in page["runs"]]
    assert found == made[::-1]
    assert third["cursor"] is None


@pytest.mark.parametrize("cursor", ["x", "AAAAAAAAAAA", "é"])
def test_a_cursor_that_is_none(half: Half, cursor: str) -> None:
    assert ask("GET", "/benchmarks", cursor=cursor)[0] == 400


def test_all_that_is_on_record_is_told(half: Half) -> None:
    _, made = post()
    run, now = made["run"], half.account.clock.moment
    half.runs.set_running(run, made["execution"])
    resources = [
        Resource(run, "c001", kind, name, now) for kind, name in ((Kind.INSTANCE, "i-1"), (Kind.SECURITY_GROUP, "sg"))
    ]
    half.runs.resources.created(resources, now)
    half.runs.cells.change(run, "c001", phase="launch", at=now, status=CellStatus.RUNNING)
    half.runs.cells.change(run, "c001", phase="boot", at=now + timedelta(minutes=1))
    half.runs.cells.change(run, "c001", phase="measure", at=now + timedelta(minutes=2))
    half.runs.cells.change(run, "c001", status=CellStatus.SUCCEEDED, results=[{"role": "drivers", "p99_ms": 1.5}])
    half.runs.close(run, RunStatus.SUCCEEDED, None, now)
    half.runs.resources.gone(resources, now + timedelta(minutes=2))
    half.runs.conclude(run, now + timedelta(minutes=3))
    told = get(f"/benchmarks/{run}")
    assert (told["run"]["status"], told["run"]["ended_at"]) == ("SUCCEEDED", "2026-11-20T22:49:00.000Z")
    (cell,) = told["cells"]
    assert (cell["status"], cell["results"]) == ("SUCCEEDED", [{"role": "drivers", "p99_ms": 1.5}])
    assert [step["phase"] for step in cell["steps"]] == ["launch", "boot", "measure"]
    assert [(r["kind"], r["name"], r["gone_at"]) for r in told["resources"]] == [
        ("security-group", "sg", "2026-11-20T22:48:00.000Z"),
        ("instance", "i-1", "2026-11-20T22:48:00.000Z"),
    ]


@pytest.mark.parametrize("run", ["20261120-224600-00000000", "nonsense", "artifacts"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_run_that_there_is_not(half: Half, method: str, run: str) -> None:
    status, body = ask(method, f"/benchmarks/{run}")
    assert status == 404
    assert "GET /benchmarks lists" in body["message"]


# Stopping


def test_a_stopped_run_is_closed_its_workflow_ended_and_its_teardown_started(half: Half) -> None:
    _, made = post()
    status, run = ask("DELETE", f"/benchmarks/{made['run']}", caller=BERT)
    assert (status, run["status"], run["reason"]) == (202, "STOPPING", f"stopped by {BERT}")
    assert half.runs.get(run["run"]).closed_at is not None
    assert client("stepfunctions").describe_execution(executionArn=made["execution"])["status"] == "ABORTED"
    (work,) = half.started("teardown").values()
    assert work == {"run": run["run"], "status": "STOPPED", "reason": f"stopped by {BERT}"}


def test_stopping_again_is_harmless_and_a_teardown_that_failed_is_tried_again(half: Half) -> None:
    _, made = post()
    for _ in range(3):
        status, run = ask("DELETE", f"/benchmarks/{made['run']}")
        assert (status, run["status"], run["reason"]) == (202, "STOPPING", f"stopped by {ANNA}")
    assert len(half.started("teardown")) == 1
    half.account.clock.forward(minutes=1)
    ask("DELETE", f"/benchmarks/{made['run']}")
    assert len(half.started("teardown")) == 2


def test_a_run_whose_workflow_never_started_can_be_stopped(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch, cut_at(CALLS - 1, acted=False)):
        assert post()[0] == 500
    (run,) = half.runs.page(10)[0]
    assert ask("DELETE", f"/benchmarks/{run.run}")[0] == 202
    assert len(half.started("teardown")) == 1
    assert post()[0] == 200
    assert half.started() == {}  # it was stopped: the repeated request must not bring it back


def test_of_a_run_that_has_ended_nothing_is_changed(half: Half) -> None:
    _, made = post()
    half.runs.close(made["run"], RunStatus.SUCCEEDED, None, half.account.clock.moment)
    ended = half.runs.conclude(made["run"], half.account.clock.moment)
    status, run = ask("DELETE", f"/benchmarks/{made['run']}")
    assert (status, run["status"]) == (200, "SUCCEEDED")
    assert half.runs.get(made["run"]) == ended
    assert half.started("teardown") == {}


def test_a_run_that_is_torn_down_already_keeps_its_outcome(half: Half) -> None:
    _, made = post()
    half.runs.close(made["run"], RunStatus.FAILED, "a node died", half.account.clock.moment)
    status, run = ask("DELETE", f"/benchmarks/{made['run']}")
    assert (status, run["reason"]) == (202, "a node died")
    assert client("stepfunctions").describe_execution(executionArn=made["execution"])["status"] == "RUNNING"
    assert len(half.started("teardown")) == 1
