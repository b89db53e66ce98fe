"""The API as the commands use it: what its answers mean, and what a refusal tells the caller to do."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from cli import aws
from cli.api import Answer, Api, UnreachableError
from cli.errors import CliError, Exit
from troop import moments
from troop.bench.problems import Problem
from troop.chaos.units import unit_to_url

EVENTS_PAGE = 100
DECISIONS_PAGE = 100
GROUPS_PAGE = 50
POLICIES_PAGE = 100
RUNS_PAGE = 100
"""The longest pages the API gives."""

_TRIES = 3
_TEMPORARY = frozenset({429, 502, 503, 504})
_SEARCHED = 2000
"""Groups among which a name is looked for that is no unit's."""


class RefusedFileError(CliError):
    """A benchmark that the deployment refuses as it is.

    Attributes:
        problems: what is wrong, by the way to it in the benchmark's file.
    """

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        self.problems = problems
        super().__init__(Exit.REFUSED, message)


class NoReportError(CliError):
    """There is no such run, or it has no report.

    Attributes:
        soon: whether one is about to come.
    """

    def __init__(self, message: str, soon: bool) -> None:
        self.soon = soon
        super().__init__(Exit.REFUSED, message)


@dataclass(frozen=True)
class ReportLink:
    """A report that is there.

    Attributes:
        address: where anybody gets it for at most an hour, without a signature; so it is told nobody.
        etag: another one after it was made again.
        made_at: None of a deployment that does not say.
    """

    address: str = field(repr=False)
    etag: str
    made_at: datetime | None = None


