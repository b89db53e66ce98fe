"""`troop bench report`: fetched from where the API leads, waited for, opened; and where reports are loaded from."""

from __future__ import annotations

import io
import json
import ssl
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable
from email.message import Message
from http.client import InvalidURL
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.bench import report_source
from cli.bench.archive_folder import FolderArchive
from cli.client import connection
from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.commands import bench_report
from cli.shared.context import Options
from cli.shared.errors import CliError, Exit
from tests.unit.cli.conftest import FakeApi, Run
from troop.bench.records import archive
from troop.bench.records.archive import DamagedError, ReportError
from troop.report.document import Report
from troop.shared.version import VERSION

ID = "20261120-150000-1f0c9b2e"
WHERE = f"benchmarks/{ID}/report"
ADDRESS = "https://results.s3.eu-central-1.amazonaws.com/runs/R/report.html?X-Amz-Signature=5ec2e7"
PAGE = b"<!doctype html><p>all of it</p>"
DOCUMENT: dict[str, Any] = {
    "format": "troop.report/1",
    "created_at": "2026-11-20T15:10:05Z",
    "created_by": "0.1.0",
    "cpu_is_busy": True,
    "run": {"run": ID, "name": "reads", "status": "SUCCEEDED"},
    "money": {},
    "definition": {},
    "cells": [],
}
Fetched = list[str]


def report_answer(etag: str = "1", moment: str = "2026-11-20T15:10:05.000Z") -> Answer:
    return Answer(302, {"run": ID, "etag": etag, "created_at": moment}, "", {"Location": ADDRESS})


