"""Serves the page of `troop ui` beside the signed proxy: its files, and the data that only this command can compute.

:mod:`cli.web.proxy_guard` decides who may use it. The files hold no secret. A ticket admits a browser: the part of the
link after ``#``, which browsers never send. The page exchanges it, once, for the token. Other users of the machine do
not see it either: the command that opens the browser gets the address of a file that redirects there
(:mod:`cli.web.login_link`).
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

from cli.chaos import risks, why
from cli.client import retries
from cli.client.api import Answer, UnreachableError
from cli.client.client import TroopClient
from cli.client.retries import is_own
from cli.shared import aws, times
from cli.shared.errors import CliError, Exit
from cli.web.benchmark_reader import BenchmarkReader
from cli.web.overview_reader import SECONDS, OverviewReader
from cli.web.page_benchmarks import PageBenchmarks
from cli.web.page_policy import Forecasts, PagePolicy
from cli.web.proxy import HOST, Handler, Proxy, error_answer
from cli.web.proxy_guard import (
    PAGE_ESTIMATE_PATH,
    PAGE_FORM_PATH,
    PAGE_ROUTES,
    PAGE_RUNS_PATH,
    SWITCH_PATH,
    Admitted,
    Refusal,
    Routes,
)
from troop.report.assets import chart_library
from troop.report.html import TEMPLATES
from troop.shared import moments, values, zones

FOLDER = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
MOST_WEEKS = 12
MOST_GROUPS = 1_000_000
_TICKETS = 8
"""The most links, and the most reports and comparisons served here, that are valid at a time."""

_TICKET_BYTES = 32
_ZONE_PAST, _ZONE_FUTURE = timedelta(days=10 * 366), timedelta(days=2 * 366)

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
"""Content-Security-Policy: nothing from other origins, nothing inline, no text that becomes HTML or a script."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}

_ALONE = {
    "Content-Security-Policy": "sandbox allow-scripts allow-downloads; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Content-Type": TYPES[".html"],
}
"""Headers of a report, which has inline scripts: the sandbox gives it another origin, without access to this server."""

_SESSION, _POLICY, _GET, _POST = "/ui/session", "/ui/policy", frozenset({"GET"}), frozenset({"POST"})
_DEPLOYMENTS = "/ui/deployments"
_SERVED = "/ui/served/"
_FIGURES, _BEFORE = f"{PAGE_RUNS_PATH}/figures", f"{PAGE_RUNS_PATH}/before"
_REPORT = re.compile("/ui/report/(?P<run>[0-9][0-9a-f-]+)(?P<metadata>/metadata)?")
"""The address of a report; with ``/metadata`` only its time of creation."""

_ENTRANCE: Routes = ((re.compile(_SESSION), _POST),)
_ROUTES: Routes = (
    (re.compile("/ui/about"), _GET),
    (re.compile(_DEPLOYMENTS), _GET | _POST),
    (re.compile("/ui/zone"), _GET),
    (re.compile("/ui/why"), _GET),
    (re.compile("/ui/calendar"), _GET),
    (re.compile("/ui/overview"), _GET),
    (re.compile("/ui/groups"), _GET),
    (re.compile("/ui/recoveries"), _GET),
    (re.compile("/ui/risks"), _GET),
    (re.compile("/ui/ahead"), _GET),
    (re.compile("/ui/catalogue"), _GET),
    (re.compile("/ui/comparison"), _GET),
    (re.compile(_POLICY), _GET | _POST),
    (re.compile(PAGE_RUNS_PATH), _GET | _POST),
    (re.compile(f"{_FIGURES}|{_BEFORE}"), _GET),
    (re.compile("/ui/benchmark"), _GET),
    (re.compile(f"{PAGE_ESTIMATE_PATH}|{PAGE_FORM_PATH}"), _POST),
    (_REPORT, _GET),
)

_STATUS = {
    Exit.USAGE: HTTPStatus.BAD_REQUEST,
    Exit.REFUSED: HTTPStatus.BAD_REQUEST,
    Exit.NO_SUCH_UNIT: HTTPStatus.NOT_FOUND,
    Exit.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Exit.CONFLICT: HTTPStatus.CONFLICT,
}
"""The status for an error of the command itself; 502 for all others."""


class Ahead(Forecasts, Protocol):
    """A forecast."""

    def __call__(self, weeks: int, *, unleashed: bool) -> Mapping[str, Any]:
        """Returns the document of :mod:`cli.forecasts.calendar_ahead`."""

    def forget(self) -> None:
        """Drops what was read before a change."""


