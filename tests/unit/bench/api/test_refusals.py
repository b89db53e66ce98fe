"""What the API refuses of a benchmark before anything is launched, in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import Account, calls, changing, raising
from tests.unit.account.asking import ask
from tests.unit.account.bench import FILE, FILES, Half, changed, post, problems, request


@pytest.mark.parametrize(
    ("how", "where", "message"),
    [
        ({"definition": {}}, "body.definition.name", "is missing: must be set"),
        ({"definition": changed(count=0)}, "body.definition.fleets.drivers.count", "is 0: must be a whole number"),
        ({"definition": changed(count=11)}, "body.definition.fleets", "at most 10 in all"),
        ({"size": "huge"}, "body.size", "is 'huge': must be one of smoke"),
        ({"set": {"parameters.treads": 1}}, "body.set.parameters.treads", "must be one of threads"),
        ({"files": {"other.py": b""}}, "body.definition.phases.0.script", "a file in the benchmark's folder: other.py"),
        ({"files": {**FILES, "a/b": b""}}, "body.files.a/b", "is not a valid name: must be a file name"),
        ({"files": {**FILES, "large": bytes(2**20)}}, "body.files", "at most 1048576 in all: make artifacts"),
        (
            {"definition": changed(instance_type="c7g.huge")},
            "body.definition.fleets.drivers.instance_type",
            "is 'c7g.huge': must be an instance type that this region offers",
        ),
        (
            {"definition": changed(instance_type="mac1.metal")},
            "body.definition.fleets.drivers.instance_type",
            "is 'mac1.metal' (x86_64_mac): must be one of arm64 or x86_64",
        ),
        (
            {"definition": changed(instance_type="t3.micro", placement="cluster")},
            "body.definition.fleets.drivers.placement",
            "is 'cluster': must be one that t3.micro supports: partition, spread",
        ),
        (
            {"definition": changed(fallback_types=["c5.large"])},
            "body.definition.fleets.drivers.fallback_types.0",
            "is 'c5.large' (x86_64): must be of the architecture of c7g.large: arm64",
        ),
        (
            {"definition": changed(fallback_types=["c6g.huge"])},
            "body.definition.fleets.drivers.fallback_types.0",
            "is 'c6g.huge': must be an instance type that this region offers",
        ),
        (
            {"definition": changed(zone_names=["eu-central-1c"])},
            "body.definition.fleets.drivers.zone_names.0",
            "a zone of the deployment's network that offers c7g.large",
        ),
        (
            {"definition": changed(count=3, zones=3, sizes={})},
            "body.definition.fleets.drivers.zones",
            "at most 2: in the network, only eu-central-1a, eu-central-1b offer it",
        ),
        (
            {"definition": changed(artifacts=[{"name": "d", "source": "./d", "sha256": "0f" * 32}])},
            "body.definition.artifacts.0.sha256",
            "of d is not in the bucket: must be uploaded first",
        ),
    ],
)
def test_bad_request_is_refused_and_leaves_nothing_behind(
    half: Half, how: dict[str, Any], where: str, message: str
) -> None:
    refusals = problems(**how)
    assert message in refusals.get(where, ""), refusals
    assert half.objects() == {}
    assert half.runs.page(10).runs == ()
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
    offered = changing("DescribeInstanceTypeOfferings", lambda answer: answer.update(InstanceTypeOfferings=offers))
    with calls(monkeypatch, offered):
        assert "at most 1" in problems(definition=changed(zones=2, sizes={}))["body.definition.fleets.drivers.zones"]
        assert post(definition=changed(zones=1))[0] == 202
        offers.clear()
        refusals = problems(definition=changed(zones=1), key="k2")
    assert (
        "one that a zone of the deployment's network offers" in refusals["body.definition.fleets.drivers.instance_type"]
    )


def test_only_allowed_buckets_may_be_read(half: Half) -> None:
    status, body = post(definition=changed(buckets=["my-data", "payroll"]))
    assert status == 403
    assert "may not read payroll: the deployment's setting troop:allowed_buckets is my-data" in body["message"]
    assert "`make deploy KEEP=1 ARGS=\"-c 'troop:allowed_buckets=my-data,payroll'\"`" in body["message"]
    assert "with DEPLOYMENT=NAME unless its name is Troop" in body["message"]
    half.s3.create_bucket(Bucket="my-data", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    assert post(definition=changed(buckets=["my-data"]))[0] == 202


def test_a_bucket_must_exist_in_the_region_of_the_nodes(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 names the region also to those who may not list the bucket. It refuses nodes only after their boot."""
    definition = changed(buckets=["my-data"])
    assert "is my-data, which does not exist: must be an existing bucket" in str(problems(definition=definition))
    refusal: Any = {
        "Error": {"Code": "403", "Message": "Forbidden"},
        "ResponseMetadata": {"HTTPStatusCode": 403, "HTTPHeaders": {"x-amz-bucket-region": "us-east-2"}},
    }
    with calls(monkeypatch, raising("HeadBucket", ClientError(refusal, "HeadBucket"))):
        text = str(problems(definition=definition, key="k2"))
        assert "which is in us-east-2" in text
        assert "a bucket in eu-central-1, because nodes reach S3 only in their own region" in text
        refusal["ResponseMetadata"]["HTTPHeaders"] = {}
        assert post(definition=definition, key="k3")[0] == 202


@pytest.mark.parametrize("settings", [{"benchmarks": False}], indirect=True)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/benchmarks", request()),
        ("GET", "/benchmarks", None),
        ("GET", "/benchmarks/20261120-224600-00000000", None),
        ("DELETE", "/benchmarks/20261120-224600-00000000", None),
        ("GET", "/benchmarks/20261120-224600-00000000/live", None),
        ("GET", "/benchmarks/20261120-224600-00000000/report", None),
        ("POST", "/benchmarks/20261120-224600-00000000/report", None),
        ("GET", "/fleets", None),
        ("POST", "/benchmarks/artifacts", {"sha256": "0f" * 32, "size": 1}),
    ],
)
def test_a_deployment_without_benchmarks_says_so(account: Account, method: str, path: str, body: Any) -> None:
    status, answer = ask(method, path, body)
    assert (status, answer["message"]) == (
        403,
        "this deployment does not run benchmarks: its setting troop:benchmarks is false",
    )


def test_more_summaries_than_a_function_can_merge_are_refused_before_nodes_cost_anything(half: Half) -> None:
    (phase,) = FILE["phases"]
    phases = [{**phase, "name": f"measure-{n}"} for n in range(6)]
    file = {**FILE, "phases": phases, "fleets": {"drivers": {**FILE["fleets"]["drivers"], "count": 320}}}
    refused = problems(definition=file)["body.definition.phases"]
    assert refused.startswith("with `measured` write 1920 summaries that are merged together: must be at most 1764")