def missing(*, soon: bool) -> Answer:
    headers = {"Retry-After": "5"} if soon else {}
    return Answer(404, {"statusCode": 404, "message": f"the run {ID} has no report"}, "", headers)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited; no time passes otherwise."""
    waits: list[float] = []
    fast: Callable[..., bytes] = report_source.fetched

    def fetched(client: TroopClient, run: str, form: str, *, again: bool = False) -> bytes:
        return fast(client, run, form, again=again, sleep=waits.append, clock=lambda: sum(waits))

    monkeypatch.setattr(report_source, "fetched", fetched)
    return waits


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Fetched:
    """Addresses that were fetched: each gives the page, or the document where that was asked for."""
    addresses: Fetched = []

    def download(address: str) -> bytes:
        addresses.append(address)
        return PAGE if "html" in address else json.dumps(DOCUMENT).encode()

    monkeypatch.setattr(report_source, "download", download)
    return addresses


def test_report_is_fetched_into_a_named_file(run: Run, api: FakeApi, store: Fetched, here: Path) -> None:
    api.refusals["GET", WHERE] = [report_answer()]
    result = run("bench", "report", ID)
    assert result.exit_code == 0, result.output
    path = here / f"troop-report-{ID}.html"
    assert (path.read_bytes(), path.name in result.stdout) == (PAGE, True)
    assert api.calls == [("GET", WHERE, {"format": "html"})]
    assert store == [ADDRESS]
    assert "Signature" not in result.output


def test_report_goes_to_the_file_or_stream_of_the_option(run: Run, api: FakeApi, store: Fetched, here: Path) -> None:
    api.refusals["GET", WHERE] = [report_answer()]
    assert run("bench", "report", ID, "-o", "some.html").exit_code == 0
    assert (here / "some.html").read_bytes() == PAGE
    assert run("bench", "report", ID, "-o", "-").stdout_bytes == PAGE
    denied = run("bench", "report", ID, "-o", "no/such/folder.html")
    assert (denied.exit_code, "no/such/folder.html cannot be written" in denied.stderr) == (Exit.FAILED, True)


def test_programs_get_the_document(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    api.refusals["GET", WHERE] = [report_answer()]
    monkeypatch.setattr(report_source, "download", lambda _: json.dumps(DOCUMENT).encode())
    assert json.loads(run("bench", "report", ID, "--json").stdout) == DOCUMENT
    assert api.calls == [("GET", WHERE, {"format": "json"})]
    assert list(here.iterdir()) == []
    run("bench", "report", ID, "--json", "-o", "some.json")
    assert json.loads((here / "some.json").read_text()) == DOCUMENT


@pytest.mark.parametrize("opens", [True, False])
def test_report_opens_in_a_browser_or_its_address_is_printed(
    run: Run, api: FakeApi, store: Fetched, here: Path, monkeypatch: pytest.MonkeyPatch, opens: bool
) -> None:
    shown: list[str] = []

    def browse(address: str) -> bool:
        shown.append(address)
        return opens

    monkeypatch.setattr(webbrowser, "open", browse)
    api.refusals["GET", WHERE] = [report_answer()]
    result = run("bench", "report", ID, "--open")
    assert result.exit_code == 0
    assert shown == [(here / f"troop-report-{ID}.html").as_uri()]
    assert (shown[0] in result.stderr) is not opens


@pytest.mark.parametrize("words", [("--json",), ("-o", "-")])
def test_output_without_a_page_in_a_file_cannot_be_opened(run: Run, api: FakeApi, words: tuple[str, ...]) -> None:
    assert run("bench", "report", ID, "--open", *words).exit_code == Exit.USAGE
    assert api.calls == []


def test_report_of_a_run_that_just_ended_is_awaited(
    run: Run, api: FakeApi, store: Fetched, waited: list[float]
) -> None:
    api.refusals["GET", WHERE] = [missing(soon=True), missing(soon=True), report_answer()]
    assert run("bench", "report", ID).exit_code == 0
    assert len(waited) == 2


def test_but_not_for_ever(run: Run, api: FakeApi, waited: list[float]) -> None:
    api.refusals["GET", WHERE] = [missing(soon=True)]
    result = run("bench", "report", ID)
    assert (result.exit_code, "has no report" in result.stderr) == (Exit.REFUSED, True)
    assert 90 <= sum(waited) < 100


def test_report_of_an_old_or_open_run_is_not_awaited(run: Run, api: FakeApi, waited: list[float]) -> None:
    api.refusals["GET", WHERE] = [missing(soon=False)]
    assert run("bench", "report", ID).exit_code == Exit.REFUSED
    assert waited == []
    api.refusals["GET", WHERE] = [Answer(409, {"statusCode": 409, "message": "has not ended"})]
    assert "has not ended" in run("bench", "report", ID).stderr
    assert waited == []


@pytest.mark.parametrize("before", [report_answer("1"), missing(soon=False)])
def test_recreated_report_is_awaited(
    run: Run, api: FakeApi, store: Fetched, waited: list[float], before: Answer
) -> None:
    api.refusals["GET", WHERE] = [before, before, before, report_answer("2")]
    api.refusals["POST", WHERE] = [Answer(202, {"run": ID})]
    assert run("bench", "report", ID, "--again").exit_code == 0
    assert [method for method, _, _ in api.calls] == ["GET", "POST", "GET", "GET", "GET"]
    assert len(waited) == 2


def test_report_that_somebody_else_just_recreated_counts(run: Run, api: FakeApi, store: Fetched) -> None:
    """Within a minute one is made once: its etag is the one of before."""
    api.refusals["GET", WHERE] = [report_answer("1", "2026-11-20T15:10:05.000Z")]
    api.refusals["POST", WHERE] = [Answer(202, {"run": ID, "requested_at": "2026-11-20T15:09:59.123Z"})]
    assert run("bench", "report", ID, "--again").exit_code == 0
    assert store == [ADDRESS]


def test_older_report_is_not_the_recreated_one(run: Run, api: FakeApi, store: Fetched) -> None:
    api.refusals["GET", WHERE] = [report_answer("1")]
    api.refusals["POST", WHERE] = [Answer(202, {"run": ID, "requested_at": "2026-11-20T15:10:05.001Z"})]
    result = run("bench", "report", ID, "--again")
    assert (result.exit_code, "does not exist yet" in result.stderr) == (Exit.FAILED, True)
    assert store == []


# Fetching


class Answered(io.BytesIO):
    """What urllib answers."""

    def __init__(self, content: bytes, length: int | None = None) -> None:
        super().__init__(content)
        self.code, self.msg, self.headers = 200, "OK", Message()
        self.headers["Content-Length"] = str(len(content) if length is None else length)

    def info(self) -> Message:
        return self.headers


def opened(monkeypatch: pytest.MonkeyPatch, answer: Answered | Exception) -> list[tuple[Any, Any]]:
    """What urllib is asked for, which answers this."""
    requests: list[tuple[Any, Any]] = []

    def https_open(self: Any, request: Any) -> Any:
        assert 0 < request.timeout <= 120
        requests.append((request, self._context))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(urllib.request.HTTPSHandler, "https_open", https_open)
    return requests


def test_nothing_of_the_credentials_goes_there_and_tls_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = opened(monkeypatch, Answered(PAGE))
    assert report_source.download(ADDRESS) == PAGE
    ((request, tls),) = requests
    assert {name for name, _ in request.header_items()} == {"Host", "User-agent"}
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize(
    "error",
    [
        urllib.error.HTTPError(ADDRESS, 403, "Forbidden", Message(), io.BytesIO()),
        urllib.error.URLError(TimeoutError("timed out")),
        ConnectionResetError("reset"),
        InvalidURL(f"URL can't contain control characters. {ADDRESS!r}"),
    ],
)
def test_download_error_omits_the_address(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    opened(monkeypatch, error)
    with pytest.raises(CliError) as refusal:
        report_source.download(ADDRESS)
    assert "5ec2e7" not in str(refusal.value)
    assert refusal.value.__suppress_context__


def test_oversized_download_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_source, "LARGEST", 10)
    opened(monkeypatch, Answered(b"x" * 11))
    with pytest.raises(CliError, match="larger than 10 bytes"):
        report_source.download(ADDRESS)


def test_half_of_it_is_not_taken_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch, Answered(PAGE, len(PAGE) + 1))
    with pytest.raises(CliError, match="incomplete"):
        report_source.download(ADDRESS)


def test_redirect_without_tls_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    redirect = Answered(b"")
    redirect.code, redirect.msg = 307, "Temporary Redirect"
    redirect.headers["Location"] = "http://elsewhere.example/report"
    opened(monkeypatch, redirect)
    plain: list[Any] = []
    monkeypatch.setattr(urllib.request.HTTPHandler, "http_open", lambda _, request: plain.append(request))
    with pytest.raises(CliError, match=r"without TLS.*: nothing was fetched"):
        report_source.download(ADDRESS)
    assert plain == []


@pytest.mark.parametrize("address", ["http://results.example/report", "file:///etc/passwd"])
def test_nothing_is_fetched_but_over_tls(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    requests = opened(monkeypatch, Answered(PAGE))
    with pytest.raises(CliError, match=r"without TLS.*: nothing was fetched"):
        report_source.download(address)
    assert requests == []


# Loading


@pytest.fixture
def ctx() -> Any:
    return SimpleNamespace(obj=Options())


def test_a_report_is_loaded_from_its_file_a_folder_or_the_api(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, ctx: Any, here: Path
) -> None:
    expected = Report.model_validate(DOCUMENT)
    (here / "some.json").write_text(json.dumps(DOCUMENT | {"of_a_later_version": 1}))
    assert report_source.load(ctx, "some.json") == expected
    monkeypatch.setattr(report_source, "download", lambda _: json.dumps(DOCUMENT).encode())
    monkeypatch.setattr(report_source, "connection", lambda ctx: connection.connect(ctx.obj))
    api.refusals["GET", WHERE] = [report_answer()]
    (here / ID).mkdir()
    assert report_source.load(ctx, ID) == expected, "an id is an id, whatever lies here"
    monkeypatch.setattr(report_source, "build", lambda archive, now, *rest: (archive, *rest))
    folder = report_source.load(ctx, f"./{ID}")
    assert folder == (FolderArchive(Path(ID)), VERSION, ID)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "is not a report: its format must be troop.report/1"),
        ('{"format": "troop.record/1"}', "is not a report"),
        ("{", "is not JSON"),
        (json.dumps(DOCUMENT | {"format": "troop.report/2"}), "cannot read: update Troop"),
        (json.dumps(DOCUMENT | {"run": {"run": ID}}), "is damaged at run.name"),
        *((json.dumps(DOCUMENT)[:-1] + f', "hourly": {n}}}', "is not JSON") for n in ("Infinity", "NaN", "1e999")),
        (json.dumps(DOCUMENT)[:-1] + ', "hourly": ' + "9" * 5000 + "}", "is not JSON"),
    ],
)
def test_file_that_is_no_report_is_refused(ctx: Any, here: Path, content: str, message: str) -> None:
    (here / "some.json").write_text(content)
    with pytest.raises(CliError, match=message):
        report_source.load(ctx, "some.json")


def test_unknown_name_is_neither_run_nor_folder(run: Run, ctx: Any) -> None:
    with pytest.raises(CliError, match="is not a run's id"):
        report_source.load(ctx, "nothing")
    result = run("bench", "report", "nothing")
    assert (result.exit_code, "there is no such folder" in result.stderr) == (Exit.USAGE, True)


# A folder


def test_report_of_a_folder_is_created_without_aws(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    (here / "kept").mkdir()
    expected = Report.model_validate(DOCUMENT)
    monkeypatch.setattr(report_source, "build", lambda archive, now, version, run: expected)
    monkeypatch.setattr(bench_report, "page", lambda report: PAGE if report == expected else b"")
    monkeypatch.setattr(connection, "connect", lambda options: pytest.fail("AWS was asked"))
    assert "kept/report.html" in run("bench", "report", "kept").stdout
    assert (here / "kept" / "report.html").read_bytes() == PAGE
    assert Report.model_validate_json((here / "kept" / "report.json").read_bytes()) == expected
    (here / "kept" / "report.json").unlink()
    run("bench", "report", "kept", "-o", "some.html")
    assert [path.name for path in here.iterdir() if path.is_file()] == ["some.html"]
    assert Report.model_validate_json(run("bench", "report", "kept", "--json").stdout) == expected
    assert not (here / "kept" / "report.json").exists()


def test_folder_that_no_report_can_be_built_from_is_an_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    def build(*_: Any) -> Report:
        raise ReportError("definition.json is missing")

    monkeypatch.setattr(report_source, "build", build)
    result = run("bench", "report", str(here))
    assert (result.exit_code, "definition.json is missing" in result.stderr) == (Exit.FAILED, True)


@pytest.mark.parametrize("words", [(), ("--json",)])
@pytest.mark.parametrize(
    "body", [b'{"description": "\\ud800"}', b'{"a": ' + b"[" * 800 + b"]" * 800 + b"}"], ids=["half a pair", "deep"]
)
def test_text_that_cannot_be_written_is_no_crash(run: Run, here: Path, body: bytes, words: tuple[str, ...]) -> None:
    (here / "definition.json").write_bytes(body)
    result = run("bench", "report", str(here), *words)
    assert (result.exit_code, "definition.json is not valid JSON" in result.stderr) == (Exit.FAILED, True)


def test_a_folder_has_the_names_that_the_bucket_has(here: Path) -> None:
    for name in ("definition.json", "c001/results.json", "c001/nodes/i-2.json", "c001/nodes/i-1.json", "c001-2/x.json"):
        path = here / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (here / "secret.json").write_text("{}")
    folder = FolderArchive(here / "run")
    assert (folder.read("c001/results.json"), folder.read("c002/results.json")) == (b"c001/results.json", None)
    assert folder.names("c001/nodes/") == ["c001/nodes/i-1.json", "c001/nodes/i-2.json"]
    assert folder.names("c001") == sorted(
        ["c001-2/x.json", "c001/nodes/i-1.json", "c001/nodes/i-2.json", "c001/results.json"]
    )
    assert folder.names("c009/nodes/") == []
    assert len(folder.names("")) == 5
    for name in ("../secret.json", "c001/../../secret.json", str(here / "secret.json"), "c001"):
        assert folder.read(name) is None
    assert folder.names("../") == []


def test_oversized_file_of_a_node_in_a_folder_is_not_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1)
    for name in ("c001/results.json", "c001/nodes/i-1.json"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("{}")
    assert FolderArchive(here).read("c001/results.json") == b"{}"
    with pytest.raises(DamagedError, match=r"nodes/i-1\.json has 2 bytes"):
        FolderArchive(here).read("c001/nodes/i-1.json")


def test_the_page_is_the_reports_own(here: Path) -> None:
    body = bench_report.page(Report.model_validate(DOCUMENT)).decode()
    assert body.lower().startswith("<!doctype html>")
    assert ID in body
