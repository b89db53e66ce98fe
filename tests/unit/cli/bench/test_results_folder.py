"""Results in a folder: whole files under safe names, once each, whatever fails on the way."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import IO, Any

import pytest
from botocore.httpsession import URLLib3Session
from urllib3.exceptions import HTTPError

from cli.bench.results_folder import DownloadError, Missed, ResultsFolder, s3_fetch
from cli.shared.errors import CliError, Exit


def result(id: str, body: str) -> dict[str, Any]:
    return {"id": id, "size": len(body), "at": "2026-11-27T10:00:00.000Z", "url": f"https://s3/{body}"}


class Bucket:
    """Serves an address' last part; fails for those that a test names."""

    def __init__(self) -> None:
        self.broken: dict[str, str] = {}
        self.fetched: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, address: str, file: IO[bytes]) -> int:
        body = address.rpartition("/")[2]
        with self._lock:
            self.fetched.append(body)
        if body in self.broken:
            file.write(b"half")
            raise DownloadError(self.broken[body])
        return file.write(body.encode())


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_each_result_is_a_file_and_a_repetition_fetches_only_the_rest(tmp_path: Path, bucket: Bucket) -> None:
    folder = tmp_path / "a" / "b"
    bucket.broken["two"] = "S3 refused it (403)"
    results = [result("k-1", "one"), result("k-2", "two"), result("k-3", "three")]
    assert ResultsFolder(folder, bucket).save(results) == [Missed("k-2", "S3 refused it (403)")]
    assert files(folder) == {"k-1": "one", "k-3": "three"}
    bucket.broken.clear()
    bucket.fetched.clear()
    assert ResultsFolder(folder, bucket).save(results) == []
    assert bucket.fetched == ["two"]
    assert files(folder) == {"k-1": "one", "k-2": "two", "k-3": "three"}


def test_part_of_a_result_is_no_file(tmp_path: Path, bucket: Bucket) -> None:
    short = result("k-1", "one") | {"size": 5}
    (tmp_path / "k-2").write_text("half")
    assert ResultsFolder(tmp_path, bucket).save([short, result("k-2", "two")]) == [
        Missed("k-1", "only 3 of 5 bytes came")
    ]
    assert files(tmp_path) == {"k-2": "two"}


@pytest.mark.parametrize(
    "id", [".", "..", ".bashrc", "../x", "a/b", "a\\b", "", "a\n", "ä", "a" * 129, "a:b", "-" * 129]
)
def test_an_id_that_is_no_safe_name_writes_nothing(tmp_path: Path, bucket: Bucket, id: str) -> None:
    folder = tmp_path / "results"
    (missed,) = ResultsFolder(folder, bucket).save([result(id, "x")])
    assert missed.why == "its id cannot be the name of a file"
    assert (list(folder.iterdir()), bucket.fetched) == ([], [])


def test_ids_that_differ_only_in_case_are_two_files_or_a_refusal(tmp_path: Path, bucket: Bucket) -> None:
    folder = ResultsFolder(tmp_path, bucket)
    assert folder.save([result("A", "one")]) == []
    assert folder.save([result("a", "two")]) == []
    assert files(tmp_path) == {"A": "one", "a": "two"}


def test_a_file_system_without_case_loses_no_result(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ResultsFolder(tmp_path, bucket)
    folder.save([result("A", "one")])
    monkeypatch.setattr(Path, "exists", lambda path: path.name.casefold() == "a")
    (missed,) = folder.save([result("a", "two")])
    assert "differs from A only in case" in missed.why
    assert files(tmp_path) == {"A": "one"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, bucket: Bucket) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CliError, match="file cannot be written") as refusal:
        ResultsFolder(tmp_path / "file", bucket).save([result("k-1", "one")])
    assert refusal.value.code is Exit.FAILED


class Answer:
    """An answer of S3 in parts; None for a connection that breaks."""

    def __init__(self, status: int, *parts: bytes | None) -> None:
        self.status_code, self.raw = status, self
        self.parts = parts

    def stream(self, _size: int) -> Any:
        for part in self.parts:
            if part is None:
                raise HTTPError("secret address")
            yield part

    def drain_conn(self) -> None: ...


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([Answer(200, b"a", b"b")], "ab"),
        ([Answer(200, b"a", None), Answer(503), Answer(200, b"ab")], "ab"),
        ([Answer(403)], "S3 refused it (403): try again"),
        ([Answer(500)] * 4, "S3 refused it (500): try again"),
        ([Answer(200, None)] * 4, "S3 cannot be reached (HTTPError): try again"),
    ],
)
def test_a_download_begins_again_after_what_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[Answer], outcome: str
) -> None:
    waiting = list(answers)
    monkeypatch.setattr(URLLib3Session, "send", lambda self, request: waiting.pop(0))
    fetch = s3_fetch("https://s3/x", sleep=lambda _: None)
    with (tmp_path / "part").open("wb") as file:
        if "S3" in outcome:
            with pytest.raises(DownloadError, match=re.escape(outcome)):
                fetch("https://s3/x?X-Amz-Signature=1", file)
        else:
            assert fetch("https://s3/x?X-Amz-Signature=1", file) == len(outcome)
    assert "S3" in outcome or (tmp_path / "part").read_text() == outcome
    assert not waiting


def test_an_address_without_tls_is_not_fetched(tmp_path: Path) -> None:
    with (tmp_path / "part").open("wb") as file, pytest.raises(DownloadError, match="no safe address"):
        s3_fetch("http://s3/x")("http://s3/x", file)
