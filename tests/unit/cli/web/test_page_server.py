"""The server of the page, over real connections: who is let in, its files, and what only the command works out."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from cli.bench.artifacts import Staging
from cli.client.api import Answer, UnreachableError
from cli.shared import times
from cli.shared.errors import CliError, Exit
from cli.web.page_server import MOST_WEEKS, PageServer
from tests.serving import running
from tests.unit.cli.web.page_world import ABOUT, RUN, Ahead, World, page_server
from tests.unit.cli.web.proxying import JSON, Reply, Running
from troop.bench.definition.keys import FILE


class Page(Running):
    """The page's server, running."""

    @property
    def server(self) -> PageServer:
        return cast(PageServer, self.proxy)

    @property
    def world(self) -> World:
        return cast(World, self.api)

    def enter(self, ticket: str, **headers: str) -> Reply:
        body = json.dumps({"ticket": ticket}).encode()
        return self.ask("POST", "/ui/session", body, token=None, **(JSON | headers))

    def ticket(self) -> str:
        return self.server.link().partition("#ticket=")[2]


@pytest.fixture
def page() -> Iterator[Page]:
    world, log = World(), list[str]()
    world.add("web")
    with running(page_server(world, Ahead(world, "web"), log)) as server:
        yield Page(server, cast(Any, world), log)


FILES = ["/", "/index.html", "/style.css", "/icon.svg", "/js/main.js", "/js/session.js", "/report/chart.js"]


@pytest.mark.parametrize("file", FILES)
def test_files_are_for_every_browser_of_this_machine_and_allow_nothing_else(page: Page, file: str) -> None:
    reply = page.ask(target=file, token=None)
    assert reply.status == 200
    policy = reply.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert page.proxy.token.encode() not in reply.body


def test_files_name_nothing_in_line_and_nothing_from_elsewhere(page: Page) -> None:
    library = page.server.files["/report/echarts.js"]
    for file in {*page.server.files.values()} - {library}:
        text = file.read_text(encoding="utf-8")
        content = text.replace("http://www.w3.org/2000/svg", "")
        assert not [
            word
            for word in ("http:", "https://", "//cdn", "innerHTML", "<script>", 'style="', "eval(")
            if word in content
        ]


@pytest.mark.parametrize(
    "file", ["/js/../page_server.py", "/../ui.py", "/js", "/page_server.py", "/js/%2e%2e/style.css"]
)
def test_there_are_no_other_files(page: Page, file: str) -> None:
    assert page.ask(target=file).status == 404
    assert page.world.calls == []


def test_a_name_that_was_pointed_here_gets_no_file(page: Page) -> None:
    assert page.ask(target="/", token=None, Host=f"evil.example:{page.port}").status == 403
    assert page.ask(target="/js/main.js", token=None, Sec_Fetch_Site="cross-site").status == 403
    assert page.ask(target="/", token=None, Sec_Fetch_Site="cross-site").status == 200  # a link that somebody clicked
    assert page.ask("POST", "/", b"{}", token=None, **JSON).status == 405


def test_a_ticket_lets_in_once(page: Page) -> None:
    ticket, other = page.ticket(), page.ticket()
    assert page.enter("").status == page.enter("wrong").status == page.enter("\u00f6").status == 401
    entered = page.enter(ticket)
    assert (entered.status, entered.body) == (200, {"token": page.proxy.token})
    again = page.enter(ticket)
    assert again.status == 401
    assert "used before" in again.body["message"]
    assert page.enter(other).status == 200


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}],
)
def test_a_ticket_lets_no_other_site_in(page: Page, headers: dict[str, str]) -> None:
    ticket = page.ticket()
    assert page.enter(ticket, **headers).status == 403
    assert page.enter(ticket).status == 200


def test_a_ticket_comes_as_json(page: Page) -> None:
    assert page.enter(page.ticket(), **{"Content-Type": "text/plain"}).status == 415
    assert page.ask("GET", "/ui/session", token=None).status == 405