@dataclass(frozen=True)
class TroopClient:
    """A deployment's API.

    Attributes:
        api: sends the requests.
        arn: of the API's stage, for the message about a missing permission.
        where: the deployment, account and region, for messages.
        sleep: waits that many seconds between tries.
    """

    api: Api
    arn: str
    where: str
    sleep: Callable[[float], None] = field(default=time.sleep)

    def events(self, query: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
        """Up to ``limit`` events, newest first; ``query`` as GET /events takes it, without limit and cursor."""
        return self._listing("events", query, limit, EVENTS_PAGE)

    def decisions(self, query: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
        """Up to ``limit`` decisions, newest first; ``query`` as GET /decisions takes it, without limit and cursor."""
        return self._listing("decisions", query, limit, DECISIONS_PAGE)

    def groups(self) -> Iterator[dict[str, Any]]:
        """All groups of the account and region, page by page."""
        return self._pages("groups", GROUPS_PAGE)

    def policies(self) -> Iterator[dict[str, Any]]:
        """What people have set, for every unit for which they have set anything, page by page."""
        return self._pages("policies", POLICIES_PAGE)

    def unit(self, unit: str) -> dict[str, Any] | None:
        """What GET /groups/{unit} tells; None when nothing is known of it."""
        answer = self._send("GET", unit_path(unit))
        if answer.status == 404:
            return None
        return self._checked(answer, "GET", unit_path(unit))

    def known_unit(self, name: str, hint: str = "`troop groups` lists those there are") -> dict[str, Any]:
        """The unit of that name, or the unit that a group of that name belongs to.

        Args:
            name: of a unit or a group.
            hint: what to do when no name is near.

        Raises:
            CliError: NO_SUCH_UNIT, with names that are near.
        """
        if found := self.unit(name):
            return found
        names: dict[str, str] = {}
        for index, group in enumerate(self.groups()):
            if group["group"] == name and (found := self.unit(group["unit"])):
                return found
            names |= {group["unit"].lower(): group["unit"], group["group"].lower(): group["group"]}
            if index >= _SEARCHED:
                break
        near = [names[n] for n in get_close_matches(name.lower(), names, n=3, cutoff=0.6)]
        meant = f"did you mean {' or '.join(near)}?" if near else hint
        raise CliError(Exit.NO_SUCH_UNIT, f"there is no unit or group {name!r} in {self.where}: {meant}")

    def change_unit(self, unit: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """PATCH /groups/{unit}; None as a value removes the key."""
        return self._ok("PATCH", unit_path(unit), body=changes)

    def terminate(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """POST /terminations: the event, and whether it was on record before. Tried again where that is safe, which it
        is: the request has a key.
        """
        answer = self._again("POST", "terminations", request)
        if answer.status in (200, 202) and isinstance(answer.body, dict):
            return answer.body, answer.status == 200
        if answer.status == 404 and answer.message:
            raise CliError(Exit.NO_SUCH_UNIT, answer.message)
        if answer.status in (403, 409, 410) and isinstance(answer.body, dict) and "statusCode" in answer.body:
            raise CliError(Exit.REFUSED, answer.message)  # said by the API itself, not by IAM
        raise self.refusal(answer, "POST", "terminations")

    def event(self, id: str) -> dict[str, Any]:
        """GET /events/{id}."""
        return self._ok("GET", f"events/{id}")

    def start_run(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """POST /benchmarks: the run, and whether it was on record before. Tried again where that is safe, which it is:
        the request has a key.
        """
        answer = self._again("POST", "benchmarks", request)
        if answer.status in (200, 202) and isinstance(answer.body, dict):
            return answer.body, answer.status == 200
        raise self._of_benchmarks(answer, "POST", "benchmarks")

    def estimate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """POST /benchmarks/estimate: what a run would cost; again it does no harm."""
        answer = self._again("POST", "benchmarks/estimate", request)
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        raise self._of_benchmarks(answer, "POST", "benchmarks/estimate")

    def stop_run(self, run: str) -> dict[str, Any]:
        """DELETE /benchmarks/{run}: the run. Again it does no harm, so it is tried again."""
        path = f"benchmarks/{urllib.parse.quote(run, safe='')}"
        answer = self._again("DELETE", path, None)
        if answer.status in (200, 202) and isinstance(answer.body, dict):
            return answer.body
        raise self._of_benchmarks(answer, "DELETE", path)

    def run(self, run: str, cell: str | None = None, *, resources: bool = True) -> dict[str, Any]:
        """GET /benchmarks/{run}: run, cells, or one of them alone, and resources."""
        query = ({} if resources else {"resources": "false"}) | ({"cell": cell} if cell else {})
        return self._benchmarks("GET", f"benchmarks/{urllib.parse.quote(run, safe='')}", query or None)

    def runs(self, limit: int) -> list[dict[str, Any]]:
        """Up to ``limit`` runs, newest first."""
        return self._listed("runs", limit, "benchmarks")

    def report(self, run: str, form: str) -> ReportLink:
        """GET /benchmarks/{run}/report: where it is. It is not fetched: credentials stay with the API.

        Args:
            form: ``html`` or ``json``.

        Raises:
            NoReportError: there is none.
            CliError: any other refusal; the run goes on, for one.
        """
        path = _report_path(run)
        answer = self._send("GET", path, {"format": form})
        address = answer.headers.get("Location")
        if answer.status == 302 and address and isinstance(answer.body, dict):
            return ReportLink(address, str(answer.body.get("etag", "")), _moment(answer.body.get("made_at")))
        if answer.status == 404 and answer.message:
            raise NoReportError(answer.message, "Retry-After" in answer.headers)
        raise self._of_benchmarks(answer, "GET", path)

    def make_report(self, run: str) -> datetime | None:
        """POST /benchmarks/{run}/report: has it made anew. Again it does no harm, so it is tried again.

        Returns:
            When it was asked for first, within a minute; None of a deployment that does not say.
        """
        path = _report_path(run)
        answer = self._again("POST", path, None)
        if answer.status != 202:
            raise self._of_benchmarks(answer, "POST", path)
        return _moment(answer.body.get("asked_at")) if isinstance(answer.body, dict) else None

    def _listed(self, name: str, limit: int, path: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while len(found) < limit:
            query = {"limit": str(min(RUNS_PAGE, limit - len(found)))} | ({"cursor": cursor} if cursor else {})
            page = self._benchmarks("GET", path or name, query)
            found += page[name]
            cursor = page["cursor"]
            if not cursor:
                break
        return found

    def stage(self, sha256: str, size: int | None = None) -> dict[str, Any]:
        """POST /benchmarks/artifacts: whether it is there, and with a size where to put it."""
        body = {"sha256": sha256} | ({"size": size} if size is not None else {})
        answer = self._again("POST", "benchmarks/artifacts", body)
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        raise self._of_benchmarks(answer, "POST", "benchmarks/artifacts")

    def start_fleet(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """POST /fleets: the fleet, and whether it was on record before. It has a key, so it is tried again."""
        answer = self._again("POST", "fleets", request)
        if answer.status in (200, 202) and isinstance(answer.body, dict):
            return answer.body, answer.status == 200
        raise self._of_benchmarks(answer, "POST", "fleets")

    def scale_fleet(self, fleet: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """PATCH /fleets/{fleet}: the fleet. The same again changes nothing, so it is tried again."""
        path = _fleet_path(fleet)
        answer = self._again("PATCH", path, request)
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        raise self._of_benchmarks(answer, "PATCH", path)

    def remove_fleet(self, fleet: str) -> dict[str, Any]:
        """DELETE /fleets/{fleet}: the fleet. Again it does no harm, so it is tried again."""
        path = _fleet_path(fleet)
        answer = self._again("DELETE", path, None)
        if answer.status in (200, 202) and isinstance(answer.body, dict):
            return answer.body
        raise self._of_benchmarks(answer, "DELETE", path)

    def fleet(self, fleet: str) -> dict[str, Any]:
        """GET /fleets/{fleet}: the fleet, its nodes, why some could not be launched, and what it has created."""
        return self._benchmarks("GET", _fleet_path(fleet))

    def fleets(self, limit: int) -> list[dict[str, Any]]:
        """Up to ``limit`` standing fleets, newest first."""
        return self._listed("fleets", limit)

    def _benchmarks(self, method: str, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        answer = self._send(method, path, query)
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        raise self._of_benchmarks(answer, method, path)

    def _of_benchmarks(self, answer: Answer, method: str, path: str) -> CliError:
        said_by_the_api = isinstance(answer.body, dict) and "statusCode" in answer.body
        if answer.status in (403, 409) and said_by_the_api:  # not by IAM
            return CliError(Exit.REFUSED, answer.message)
        problems = answer.body.get("problems") if said_by_the_api else None
        if answer.status == 400 and problems and all(problem.get("loc") for problem in problems):
            return RefusedFileError(answer.message, [problem_of(problem) for problem in problems])
        return self.refusal(answer, method, path)

    def _again(self, method: str, path: str, body: Mapping[str, Any] | None) -> Answer:
        """A request that may be made any number of times."""
        for left in range(_TRIES - 1, -1, -1):
            answer = self._send(method, path, body=body)
            if answer.status not in _TEMPORARY | {500} or not left:
                break
            self.sleep(2.0 ** (_TRIES - 1 - left))
        return answer

    def switch(self) -> dict[str, Any]:
        return self._ok("GET", "switch")

    def change_switch(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        return self._ok("PATCH", "switch", body=changes)

    def health(self) -> dict[str, Any]:
        return self._ok("GET", "health")

    def _pages(self, name: str, page_size: int) -> Iterator[dict[str, Any]]:
        query = {"limit": str(page_size)}
        while True:
            page = self._ok("GET", name, query)
            yield from page[name]
            if not page.get("cursor"):
                return
            query = {"limit": str(page_size), "cursor": page["cursor"]}

    def _listing(self, name: str, query: Mapping[str, str], limit: int, page_size: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while len(found) < limit:
            wanted = {**query, "limit": str(min(page_size, limit - len(found)))}
            page = self._ok("GET", name, wanted | ({"cursor": cursor} if cursor else {}))
            found += page[name]
            cursor = page.get("cursor")
            if not cursor:
                break
        return found

    def _ok(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return self._checked(self._send(method, path, query, body), method, path)

    def _send(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        for left in range(_TRIES - 1, -1, -1):
            try:
                with aws.told():
                    answer = self.api.request(method, path, query, body)
            except UnreachableError as error:
                raise CliError(Exit.UNREACHABLE, f"the API of {self.where} cannot be reached: {error}") from error
            # A throttled request has changed nothing; what a change that failed otherwise has done is not known.
            temporary = answer.status == 429 or (method == "GET" and answer.status in _TEMPORARY)
            if not temporary or not left:
                return answer
            self.sleep(2.0 ** (_TRIES - 1 - left))
        raise AssertionError("unreachable")

    def _checked(self, answer: Answer, method: str, path: str) -> dict[str, Any]:
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        raise self.refusal(answer, method, path)

    def refusal(self, answer: Answer, method: str, path: str) -> CliError:
        """What an answer that is not 200 says, and what to do about it."""
        message = answer.message
        if answer.status in (401, 403):
            return self._forbidden(answer, method, path)
        if answer.status == 409:
            return CliError(Exit.CONFLICT, message or "somebody has changed it in the meantime: look, and try again")
        if answer.status in (400, 404, 413, 415):
            return CliError(Exit.REFUSED, message or f"the API refuses {method} /{path} with {answer.status}")
        if answer.status == 429:
            return CliError(Exit.API_FAILED, "the API is asked too often: try again in a minute")
        shown = f": {message}" if message else ""
        return CliError(
            Exit.API_FAILED,
            f"the API of {self.where} answered {method} /{path} with {answer.status}{shown}; its logs tell more",
        )

    def _forbidden(self, answer: Answer, method: str, path: str) -> CliError:
        message, kind = answer.message.lower(), answer.error
        if "ExpiredToken" in kind or ("expired" in message and "signature" not in message):
            return CliError(Exit.EXPIRED_CREDENTIALS, aws.EXPIRED)
        if "signature expired" in message or "signature not yet current" in message:
            return CliError(Exit.FORBIDDEN, "this machine's clock is wrong: AWS does not accept its signature's time")
        if "UnrecognizedClient" in kind or "InvalidSignature" in kind or "security token included" in message:
            return CliError(Exit.NO_CREDENTIALS, f"the API does not accept the credentials: {answer.message}")
        if "MissingAuthenticationToken" in kind or "missing authentication token" in message:
            return CliError(
                Exit.REFUSED,
                f"the API of {self.where} has no {method} /{path}: it is older than this command",
            )
        resource = f"{self.arn}/{method}/{path}"
        return CliError(
            Exit.FORBIDDEN,
            f"you may not do that: your policies must allow execute-api:Invoke on {resource}, and none may deny it",
        )


def unit_path(unit: str) -> str:
    return f"groups/{unit_to_url(unit)}"


def _report_path(run: str) -> str:
    return f"benchmarks/{urllib.parse.quote(run, safe='')}/report"


def _fleet_path(fleet: str) -> str:
    return f"fleets/{urllib.parse.quote(fleet, safe='')}"


def problem_of(told: Mapping[str, Any]) -> Problem:
    """One of an answer's problems."""
    allowed = str(told["allowed"])
    return Problem(tuple(told["loc"]), str(told["problem"]).removesuffix(f": must be {allowed}"), allowed)


def _moment(text: Any) -> datetime | None:
    try:
        return moments.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None
