"""Decides who may use the proxy, and for what, from a request's head alone, before anything is signed.

Without it, the proxy would lend the caller's AWS credentials to everything that can reach 127.0.0.1: every web page
that the user opens, and every other user of the machine. A page cannot know the token, and cannot set its header on
another site without a permission that the proxy never gives. Host, Origin and Sec-Fetch-Site reveal it. Another user
cannot read the token's file.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from urllib.parse import parse_qsl

TOKEN_HEADER = "X-Troop-Token"
LARGEST_BODY = 65_536
"""Bytes; only benchmarks and fleets with their files, and tasks, need more."""
LARGEST_BENCHMARK = 4 * 1024 * 1024
"""Bytes of a request with a benchmark or fleet: its file, and scripts of up to a mebibyte in base64."""
LARGEST_TASKS = 5 * 1024 * 1024
"""Bytes of a request with tasks: as many as the API takes."""

_SEGMENT = r"[A-Za-z0-9._~-]+"
_RUN = r"[0-9][0-9a-f-]+"
BENCHMARKS_PATH = "/benchmarks"
ESTIMATE_PATH = f"{BENCHMARKS_PATH}/estimate"
SCHEDULES_PATH = f"{BENCHMARKS_PATH}/schedules"
LIVE_PATH = re.compile(f"{BENCHMARKS_PATH}/{_RUN}/live")
REPORT_PATH = re.compile(f"{BENCHMARKS_PATH}/{_RUN}/report")
FLEETS_PATH = "/fleets"
FLEET_ESTIMATE_PATH = f"{FLEETS_PATH}/estimate"
TASKS_PATH = re.compile(f"{FLEETS_PATH}/{_RUN}/tasks")
PAGE_RUNS_PATH = "/ui/benchmarks"
PAGE_ESTIMATE_PATH = f"{PAGE_RUNS_PATH}/estimate"
PAGE_FORM_PATH = f"{PAGE_RUNS_PATH}/form"
TAKE_FILES = (
    BENCHMARKS_PATH,
    ESTIMATE_PATH,
    SCHEDULES_PATH,
    FLEETS_PATH,
    FLEET_ESTIMATE_PATH,
    PAGE_RUNS_PATH,
    PAGE_ESTIMATE_PATH,
    PAGE_FORM_PATH,
)
SWITCH_PATH = "/switch"
CHAOS_PATH = "/simianarmy/api/v1/chaos"
KEY_HEADER = "Idempotency-Key"
"""Clients of the original Chaos Monkey send bodies of any content type, or of none."""

Routes = Sequence[tuple[re.Pattern[str], frozenset[str]]]
"""Paths and their methods."""

ROUTES: Routes = (
    (re.compile("/events"), frozenset({"GET"})),
    (re.compile(f"/events/{_SEGMENT}"), frozenset({"GET"})),
    (re.compile("/decisions"), frozenset({"GET"})),
    (re.compile("/changes"), frozenset({"GET"})),
    (re.compile("/risks"), frozenset({"GET", "PATCH"})),
    (re.compile("/groups"), frozenset({"GET"})),
    (re.compile(f"/groups/{_SEGMENT}"), frozenset({"GET", "PATCH"})),
    (re.compile("/policies"), frozenset({"GET"})),
    (re.compile(SWITCH_PATH), frozenset({"GET", "PATCH"})),
    (re.compile("/health"), frozenset({"GET"})),
    (re.compile("/terminations"), frozenset({"POST"})),
    (re.compile(CHAOS_PATH), frozenset({"GET", "POST"})),
    (re.compile(BENCHMARKS_PATH), frozenset({"GET", "POST"})),
    (re.compile(ESTIMATE_PATH), frozenset({"POST"})),
    (re.compile(SCHEDULES_PATH), frozenset({"GET", "POST"})),
    (re.compile(f"{SCHEDULES_PATH}/{_SEGMENT}"), frozenset({"DELETE"})),
    (re.compile(f"{BENCHMARKS_PATH}/artifacts"), frozenset({"POST"})),
    (re.compile(f"{BENCHMARKS_PATH}/history"), frozenset({"GET"})),
    (re.compile(f"{BENCHMARKS_PATH}/{_RUN}"), frozenset({"GET", "DELETE"})),
    (REPORT_PATH, frozenset({"GET", "POST"})),
    (LIVE_PATH, frozenset({"GET"})),
    (re.compile(FLEETS_PATH), frozenset({"GET", "POST"})),
    (re.compile(FLEET_ESTIMATE_PATH), frozenset({"POST"})),
    (re.compile(f"{FLEETS_PATH}/{_RUN}"), frozenset({"GET", "PATCH", "DELETE"})),
    (TASKS_PATH, frozenset({"POST"})),
    (re.compile(f"{FLEETS_PATH}/{_RUN}/results"), frozenset({"GET"})),
)
"""The whole API, and nothing else."""

PAGE_ROUTES: Routes = (
    (re.compile("/(events|groups|changes|benchmarks|fleets)"), frozenset({"GET"})),
    (re.compile(f"/events/{_SEGMENT}"), frozenset({"GET"})),
    (re.compile(f"/groups/{_SEGMENT}"), frozenset({"GET", "PATCH"})),
    (re.compile(SWITCH_PATH), frozenset({"GET", "PATCH"})),
    (re.compile(f"{BENCHMARKS_PATH}/{_RUN}"), frozenset({"GET", "DELETE"})),
    (REPORT_PATH, frozenset({"POST"})),
    (LIVE_PATH, frozenset({"GET"})),
)
"""What the page of `troop ui` needs of the API: nothing that terminates instances of other owners."""


class Refusal(Exception):
    """The refusal of a request.

    Attributes:
        status: the answer's status.
        allow: methods for the header Allow.
    """

    def __init__(self, status: HTTPStatus, message: str, allow: frozenset[str] = frozenset()) -> None:
        self.status, self.allow = status, allow
        super().__init__(message)


@dataclass(frozen=True)
class Admitted:
    """A request that may be signed. ``length``: bytes of its body."""

    method: str
    path: str
    query: dict[str, str]
    length: int


@dataclass(frozen=True)
class Guard:
    """The rules of one proxy.

    Attributes:
        place: the proxy's address and port, such as ``127.0.0.1:38211``.
        token: the token that every request must send.
        command: the command that made the token.
    """

    place: str
    token: str
    command: str = "troop proxy"

    def admit_public(self, headers: Message, *, site: bool = True) -> None:
        """Admits a request without a token, for content that holds no secret.

        Args:
            site: whether to refuse requests that pages of other sites make; links in them always work.

        Raises:
            Refusal: as :meth:`admit`.
        """
        self._host(headers)
        if site:
            self._site(headers)

    def enter(self, method: str, target: str, headers: Message, routes: Routes) -> Admitted:
        """Admits a request that carries its credential in the body.

        Raises:
            Refusal: as :meth:`admit`.
        """
        self.admit_public(headers)
        _route(method, target, routes)
        return Admitted(method, target.removeprefix("/"), {}, _body_length(method, target, headers))

    def admit(self, method: str, target: str, headers: Message, routes: Routes = ROUTES) -> Admitted:
        """Admits a request with the token.

        Raises:
            Refusal: the request may not pass; with the status and what to do.
        """
        self._host(headers)
        self._site(headers)
        path, _, query = target.partition("?")
        parameters = _query(query)
        self._token(headers)
        _route(method, path, routes)
        return Admitted(method, path.removeprefix("/"), parameters, _body_length(method, path, headers))

    def _host(self, headers: Message) -> None:
        """Refuses other hosts: a page whose name resolves to 127.0.0.1 (DNS rebinding) sends its own name.

        Refuses localhost too: many programs try ::1 first, where another user could listen on the same port and receive
        the token. A name that never works stays unused.
        """
        if [host.strip() for host in headers.get_all("Host", [])] != [self.place]:
            raise Refusal(HTTPStatus.FORBIDDEN, f"the address must be {self.place}, and so must be the header Host")

    def _site(self, headers: Message) -> None:
        """Refuses requests of other pages. Pages of other ports are foreign too, although they are "same-site"."""
        own = f"http://{self.place}"
        if any(origin.strip().lower() != own for origin in headers.get_all("Origin", [])):
            raise Refusal(HTTPStatus.FORBIDDEN, "web pages may not use this proxy")
        sites = {site.strip().lower() for site in headers.get_all("Sec-Fetch-Site", [])}
        if sites - {"same-origin", "none"}:
            raise Refusal(HTTPStatus.FORBIDDEN, "web pages may not use this proxy")

    def _token(self, headers: Message) -> None:
        tokens = headers.get_all(TOKEN_HEADER, [])
        bearers = [value.strip() for value in headers.get_all("Authorization", [])]
        tokens += [value[7:] for value in bearers if value[:7].lower() == "bearer "]
        # Compared in constant time, as bytes: hmac raises TypeError for text outside ASCII.
        matches = [hmac.compare_digest(value.strip().encode(errors="replace"), self.token.encode()) for value in tokens]
        if len(tokens) != 1 or len(bearers) > 1 or not matches[0]:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                f"every request needs the token that `{self.command}` made, as {TOKEN_HEADER} "
                "or as Authorization: Bearer",
            )


def _query(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=20, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise Refusal(HTTPStatus.BAD_REQUEST, "the query string is malformed") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise Refusal(HTTPStatus.BAD_REQUEST, "a parameter occurs twice")
    if "token" in parameters:
        raise Refusal(HTTPStatus.BAD_REQUEST, f"addresses appear in logs: send the token in the header {TOKEN_HEADER}")
    return parameters


def _route(method: str, path: str, routes: Routes) -> None:
    methods = next((allowed for pattern, allowed in routes if pattern.fullmatch(path)), None)
    if methods is None or path.endswith(("/.", "/..")):
        raise Refusal(HTTPStatus.NOT_FOUND, "the API has no such path")
    if method not in methods:
        raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "the API does not have this method for this path", methods)


def _body_length(method: str, path: str, headers: Message) -> int:
    lengths = headers.get_all("Content-Length", [])
    if headers.get_all("Transfer-Encoding"):
        raise Refusal(HTTPStatus.NOT_IMPLEMENTED, "send the body in one piece, with a Content-Length")
    if len(lengths) > 1 or any(not re.fullmatch("[0-9]{1,12}", value.strip()) for value in lengths):
        raise Refusal(HTTPStatus.BAD_REQUEST, "the Content-Length is malformed")
    length = int(lengths[0]) if lengths else 0
    if method in ("GET", "DELETE"):
        if length:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"{method} has no body")
        return 0
    if not length and path == CHAOS_PATH:
        return 0  # the API says what is missing, also to clients of the original Chaos Monkey
    if not length and REPORT_PATH.fullmatch(path):
        return 0  # the request has no parameters
    if not length:
        raise Refusal(HTTPStatus.LENGTH_REQUIRED, "this method needs a body: one JSON object")
    largest = LARGEST_BENCHMARK if path in TAKE_FILES else LARGEST_BODY
    if TASKS_PATH.fullmatch(path):
        largest = LARGEST_TASKS
    if length > largest:
        raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have at most {largest} bytes")
    if path == CHAOS_PATH:
        return length
    if headers.get_content_type() != "application/json" or "Content-Type" not in headers:
        raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")
    return length
