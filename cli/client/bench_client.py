"""Calls the part of the API that is about benchmarks and standing fleets."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from cli.client.api import Answer
from cli.client.calls import Calls, listed
from cli.shared.errors import CliError, Exit
from troop.bench.definition.problems import Problem
from troop.bench.records.line import Line
from troop.shared import codec, moments
from troop.shared.errors import ErrorCode

RUNS_PAGE, HISTORY_PAGE = 100, 1000
"""The longest pages that the API returns."""


class RefusedFileError(CliError):
    """A benchmark that the deployment refuses.

    Attributes:
        problems: what is wrong, with the places in the benchmark's file.
    """

    def __init__(self, message: str, problems: Sequence[Problem]) -> None:
        self.problems = problems
        super().__init__(Exit.REFUSED, message)


class NoReportError(CliError):
    """There is no such run, or it has no report.

    Attributes:
        soon: whether a report is being made.
    """

    def __init__(self, message: str, soon: bool) -> None:
        self.soon = soon
        super().__init__(Exit.REFUSED, message)


@dataclass(frozen=True)
class ReportLink:
    """A report that exists.

    Attributes:
        address: a presigned address, valid for at most an hour. Anyone who has it can read the report: never print it.
        etag: changes when the report is generated again.
        created_at: None from a deployment that does not return it.
    """

    address: str = field(repr=False)
    etag: str
    created_at: datetime | None = None


@dataclass(frozen=True)
class BenchClient:
    """A deployment's benchmarks, reports, artifacts and standing fleets."""

    calls: Calls

    def start_run(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Starts a run (POST /benchmarks). Retries, as the request has a key.

        Returns:
            The run, and whether it was already on record.
        """
        body, status = self._again("POST", "benchmarks", request)
        return body, status == 200

    def permit(self, kind: Literal["benchmark", "schedule"], key: str, units: Sequence[str]) -> None:
        """Permits a benchmark to hit units for an hour (POST /terminations), which hits nothing. Retries.

        Args:
            kind: what is about to be started or created.
            key: of the run, or the name of the schedule.

        Raises:
            CliError: FORBIDDEN, the caller may not terminate on demand; or as for other requests.
        """
        answer = self.calls.again("POST", "terminations", {kind: key, "units": list(units)})
        if answer.status == 201:
            return
        refusal = self._refusal(answer, "POST", "terminations")
        if refusal.code is not Exit.FORBIDDEN:
            raise refusal
        named = ", ".join(units)
        raise CliError(
            Exit.FORBIDDEN, f"the benchmark hits {named}, which needs the right to terminate on demand: {refusal}"
        )

    def estimate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Estimates what a run would cost (POST /benchmarks/estimate). Retries."""
        return self._again("POST", "benchmarks/estimate", request)[0]

    def stop_run(self, run: str) -> dict[str, Any]:
        """Stops a run (DELETE /benchmarks/{run}). Retries. Returns the run."""
        return self._again("DELETE", _run_path(run), None)[0]

    def run(self, run: str, cell: str | None = None, *, resources: bool = True) -> dict[str, Any]:
        """Returns a run, its cells (or only one), and its resources (GET /benchmarks/{run})."""
        query = ({} if resources else {"resources": "false"}) | ({"cell": cell} if cell else {})
        return self._got(_run_path(run), query or None)

    def live(self, run: str) -> dict[str, Any]:
        """Returns what a run does right now (GET /benchmarks/{run}/live)."""
        return self._got(f"{_run_path(run)}/live")

    def runs(self, limit: int) -> list[dict[str, Any]]:
        """Lists up to ``limit`` runs, newest first."""
        return self._listed("runs", limit, "benchmarks")

    def history(self, name: str, limit: int) -> list[Line]:
        """Lists the lines of up to ``limit`` ended runs of a benchmark, newest first (GET /benchmarks/history).

        Raises:
            CliError: also if the deployment's version has no lines.
        """
        path = "benchmarks/history"

        def page(query: Mapping[str, str]) -> dict[str, Any]:
            answer = self.calls.send("GET", path, {"name": name, **query})
            if answer.status == 200 and isinstance(answer.body, dict):
                return answer.body
            if _is_missing(answer):  # an earlier version takes the path for that of a run
                raise CliError(Exit.REFUSED, "the deployment's version has no history: upgrade the deployment")
            raise self._refusal(answer, "GET", path)

        return [codec.from_document(Line, one) for one in listed(page, "lines", limit, HISTORY_PAGE)]

    def report(self, run: str, form: str) -> ReportLink:
        """Returns where a run's report is (GET /benchmarks/{run}/report). Does not fetch it.

        Args:
            form: ``html`` or ``json``.

        Raises:
            NoReportError: there is no report.
            CliError: any other refusal, for example because the run has not ended.
        """
        path = _report_path(run)
        answer = self.calls.send("GET", path, {"format": form})
        address = answer.headers.get("Location")
        if answer.status == 302 and address and isinstance(answer.body, dict):
            return ReportLink(address, str(answer.body.get("etag", "")), _moment(answer.body.get("created_at")))
        if answer.status == 404 and answer.message and not _is_missing(answer):
            raise NoReportError(answer.message, "Retry-After" in answer.headers)
        raise self._refusal(answer, "GET", path)

    def make_report(self, run: str) -> datetime | None:
        """Requests a new report (POST /benchmarks/{run}/report). Retries.

        Returns:
            When a report was first requested within the last minute; None from a deployment that does not return it.
        """
        path = _report_path(run)
        answer = self.calls.again("POST", path, None)
        if answer.status != 202:
            raise self._refusal(answer, "POST", path)
        return _moment(answer.body.get("requested_at")) if isinstance(answer.body, dict) else None

    def create_schedule(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Creates a schedule (POST /benchmarks/schedules). Retries, as a repeated request changes nothing.

        Returns:
            The schedule, and whether it existed already.
        """
        answer = self.calls.again("POST", "benchmarks/schedules", request)
        if answer.status in (200, 201) and isinstance(answer.body, dict):
            return answer.body, answer.status == 200
        raise self._refusal(answer, "POST", "benchmarks/schedules")

    def delete_schedule(self, name: str) -> dict[str, Any]:
        """Removes a schedule (DELETE /benchmarks/schedules/{name}). Returns the schedule."""
        path = f"benchmarks/schedules/{urllib.parse.quote(name, safe='')}"
        answer = self.calls.send("DELETE", path, None)
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        if answer.status == 404:
            raise CliError(Exit.NO_SUCH_UNIT, f"there is no schedule {name!r}: `troop bench schedules` lists them")
        raise self._refusal(answer, "DELETE", path)

    def schedules(self) -> dict[str, Any]:
        """Returns all schedules, and the month's cost (GET /benchmarks/schedules)."""
        return self._got("benchmarks/schedules")

    def stage(self, sha256: str, size: int | None = None) -> dict[str, Any]:
        """Returns whether an artifact is staged and, with a size, where to upload it (POST /benchmarks/artifacts)."""
        body = {"sha256": sha256} | ({"size": size} if size is not None else {})
        return self._again("POST", "benchmarks/artifacts", body)[0]

    def estimate_fleet(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Estimates what a standing fleet would cost (POST /fleets/estimate). Retries."""
        return self._again("POST", "fleets/estimate", request)[0]

    def start_fleet(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Starts a standing fleet (POST /fleets). Retries, as the request has a key.

        Returns:
            The fleet, and whether it was already on record.
        """
        body, status = self._again("POST", "fleets", request)
        return body, status == 200

    def scale_fleet(self, fleet: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Scales a standing fleet (PATCH /fleets/{fleet}). Retries. Returns the fleet."""
        return self._again("PATCH", _fleet_path(fleet), request)[0]

    def extend_fleet(self, fleet: str, expires_at: str) -> dict[str, Any]:
        """Lets a standing fleet expire later (PATCH /fleets/{fleet}). Retries, as the moment is absolute. Returns the
        fleet.
        """
        return self._again("PATCH", _fleet_path(fleet), {"expires_at": expires_at})[0]

    def submit_tasks(self, fleet: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Gives tasks to a standing fleet (POST /fleets/{fleet}/tasks). Retries, as each result stands once.

        Returns:
            The number of tasks sent, those refused, and the number submitted in all.
        """
        return self._again("POST", f"{_fleet_path(fleet)}/tasks", request)[0]

    def task_results(self, fleet: str, cursor: str | None = None) -> dict[str, Any]:
        """Returns a page of the results of a fleet's tasks (GET /fleets/{fleet}/results)."""
        return self._got(f"{_fleet_path(fleet)}/results", {"cursor": cursor} if cursor else None)

    def remove_fleet(self, fleet: str) -> dict[str, Any]:
        """Removes a standing fleet (DELETE /fleets/{fleet}). Retries. Returns the fleet."""
        return self._again("DELETE", _fleet_path(fleet), None)[0]

    def fleet(self, fleet: str) -> dict[str, Any]:
        """Returns a fleet, its nodes, failed launches with reasons, and its resources (GET /fleets/{fleet})."""
        return self._got(_fleet_path(fleet))

    def fleets(self, limit: int) -> list[dict[str, Any]]:
        """Lists up to ``limit`` standing fleets, newest first."""
        return self._listed("fleets", limit, "fleets")

    def _listed(self, name: str, limit: int, path: str) -> list[dict[str, Any]]:
        return listed(lambda page: self._got(path, page), name, limit, RUNS_PAGE)

    def _again(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[dict[str, Any], int]:
        """Sends a request that is safe to repeat; returns the body and the status, 200 or 202."""
        answer = self.calls.again(method, path, body)
        if answer.status in (200, 202) and isinstance(answer.body, dict):
            return answer.body, answer.status
        raise self._refusal(answer, method, path)

    def _got(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        answer = self.calls.send("GET", path, query)
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        raise self._refusal(answer, "GET", path)

    def _refusal(self, answer: Answer, method: str, path: str) -> CliError:
        if _is_missing(answer):
            return self._missing(path)
        from_api = isinstance(answer.body, dict) and "statusCode" in answer.body
        if answer.status in (403, 409) and from_api:  # not by IAM
            return CliError(Exit.REFUSED, answer.message)
        problems = answer.body.get("problems") if from_api else None
        if answer.status == 400 and problems and all(problem.get("loc") for problem in problems):
            return RefusedFileError(answer.message, [problem_of(problem) for problem in problems])
        return self.calls.refusal(answer, method, path)

    def _missing(self, path: str) -> CliError:
        """Returns the error for an unknown run or fleet; says if the id is one of the other kind."""
        kind, id = path.split("/")[:2]
        mine, other = (_RUN, _FLEET) if kind == _RUN.path else (_FLEET, _RUN)
        shown = urllib.parse.unquote(id)
        # A caller without the permission for the other kind gets the plain message.
        query = {"resources": "false"} if other is _RUN else None
        if self.calls.send("GET", f"{other.path}/{id}", query).status == 200:
            return CliError(
                Exit.NO_SUCH_UNIT, f"{shown} is {other.name}, not a {mine.noun}: use `{other.command} status {shown}`"
            )
        return CliError(Exit.NO_SUCH_UNIT, f"there is no {mine.noun} {shown!r}: `{mine.command} list` lists them")


@dataclass(frozen=True)
class _Kind:
    """Names of runs or of standing fleets: in the API, in messages, and in commands."""

    path: str
    noun: str
    name: str
    command: str


_RUN = _Kind("benchmarks", "run", "a benchmark run", "troop bench")
_FLEET = _Kind("fleets", "fleet", "a standing fleet", "troop fleet")


def _is_missing(answer: Answer) -> bool:
    return answer.code in (ErrorCode.NO_SUCH_RUN, ErrorCode.NO_SUCH_FLEET)


def _run_path(run: str) -> str:
    return f"benchmarks/{urllib.parse.quote(run, safe='')}"


def _report_path(run: str) -> str:
    return f"{_run_path(run)}/report"


def _fleet_path(fleet: str) -> str:
    return f"fleets/{urllib.parse.quote(fleet, safe='')}"


def problem_of(document: Mapping[str, Any]) -> Problem:
    """Returns the problem that a document of the API's answer describes."""
    allowed = str(document["allowed"])
    return Problem(tuple(document["loc"]), str(document["problem"]).removesuffix(f": must be {allowed}"), allowed)


def _moment(text: Any) -> datetime | None:
    try:
        return moments.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None
