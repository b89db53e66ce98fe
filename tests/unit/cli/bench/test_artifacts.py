"""Artifacts of a benchmark: held against their hash, and uploaded where the API says, once."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import boto3
import pytest
from moto import mock_aws

from cli.bench import artifacts
from cli.bench.artifacts import Staging
from cli.bench.files import is_local
from cli.shared.errors import CliError, Exit
from tests.serving import Quiet, running
from tests.unit import tls
from troop.bench.definition.definition import Artifact

CONTENT = b"data" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Bucket:
    """Where presigned addresses lead to, and the API that gives them.

    Attributes:
        puts: (headers, body) of each upload.
        statuses: to be answered one by one; 200 after that.
    """

    url: str
    puts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    staged: set[str] = field(default_factory=set)
    sizes: list[int | None] = field(default_factory=list)

    def stage(self, sha256: str, size: int | None = None) -> dict[str, Any]:
        self.sizes.append(size)
        if sha256 in self.staged:
            return {"staged": True, "upload_url": None, "headers": {}}
        headers = {"content-length": str(size), "x-amz-checksum-sha256": "signed"}
        return {
            "staged": False,
            "upload_url": f"{self.url}/artifacts/{sha256}?X-Amz-Signature=s%2B",
            "headers": headers,
        }


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    class Handler(Quiet):
        def do_PUT(self) -> None:
            assert self.path == f"/artifacts/{SHA256}?X-Amz-Signature=s%2B"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fake.puts.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.answer(fake.statuses.pop(0) if fake.statuses else 200, b"<Error/>")

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        fake = Bucket(f"http://127.0.0.1:{server.server_address[1]}")
        yield fake


def staging(bucket: Bucket, folder: Path, messages: list[str] | None = None) -> Staging:
    tell = (messages if messages is not None else []).append
    return Staging(bucket, folder, boto3.Session, tell, sleep=lambda seconds: None)


def artifact(source: str, sha256: str = SHA256) -> Artifact:
    return Artifact("d", sha256, source)


def test_a_file_is_uploaded_as_the_address_wants_it(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(CONTENT)
    staging(bucket, tmp_path).stage(artifact("./data"))
    ((headers, body),) = bucket.puts
    assert body == CONTENT
    assert (headers["content-length"], headers["x-amz-checksum-sha256"]) == (str(len(CONTENT)), "signed")
    assert not [name for name in headers if name in ("authorization", "transfer-encoding", "content-type")]
    assert bucket.sizes == [None, len(CONTENT)]


def test_staged_artifact_is_neither_fetched_nor_read(bucket: Bucket, tmp_path: Path) -> None:
    bucket.staged.add(SHA256)
    messages: list[str] = []
    staging(bucket, tmp_path, messages).stage(artifact("https://nowhere.invalid/data"))
    assert messages == ["d: already staged"]
    assert bucket.puts == []


@pytest.mark.parametrize("source", ["./data", "s3://my-data/a/key"])
def test_another_content_is_refused_before_it_is_uploaded(bucket: Bucket, tmp_path: Path, source: str) -> None:
    (tmp_path / "data").write_bytes(CONTENT)
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="my-data")
        s3.put_object(Bucket="my-data", Key="a/key", Body=CONTENT)
        with pytest.raises(CliError, match=f"does not have the sha256 {'0f' * 32}") as refused:
            staging(bucket, tmp_path).stage(artifact(source, "0f" * 32))
    assert refused.value.code is Exit.USAGE
    assert SHA256 not in str(refused.value), "whoever names a file learns nothing of its content"
    assert bucket.puts == []


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("tls")
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.certificate(folder)))
    Web.sent, Web.paths, Web.elsewhere = 0, [], ""
    with tls.serving(Web, folder / "certificate.pem") as address:
        yield address


class Web(Quiet):
    """A server of artifacts. ``/endless`` sends 64 MiB without saying so, ``/elsewhere`` redirects."""

    sent, elsewhere = 0, ""
    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_response({"/elsewhere": 302, "/missing": 404}.get(self.path, 200))
        if self.path == "/elsewhere":
            self.send_header("Location", self.elsewhere)
        self.end_headers()
        with suppress(OSError):
            for _ in range(1024 if self.path == "/endless" else 1):
                self.wfile.write(bytes(64 * 1024) if self.path == "/endless" else CONTENT)
                Web.sent += 1


@pytest.mark.parametrize("path", ["/data", "/elsewhere"])
def test_a_source_on_the_web(bucket: Bucket, tmp_path: Path, web: str, path: str) -> None:
    Web.elsewhere = f"{web}/data"
    staging(bucket, tmp_path).stage(artifact(f"{web}{path}"))
    assert [body for _, body in bucket.puts] == [CONTENT]


@pytest.mark.parametrize("elsewhere", ["FILE", "http://127.0.0.1:9/data", "ftp://127.0.0.1:9/data", "data:,data"])
def test_a_source_on_the_web_leads_nowhere_else(bucket: Bucket, tmp_path: Path, web: str, elsewhere: str) -> None:
    (tmp_path / "secret").write_bytes(CONTENT)
    Web.elsewhere = elsewhere.replace("FILE", (tmp_path / "secret").as_uri())
    with pytest.raises(CliError, match=r"redirects to an address without TLS|Redirection to url .* is not allowed"):
        staging(bucket, tmp_path).stage(artifact(f"{web}/elsewhere"))
    assert (Web.paths, bucket.puts) == (["/elsewhere"], [])


SPELLINGS = ["file://PATH", "FILE://PATH", "file:PATH", "file://localhostPATH", "local_file://PATH", "url:file://PATH"]
OTHERS = ["HTTPS://127.0.0.1:9/x", "http://127.0.0.1:9/x", "ftp://127.0.0.1:9/x", "data:,data", "data://text/plain,x"]


@pytest.mark.parametrize("source", [*SPELLINGS, *OTHERS])
def test_every_other_source_is_a_path(
    bucket: Bucket, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is read only as a file of that very name, which the page does not read."""
    (tmp_path / "secret").write_bytes(CONTENT)
    monkeypatch.setattr(urllib.request.OpenerDirector, "open", lambda *_, **__: pytest.fail("it was opened"))
    named = artifact(source.replace("PATH", str(tmp_path / "secret")))
    assert is_local(named)
    with pytest.raises(CliError, match="cannot be read from"):
        staging(bucket, tmp_path).stage(named)
    assert bucket.puts == []


