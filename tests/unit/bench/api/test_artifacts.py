"""The route of artifacts: where one is put, and that nothing else can be put there."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.unit.account.asking import ask
from tests.unit.account.bench import BUCKET, Half, changed, post, problems


def test_an_artifact_is_put_where_only_it_can_be(half: Half) -> None:
    content = b"x" * 10
    sha256 = "0f" * 32
    status, body = ask("POST", "/benchmarks/artifacts", {"sha256": sha256, "size": len(content)})
    assert status == 200
    assert body["headers"] == {
        "content-length": "10",
        "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(sha256)).decode(),
    }
    url = urlsplit(body["upload_url"])
    assert url.path.endswith(f"artifacts/{sha256}")
    signed = parse_qs(url.query)
    assert signed["X-Amz-SignedHeaders"] == ["content-length;host;x-amz-checksum-sha256"]
    assert signed["X-Amz-Expires"] == ["3600"]


def test_the_oldest_region_signs_headers_too(monkeypatch: pytest.MonkeyPatch, half: Half) -> None:
    from troop.bench.aws.run_files import RunFiles
    from troop.shared.aws import clients

    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    here = clients.presigning_client.__wrapped__("s3")  # not kept: it would serve later tests, of another region
    url = RunFiles(here, BUCKET).upload("0f" * 32, 1).url
    assert "x-amz-checksum-sha256" in parse_qs(urlsplit(url).query)["X-Amz-SignedHeaders"][0]


@pytest.mark.parametrize("region", ["eu-west-1", "ap-southeast-5"])
def test_an_artifact_goes_to_its_region_at_once(monkeypatch: pytest.MonkeyPatch, half: Half, region: str) -> None:
    """The address of all regions redirects what is put into a young bucket, and knows none of the later regions."""
    from troop.bench.aws.run_files import RunFiles
    from troop.shared.aws import clients

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