class Pages(Protocol):
    """The pages of many deployments, see :class:`cli.web.page_deployments.PageDeployments`."""

    @property
    def labels(self) -> list[str]: ...

    def page(self, label: str) -> PageServer: ...

    def rows(self, labels: Sequence[str]) -> list[dict[str, Any]]: ...


class PageServer(Proxy):
    """The proxy, with the page.

    Args:
        client: the deployment's API.
        about: the deployment's name, account and region, in JSON's types.
        ahead: the forecast.
        overview: the state at a glance.
        benchmarks: starts and compares runs.
        port, log, host: as for the proxy.
        fetch: downloads a report; raises CliError. None if the browser can do so itself: it does not trust the
            certificate of local AWS.
    """

    command = "troop ui"

    def __init__(
        self,
        client: TroopClient,
        about: Mapping[str, Any],
        ahead: Ahead,
        overview: OverviewReader,
        benchmarks: PageBenchmarks,
        port: int,
        log: Callable[[str], None],
        fetch: Callable[[str], bytes] | None = None,
        host: str = HOST,
    ) -> None:
        super().__init__(client.api, port, log, host)
        self.client, self.about, self.ahead, self.overview, self.fetch = client, about, ahead, overview, fetch
        self.benchmarks, self.policies = benchmarks, PagePolicy(client, ahead)
        self.recorded = BenchmarkReader(client.benchmarks, benchmarks.now)
        self.sleep = client.sleep
        self.files = {f"/{path.relative_to(FOLDER)}": path for path in FOLDER.rglob("*") if path.suffix in TYPES}
        self.files["/"] = self.files["/index.html"]
        self.files |= {"/report/echarts.js": chart_library(), "/report/chart.js": TEMPLATES / "chart.js"}
        self.used: Callable[[str], object] = lambda _link: None
        """Called with each link that was used."""
        self.label: str | None = None
        self.pages: Pages | None = None
        """The pages of all deployments of a file, of which this is that with the label."""
        self._tickets: list[str] = []
        self._served: dict[str, Callable[[], bytes]] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Reads again what a change can affect."""
        self.overview.forget()
        self.recorded.forget()

    @staticmethod
    def handler() -> type[Handler]:
        return _PageHandler

    def link(self) -> str:
        """Creates a link to the page, valid once, for one browser."""
        ticket = secrets.token_urlsafe(_TICKET_BYTES)
        with self._lock:
            self._tickets = [*self._tickets, ticket][-_TICKETS:]
        return self._link(ticket)

    def _link(self, ticket: str) -> str:
        return f"{self.address}/#ticket={ticket}"

    def redeem(self, candidate: Any) -> bool:
        """Checks a ticket, and invalidates it."""
        encoded = str(candidate).encode(errors="replace")
        with self._lock:
            matches = [ticket for ticket in self._tickets if hmac.compare_digest(ticket.encode(), encoded)]
            self._tickets = [ticket for ticket in self._tickets if ticket not in matches]
        for ticket in matches:
            self.used(self._link(ticket))
        return bool(matches)

    def address_of(self, report: str) -> str:
        """Returns the address from which a browser loads a report: the given one, or one of this server."""
        fetch = self.fetch
        return report if fetch is None else self.serve(lambda: fetch(report))

    def serve(self, content: Callable[[], bytes]) -> str:
        """Returns an address of this server for a page of its own; only the newest few stay valid."""
        ticket = secrets.token_urlsafe(_TICKET_BYTES)
        with self._lock:
            self._served = dict([*self._served.items(), (ticket, content)][-_TICKETS:])
        return _SERVED + ticket

    def served(self, path: str) -> bytes | None:
        """Returns the report or comparison at a path of this server; None without one."""
        content = self._served.get(path.removeprefix(_SERVED))
        return content() if content else None


class _PageHandler(Handler):
    server: PageServer

    def reply(self) -> Answer:
        path = self.path.partition("?")[0]
        if file := self.server.files.get(path):
            return self._file(path, file)
        try:
            with aws.translated_errors():
                if path.startswith(_SERVED):
                    return self._served_report(path)
                return self._session() if path == _SESSION else self._dispatch(path)
        except UnreachableError as error:
            where = self.server.client.where
            return error_answer(HTTPStatus.BAD_GATEWAY, f"the API of {where} cannot be reached: {error}")
        except CliError as error:
            return error_answer(_STATUS.get(error.code, HTTPStatus.BAD_GATEWAY), str(error))

    def _file(self, path: str, file: Path) -> Answer:
        self.server.guard.admit_public(self.headers, site=path != "/")
        if self.command not in ("GET", "HEAD"):
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "this path is a file: use GET", _GET)
        return Answer(HTTPStatus.OK, file.read_bytes(), headers={**_HEADERS, "Content-Type": TYPES[file.suffix]})

    def _served_report(self, path: str) -> Answer:
        self.server.guard.admit_public(self.headers, site=False)  # a user may reload the report's page
        if self.command != "GET" or (page := self.server.served(path)) is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this address has expired: open the report from its run again")
        return Answer(HTTPStatus.OK, page, headers=_ALONE)

    def _session(self) -> Answer:
        admitted = self.server.guard.enter(self.command, self.path, self.headers, _ENTRANCE)
        if not self.server.redeem((self.body(admitted) or {}).get("ticket")):
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                "This link was used before, or belongs to an earlier start of `troop ui`.",
            )
        return Answer(HTTPStatus.OK, {"token": self.server.token})

    def _dispatch(self, path: str) -> Answer:
        if not path.startswith("/ui/"):
            return self._passed_on(self.server.guard.admit(self.command, self.path, self.headers, PAGE_ROUTES))
        admitted = self.server.guard.admit(self.command, self.path, self.headers, _ROUTES)
        query = admitted.query
        if path == _DEPLOYMENTS:
            return Answer(HTTPStatus.OK, self._deployments(query, self.body(admitted)))
        if admitted.method == "POST" and path.startswith(PAGE_RUNS_PATH):
            return self._benchmark(path, self.body(admitted) or {})
        if path.startswith("/ui/benchmark"):
            return Answer(HTTPStatus.OK, self._recorded(path, query))
        if path == _POLICY:
            policies = self.server.policies
            preview = None if admitted.method == "GET" else policies.preview(self.body(admitted) or {})
            return Answer(HTTPStatus.OK, preview or policies.choices())
        if path == "/ui/catalogue":
            return Answer(HTTPStatus.OK, self.server.benchmarks.catalogue())
        if path == "/ui/comparison":
            page = self.server.benchmarks.comparison(query.get("a", ""), query.get("b", ""))
            return Answer(HTTPStatus.OK, {"url": self.server.serve(lambda: page)})
        if match := _REPORT.fullmatch(path):
            return self._report(match["run"], where=not match["metadata"])
        if path == "/ui/zone":
            return Answer(HTTPStatus.OK, _clock(query.get("name", ""), times.now()))
        if path == "/ui/why":
            return Answer(HTTPStatus.OK, self._why(query))
        if path == "/ui/calendar":
            weeks = _number(query.get("weeks", "4"), MOST_WEEKS, "weeks")
            return Answer(HTTPStatus.OK, self.server.ahead(weeks, unleashed=query.get("unleashed") == "true"))
        if path == "/ui/overview":
            return Answer(HTTPStatus.OK, self._part(query.get("part", "")))
        if path == "/ui/groups":
            known, fresh = _number(query.get("after", "0"), MOST_GROUPS, "after", 0), query.get("fresh") == "true"
            return Answer(
                HTTPStatus.OK, self.server.overview.groups.after(known, query.get("reading", ""), fresh=fresh)
            )
        if path == "/ui/recoveries":
            return Answer(HTTPStatus.OK, self.server.overview.recoveries_of(query.get("unit", "")))
        if path == "/ui/risks":
            return Answer(HTTPStatus.OK, risks.ordered(self.server.client.risks(gone=True)))
        if path == "/ui/ahead":
            return Answer(HTTPStatus.OK, self.server.policies.ahead(query.get("unit", "")))
        pages, about = self.server.pages, self.server.about
        more = {"label": self.server.label, "deployments": pages.labels} if pages else {}
        return Answer(HTTPStatus.OK, {**about, **more})

    def _deployments(self, query: Mapping[str, str], body: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the rows of deployments, one label a line, or a link to the page of one, which has its own address
        and token.
        """
        pages = self.server.pages
        if pages is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "this page shows one deployment: start `troop --all ui`")
        if body is None:
            return {"rows": pages.rows(query.get("labels", "").splitlines())}
        return {"url": pages.page(str(body.get("label"))).link()}

    def _part(self, name: str) -> dict[str, Any]:
        if name not in SECONDS:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"part is {name!r}: must be one of {', '.join(SECONDS)}")
        return self.server.overview.part(name)

    def _benchmark(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Describes, estimates or starts the run that the page describes."""
        benchmarks = self.server.benchmarks
        if path != PAGE_RUNS_PATH:
            return Answer(HTTPStatus.OK, (benchmarks.form if path == PAGE_FORM_PATH else benchmarks.estimate)(body))
        try:
            return Answer(HTTPStatus.ACCEPTED, benchmarks.start(body))
        finally:  # also after an error: the run may have started
            self.server.forget()

    def _recorded(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Returns all benchmarks that are on record, their figures, a run's predecessor, or one benchmark."""
        recorded = self.server.recorded
        if query.get("fresh"):
            recorded.forget()
        if path == PAGE_RUNS_PATH:
            return recorded.document()
        if path == _FIGURES:
            return recorded.figures()
        if path == _BEFORE:
            return recorded.before(query.get("run", ""))
        return recorded.benchmark(*(query.get(key, "") for key in ("name", "figure", "measurement")))

    def body(self, admitted: Admitted) -> Mapping[str, Any] | None:
        """Reads the body as the proxy does, and refuses to unleash."""
        body = super().body(admitted)
        if f"/{admitted.path}" == SWITCH_PATH and body and body.get("leashed", True) is not True:
            raise Refusal(HTTPStatus.FORBIDDEN, "the page does not unleash: use `troop unleash`")
        return body

    def _passed_on(self, admitted: Admitted) -> Answer:
        """Returns the API's answer; words a refusal of API Gateway or IAM as this command does."""
        try:
            answer = self.passed(admitted)
        finally:  # also without an answer: the change may have been made
            if admitted.method != "GET":
                self.server.ahead.forget()
                self.server.forget()
        if answer.status < HTTPStatus.BAD_REQUEST or is_own(answer):
            return answer
        return error_answer(
            HTTPStatus(answer.status), str(self.server.client.refusal(answer, admitted.method, admitted.path))
        )

    def _why(self, query: Mapping[str, str]) -> dict[str, Any]:
        day: date | None = None
        if text := query.get("day"):
            try:
                day = values.day(text)
            except values.BadValue as error:
                raise Refusal(HTTPStatus.BAD_REQUEST, f"day is {text!r}: must be {error}") from None
        explanation = why.explain(self.server.client, query.get("unit", ""), day, times.now())
        stretches = [dict(zip(("time", "ticks", "reason", "detail"), row, strict=True)) for row in explanation.rows()]
        document = explanation.document()
        return {key: document[key] for key in ("unit", "day", "time_zone", "answer")} | {"stretches": stretches}

    def _report(self, run: str, *, where: bool) -> Answer:
        """Returns the address of a report, or the time of its creation.

        The browser opens the address without the token, so it cannot lead through this proxy. A page that waits for a
        newer report asks for the time, which uses up no address.
        """
        path = f"benchmarks/{run}/report"
        answer = retries.request(self.server.api, "GET", path, None, None, sleep=self.server.sleep)
        location = {name.lower(): value for name, value in answer.headers.items()}.get("location")
        if location and where:
            return Answer(HTTPStatus.OK, {"url": self.server.address_of(location)})
        if location:
            document = answer.body if isinstance(answer.body, Mapping) else {}
            return Answer(HTTPStatus.OK, {key: document.get(key) for key in ("created_at", "etag")})
        if answer.status < HTTPStatus.BAD_REQUEST:
            return error_answer(HTTPStatus.BAD_GATEWAY, "the API returned no address of the report")
        if is_own(answer):
            return answer
        raise self.server.client.refusal(answer, "GET", path)


def _clock(name: str, now: datetime) -> dict[str, Any]:
    """Returns when the clocks of the browser's zone change. Browsers have zones of their own, often older ones."""
    try:
        changes = zones.offsets(name, now - _ZONE_PAST, now + _ZONE_FUTURE)
    except zones.UnknownZoneError as error:
        raise Refusal(HTTPStatus.BAD_REQUEST, str(error)) from None
    return {"changes": [{"at": moments.iso(at), "minutes": minutes, "name": zone} for at, minutes, zone in changes]}


def _number(text: str, most: int, name: str, least: int = 1) -> int:
    with suppress(ValueError):
        if least <= (number := int(text)) <= most:
            return number
    raise Refusal(HTTPStatus.BAD_REQUEST, f"{name} is {text!r}: must be {least} to {most}")