def test_a_source_is_read_only_as_far_as_an_artifact_may_be(
    bucket: Bucket, tmp_path: Path, web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "LARGEST_ARTIFACT", 1024 * 1024)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1024 * 1024 + 1)
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="my-data")
        s3.put_object(Bucket="my-data", Key="large", Body=bytes(1024 * 1024 + 1))
        for source in (f"{web}/endless", "./large", "s3://my-data/large"):
            with pytest.raises(CliError, match="more than 1,048,576 bytes") as refused:
                staging(bucket, tmp_path).stage(artifact(source))
            assert refused.value.code is Exit.USAGE
    assert Web.sent < 1024, "the download was not stopped"
    with pytest.raises(CliError, match="not a regular file"):
        staging(bucket, tmp_path).stage(artifact("/dev/zero"))
    assert bucket.puts == []


def test_a_source_in_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="my-data")
        s3.put_object(Bucket="my-data", Key="a/key", Body=CONTENT)
        stager = staging(bucket, tmp_path)
        with stager._opened(artifact("s3://my-data/a/key")) as file:
            file.seek(0)
            assert file.read() == CONTENT
        with pytest.raises(CliError) as refused, stager._opened(artifact("s3://my-data/other")):
            pass
    assert "s3:" in str(refused.value)


@pytest.mark.parametrize("source", ["./missing", "/missing", "WEB/missing", "https://x\x7f/y"])
def test_a_source_that_is_not_there(bucket: Bucket, tmp_path: Path, web: str, source: str) -> None:
    with pytest.raises(CliError, match="the artifact d cannot be read from") as refused:
        staging(bucket, tmp_path).stage(artifact(source.replace("WEB", web)))
    assert refused.value.code is Exit.FAILED


def test_failed_upload_is_repeated_from_its_beginning(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(CONTENT)
    bucket.statuses = [503, 500]
    staging(bucket, tmp_path).stage(artifact("data"))
    assert [body for _, body in bucket.puts] == [CONTENT] * 3


@pytest.mark.parametrize(("statuses", "tries"), [([403], 1), ([503] * 3, 3)])
def test_an_upload_that_is_refused(bucket: Bucket, tmp_path: Path, statuses: list[int], tries: int) -> None:
    (tmp_path / "data").write_bytes(CONTENT)
    bucket.statuses = list(statuses)
    with pytest.raises(CliError, match=rf"could not be uploaded \({statuses[0]}\)"):
        staging(bucket, tmp_path).stage(artifact("data"))
    assert len(bucket.puts) == tries
