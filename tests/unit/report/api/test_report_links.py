"""The routes of reports: where one is got, for how long and by whom, what is said while there is none, and having one
made again.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.client import BaseClient

from tests.unit.account.account import calls, refusing
from tests.unit.account.asking import answered, ask
from tests.unit.account.bench import BUCKET, REPORT, Half, post
from tests.unit.account.fixtures import Log
from troop.bench.records.record import RunStatus
from troop.shared import moments

PAGE = b"<!doctype html>"


@pytest.fixture
def payloads(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Payloads of the calls of the function that makes reports; nobody carries them out."""
    calls: list[dict[str, Any]] = []
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation != "Invoke":
            return real(self, operation, parameters)
        assert (parameters["FunctionName"], parameters["InvocationType"]) == (REPORT, "Event")
        calls.append(json.loads(parameters["Payload"]))
        return {"StatusCode": 202}

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return calls


def going(key: str = "k1") -> str:
    status, run = post(key=key)
    assert status == 202, run
    return str(run["run"])


def ended(half: Half, *files: str, key: str = "k1") -> str:
    """A run that has ended now; with these files of a report."""
    run = going(key)
    half.runs.close(run, RunStatus.SUCCEEDED, None, half.account.clock.moment)
    half.runs.conclude(run, half.account.clock.moment)
    for name in files:
        half.s3.put_object(Bucket=BUCKET, Key=f"runs/{run}/{name}", Body=PAGE)
    return run


def header(answer: dict[str, Any], name: str) -> str | None:
    values = answer["multiValueHeaders"].get(name)
    return str(values[0]) if values else None


def test_the_answer_leads_to_the_page_for_an_hour_and_a_browser_shows_it(half: Half, log: Log) -> None:
    run = ended(half, "report.html", "report.json")
    answer = answered("GET", f"/benchmarks/{run}/report")
    assert (answer["statusCode"], header(answer, "Cache-Control")) == (302, "no-store")
    body = json.loads(answer["body"])
    assert (body["run"], body["format"], body["size"], bool(body["etag"])) == (run, "html", len(PAGE), True)
    address = urlsplit(str(header(answer, "Location")))
    assert (address.scheme, address.path) == ("https", f"/runs/{run}/report.html")
    assert address.netloc == f"{BUCKET}.s3.eu-central-1.amazonaws.com", "no other knows a young bucket"
    query = {key: value for key, (value,) in parse_qs(address.query).items()}
    assert (query["X-Amz-Algorithm"], query["X-Amz-Expires"]) == ("AWS4-HMAC-SHA256", "3600")
    assert query["response-content-type"] == "text/html; charset=utf-8"
    assert query["response-content-disposition"].startswith("inline")
    assert query["X-Amz-Signature"] not in json.dumps(log()), "who can read the log has no key to it"


def test_programs_are_led_to_the_document(half: Half) -> None:
    run = ended(half, "report.html", "report.json")
    address = urlsplit(str(header(answered("GET", f"/benchmarks/{run}/report", format="json"), "Location")))
    assert address.path == f"/runs/{run}/report.json"
    assert parse_qs(address.query)["response-content-type"] == ["application/json"]


def test_a_format_that_there_is_not(half: Half) -> None:
    status, body = ask("GET", f"/benchmarks/{ended(half)}/report", format="pdf")
    assert status == 400
    assert "'html' or 'json'" in body["message"]


def test_open_run_has_no_report_yet(half: Half, payloads: list[dict[str, Any]]) -> None:
    run = going()
    for method in ("GET", "POST"):
        status, body = ask(method, f"/benchmarks/{run}/report")
        assert (status, "has not ended: its report is created when it ends" in body["message"]) == (409, True)
    assert payloads == []


@pytest.mark.parametrize(("later", "soon"), [(timedelta(minutes=16), True), (timedelta(minutes=18), False)])
def test_whether_to_wait_for_one_that_is_missing(half: Half, later: timedelta, soon: bool) -> None:
    run = ended(half, "report.json")
    half.account.clock.forward(seconds=later.total_seconds())
    answer = answered("GET", f"/benchmarks/{run}/report")
    assert answer["statusCode"] == 404
    assert f"POST /benchmarks/{run}/report makes it" in json.loads(answer["body"])["message"]
    assert (header(answer, "Retry-After") is not None) is soon


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_run_that_there_is_not(half: Half, method: str) -> None:
    status, body = ask(method, "/benchmarks/20261120-224600-00000000/report")
    assert (status, body["code"], "GET /benchmarks lists" in body["message"]) == (404, "no-such-run", True)


def test_report_is_created_again_without_waiting(half: Half, payloads: list[dict[str, Any]]) -> None:
    run = ended(half)
    requested_at = moments.iso(half.account.clock.moment)
    assert ask("POST", f"/benchmarks/{run}/report") == (202, {"run": run, "requested_at": requested_at})
    assert payloads == [{"run": run}]


def test_many_concurrent_requests_create_one_report(half: Half, payloads: list[dict[str, Any]]) -> None:
    run, other = ended(half), ended(half, key="k2")
    answers = [ask("POST", f"/benchmarks/{run}/report")]
    for _ in range(2):
        half.account.clock.forward(seconds=29)
        answers.append(ask("POST", f"/benchmarks/{run}/report"))
    assert (answers, len(payloads)) == ([answers[0]] * 3, 1)
    assert ask("POST", f"/benchmarks/{other}/report")[0] == 202
    assert payloads == [{"run": run}, {"run": other}]
    half.account.clock.forward(seconds=2)
    assert ask("POST", f"/benchmarks/{run}/report")[1] != answers[0][1]
    assert len(payloads) == 3


def test_a_call_that_is_refused_keeps_nobody_from_asking_again(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended(half)
    with calls(monkeypatch, refusing("Invoke", "TooManyRequestsException")) as operations:
        for _ in range(2):
            assert ask("POST", f"/benchmarks/{run}/report")[0] >= 400
    assert operations.count("Invoke") == 2


def test_no_report_is_created_for_an_expired_run(half: Half, payloads: list[dict[str, Any]]) -> None:
    run = ended(half)
    half.s3.delete_object(Bucket=BUCKET, Key=f"runs/{run}/definition.json")
    status, body = ask("POST", f"/benchmarks/{run}/report")
    assert (status, "have expired, so it can have no report" in body["message"]) == (404, True)
    assert payloads == []


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("code", ["SlowDown", "AccessDenied", "403"])
def test_s3_failure_is_no_missing_report(
    half: Half, payloads: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, code: str, method: str
) -> None:
    """Nor one of which nothing is kept: a right that is missing is a fault of the deployment."""
    run = ended(half, "report.html")
    with calls(monkeypatch, refusing("HeadObject", code)), calls(monkeypatch, refusing("ListObjectsV2", code)):
        assert ask(method, f"/benchmarks/{run}/report")[0] == 500


def test_a_name_that_goes_on_is_no_report(half: Half) -> None:
    assert ask("GET", f"/benchmarks/{ended(half, 'report.html.bak')}/report")[0] == 404