@pytest.mark.parametrize(
    "path", ["/ui/about", "/ui/why?unit=web", "/ui/calendar", f"/ui/report/{RUN}", "/groups", "/switch"]
)
def test_request_without_the_token_gets_no_data(page: Page, path: str) -> None:
    refused = page.ask(target=path, token=None)
    assert refused.status == 401
    assert "`troop ui`" in refused.body["message"]
    assert page.ask(target=path, Origin="https://evil.example").status == 403
    assert page.world.calls == []


def test_neither_tokens_nor_tickets_get_into_the_log(page: Page) -> None:
    ticket = page.ticket()
    page.enter(ticket)
    page.ask(target="/ui/why?unit=secret")
    assert not [line for line in page.log if ticket in line or page.proxy.token in line or "secret" in line]


def test_the_api_is_passed_on(page: Page) -> None:
    assert page.ask(target="/groups?limit=50").body["groups"][0]["unit"] == "web"
    assert page.ask("PATCH", "/switch", b'{"halted": true}', **JSON).body["halted"] is True
    assert cast(Ahead, page.server.ahead).forgotten == 1  # what is to be expected is another thing now
    assert page.ask(target="/ui/about").body == ABOUT


def test_change_whose_answer_is_lost_outdates_what_was_read(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any, **__: Any) -> Answer:
        raise UnreachableError("the connection was closed")

    monkeypatch.setattr(page.world, "request", lost)
    assert page.ask("PATCH", "/groups/web", b'{"opt_out": true}', **JSON).status == 502
    assert cast(Ahead, page.server.ahead).forgotten == 1


def test_server_lists_clock_changes_of_the_browsers_zone(page: Page) -> None:
    changes = page.ask(target="/ui/zone?name=America/Vancouver").body["changes"]
    assert {"at": "2026-11-01T09:00:00.000Z", "minutes": -420, "name": "MST"} in changes
    refused = page.ask(target="/ui/zone?name=Mars/Olympus")
    assert (refused.status, "Mars/Olympus" in refused.body["message"]) == (400, True)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/terminations", '{"group": "web"}', 404),
        ("POST", "/simianarmy/api/v1/chaos", "{}", 404),
        ("PATCH", "/switch", '{"leashed": false}', 403),
        ("PATCH", "/switch", '{"leashed": "false", "halted": true}', 403),
        ("POST", "/benchmarks", "{}", 405),  # the page starts runs through its own path, which checks files
        ("POST", "/fleets", "{}", 405),
        ("PATCH", "/fleets/1", "{}", 404),
        ("DELETE", "/benchmarks/schedules/nightly", "", 404),
        ("PUT", "/groups/web", "{}", 405),
    ],
)
def test_the_page_neither_terminates_nor_unleashes(page: Page, method: str, path: str, body: str, status: int) -> None:
    assert page.ask(method, path, body.encode(), **JSON).status == status
    assert page.world.calls == []


def test_the_page_leashes(page: Page) -> None:
    page.world.switch["leashed"] = False
    assert page.ask("PATCH", "/switch", b'{"leashed": true}', **JSON).body["leashed"] is True


EXPIRED = "The security token included in the request is expired"
DENIED = "User: arn:aws:iam::1:user/x is not authorized to perform: execute-api:Invoke"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(403, {"message": EXPIRED}), "credentials have expired"),
        (
            Answer(403, {"Message": DENIED}),
            "permission denied: your policies must allow execute-api:Invoke on arn:aws",
        ),
        (Answer(500, {"message": "Internal server error"}), "Lambda may be throttling it"),
        (Answer(400, {"statusCode": 400, "message": "limit is 0"}), "limit is 0"),
    ],
)
def test_refusals_say_what_to_do(page: Page, answer: Answer, message: str) -> None:
    page.world.refusals["GET", "groups"] = [answer]
    reply = page.ask(target="/groups")
    assert reply.status == answer.status
    assert message in reply.body["message"]


def test_unreachable_api_is_reported(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Answer:
        raise UnreachableError("refused")

    monkeypatch.setattr(page.world, "request", fail)
    for target in ("/groups", "/ui/why?unit=web"):
        reply = page.ask(target=target)
        assert reply.status == 502
        assert reply.body["message"] == "the API of Troop cannot be reached: refused"


def test_why(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "now", lambda: datetime(2026, 11, 20, 12, 0, tzinfo=UTC))
    decided: dict[str, Any] = {"unit": "web", "day": "2026-11-20", "time_zone": "Europe/Vienna", "reason": "not-rolled"}
    decided |= {"tick": "2026-11-20T09:00:00+00:00", "detail": "0.9 >= 0.2", "group": None, "instance_id": None}
    page.world.decisions = [decided]
    body = page.ask(target="/ui/why?unit=web&day=2026-11-20").body
    sentence = "web has not been hit today, Friday 2026-11-20, so far: not rolled: 0.9 >= 0.2."
    assert body["answer"] == sentence
    assert body["stretches"] == [{"time": "10:00-10:00", "ticks": 1, "reason": "not rolled", "detail": "0.9 >= 0.2"}]
    assert page.ask(target="/ui/why?unit=nobodys").status == 404
    assert page.ask(target="/ui/why?unit=web&day=x").status == 400


def test_the_calendar(page: Page) -> None:
    body = page.ask(target="/ui/calendar?weeks=2").body
    assert [len(calendar["days"]) for calendar in body["calendars"]] == [14, 14]
    assert page.ask(target=f"/ui/calendar?weeks={MOST_WEEKS + 1}").status == 400
    assert page.ask(target="/ui/calendar?weeks=x").status == 400


def test_read_that_the_command_may_not_do_is_reported(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise CliError(Exit.FORBIDDEN, "you may not")

    monkeypatch.setattr(Ahead, "__call__", fail)
    assert (page.ask(target="/ui/calendar").status, page.ask(target="/ui/calendar").body["message"]) == (
        403,
        "you may not",
    )


def test_where_a_report_is(page: Page) -> None:
    assert page.ask(target=f"/ui/report/{RUN}").body == {"url": "https://bucket.example/r"}
    assert page.ask(target=f"/ui/report/{RUN}/metadata").body == {"created_at": "2026-11-21T15:21:40.000Z", "etag": "1"}
    page.world.report = Answer(404, {"statusCode": 404, "message": "there is no report yet"})
    assert page.ask(target=f"/ui/report/{RUN}").body["message"] == "there is no report yet"
    page.world.report = Answer(403, {"message": "Missing Authentication Token"}, "MissingAuthenticationTokenException")
    assert "is older than this command" in page.ask(target=f"/ui/report/{RUN}").body["message"]
    assert page.ask(target="/ui/report/..").status == 404


def test_report_is_served_by_the_server_in_a_sandbox(page: Page) -> None:
    page.server.fetch = lambda url: f"<p>what is at {url}</p>".encode()
    url = page.ask(target=f"/ui/report/{RUN}").body["url"]
    report = page.ask(target=url, token=None)
    assert report.body == b"<p>what is at https://bucket.example/r</p>"
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts ")
    assert "allow-same-origin" not in report.headers["content-security-policy"]
    assert page.ask(target=url, token=None, Host="evil.example").status == 403
    assert page.ask(target=url[:-1], token=None).status == 404
    for _ in range(8):
        page.ask(target=f"/ui/report/{RUN}/metadata")
    assert page.ask(target=url, token=None).status == 200
    for _ in range(8):
        page.ask(target=f"/ui/report/{RUN}")
    assert page.ask(target=url, token=None).status == 404


def test_when_to_ask_for_a_report_again_is_passed_on(page: Page) -> None:
    body = {"statusCode": 404, "message": "it is being made"}
    page.world.report = Answer(404, body, headers={"Retry-After": "5"})
    assert page.ask(target=f"/ui/report/{RUN}").headers["retry-after"] == "5"


@pytest.mark.parametrize("path", ["/ui/policy", "/ui/benchmarks", "/ui/benchmarks/estimate", "/ui/session"])
def test_a_body_that_cannot_be_written_again_is_refused(page: Page, path: str) -> None:
    assert page.ask("POST", path, rb'{"\ud800": 1}', **JSON).status == 400


BENCHMARK = """name: mine
expires_after: 1h
fleets: {a: {count: 1, instance_type: t3.nano}}
phases: [{name: go, roles: [a], script: go.py, timeout: 1m}]
"""


@pytest.mark.parametrize(
    "source",
    [
        *("PATH", "./x/../PATH", "file://PATH", "FILE://PATH", "file:PATH", "file://localhostPATH", "file:///PATH"),
        *("local_file://PATH", "url:file://PATH", " file://PATH", "data:,x", "ftp://127.0.0.1:9/x", "http://127.0.0.1"),
    ],
)
def test_no_request_makes_the_command_read_a_file_of_the_machine(
    page: Page, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, sent = tmp_path / "secret", list[bytes]()
    secret.write_text("PRIVATE KEY")
    digest = hashlib.sha256(secret.read_bytes()).hexdigest()
    upload = {"staged": False, "upload_url": "https://bucket.example/x", "headers": {}}
    page.world.refusals["POST", "benchmarks/artifacts"] = [Answer(200, upload)] * 4
    monkeypatch.setattr(Staging, "_put", lambda self, artifact, file, *_: sent.append(file.read()))
    named = json.dumps(source.replace("PATH", str(secret)))
    for sha256 in (digest, "0f" * 32):
        text = f"{BENCHMARK}artifacts: [{{name: d, source: {named}, sha256: {sha256}}}]\n"
        files = {"benchmark.yaml": text, "go.py": "x"}
        encoded = {name: base64.b64encode(content.encode()).decode() for name, content in files.items()}
        changes = [f"artifacts=[{{name: d, source: {named}, sha256: {sha256}}}]"]
        for choice in ({"files": encoded}, {"benchmark": "s3-range-read", "changes": changes}):
            for path in ("/ui/benchmarks", "/ui/benchmarks/estimate"):
                refused = page.ask("POST", path, json.dumps(choice | {"key": "k"}).encode(), **JSON)
                assert refused.status == 400, refused.body
                assert sha256 == digest or digest not in refused.body["message"]
    assert (sent, page.world.calls) == ([], [])


def test_the_page_starts_no_benchmark_that_hits_units(page: Page) -> None:
    """It has no route that terminates instances of other owners, and no run must do it instead."""
    text = BENCHMARK.replace(
        "timeout: 1m}]", "timeout: 2m, measured: 30s, start_together: true, faults: [{at: 11s, unit: shop}]}]"
    )
    files = {"benchmark.yaml": text, "go.py": "x"}
    encoded = {name: base64.b64encode(content.encode()).decode() for name, content in files.items()}
    body = json.dumps({"files": encoded, "key": "k"}).encode()
    estimate, started = (page.ask("POST", path, body, **JSON) for path in ("/ui/benchmarks/estimate", "/ui/benchmarks"))
    why = "the benchmark hits shop, which the page does not permit: use troop bench run"
    assert (estimate.status, estimate.body["refused"]) == (200, [why])
    assert (started.status, started.body["message"]) == (400, why)
    assert page.world.calls == []


def test_refused_file_name_is_reported_with_allowed_names(page: Page) -> None:
    files = {"../x": "eA==", "benchmark.yaml": base64.b64encode(BENCHMARK.encode()).decode()}
    refused = page.ask("POST", "/ui/benchmarks/estimate", json.dumps({"files": files}).encode(), **JSON)
    assert (refused.status, f"its name must be {FILE.allowed}" in refused.body["message"]) == (400, True)
