"""The API's half about benchmarks and standing fleets, as the commands use it."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cli.api import Answer
from cli.calls import Calls, listed
from cli.errors import CliError, Exit
from troop import moments
from troop.bench.problems import Problem

RUNS_PAGE = 100
"""The longest page the API gives."""


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
        created_at: None of a deployment that does not say.
    """

    address: str = field(repr=False)
    etag: str
    created_at: datetime | None = None


@dataclass(frozen=True)
class BenchClient:
    """A deployment's benchmarks, reports, artifacts and standing fleets."""

    calls: Calls

    def start_run(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """POST /benchmarks: the run, and whether it was on record before. Tried again where that is safe, which it is:
        the request has a key.
        """
        body, status = self._again("POST", "benchmarks", request)
        return body, status == 200

    def estimate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """POST /benchmarks/estimate: what a run would cost; again it does no harm."""
        return self._again("POST", "benchmarks/estimate", request)[0]

    def stop_run(self, run: str) -> dict[str, Any]:
        """DELETE /benchmarks/{run}: the run. Again it does no harm, so it is tried again."""
        return self._again("DELETE", _run_path(run), None)[0]

    def run(self, run: str, cell: str | None = None, *, resources: bool = True) -> dict[str, Any]:
        """GET /benchmarks/{run}: run, cells, or one of them alone, and resources."""
        query = ({} if resources else {"resources": "false"}) | ({"cell": cell} if cell else {})
        return self._got(_run_path(run), query or None)

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
        answer = self.calls.send("GET", path, {"format": form})
        address = answer.headers.get("Location")
        if answer.status == 302 and address and isinstance(answer.body, dict):
            return ReportLink(address, str(answer.body.get("etag", "")), _moment(answer.body.get("created_at")))
        if answer.status == 404 and answer.message and not _is_missing(answer):
            message = answer.message.replace(f"POST /{path} makes it", f"`troop bench report {run} --again` makes it")
            raise NoReportError(message, "Retry-After" in answer.headers)
        raise self._refusal(answer, "GET", path)

    def make_report(self, run: str) -> datetime | None:
        """POST /benchmarks/{run}/report: has it made anew. Again it does no harm, so it is tried again.

        Returns:
            When it was asked for first, within a minute; None of a deployment that does not say.
        """
        path = _report_path(run)
        answer = self.calls.again("POST", path, None)
        if answer.status != 202:
            raise self._refusal(answer, "POST", path)
        return _moment(answer.body.get("requested_at")) if isinstance(answer.body, dict) else None

    def stage(self, sha256: str, size: int | None = None) -> dict[str, Any]:
        """POST /benchmarks/artifacts: whether it is there, and with a size where to put it."""
        body = {"sha256": sha256} | ({"size": size} if size is not None else {})
        return self._again("POST", "benchmarks/artifacts", body)[0]

    def estimate_fleet(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """POST /fleets/estimate: what a standing fleet would cost; again it does no harm."""
        return self._again("POST", "fleets/estimate", request)[0]

    def start_fleet(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """POST /fleets: the fleet, and whether it was on record before. It has a key, so it is tried again."""
        body, status = self._again("POST", "fleets", request)
        return body, status == 200

    def scale_fleet(self, fleet: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """PATCH /fleets/{fleet}: the fleet. The same again changes nothing, so it is tried again."""
        return self._again("PATCH", _fleet_path(fleet), request)[0]

    def remove_fleet(self, fleet: str) -> dict[str, Any]:
        """DELETE /fleets/{fleet}: the fleet. Again it does no harm, so it is tried again."""
        return self._again("DELETE", _fleet_path(fleet), None)[0]

    def fleet(self, fleet: str) -> dict[str, Any]:
        """GET /fleets/{fleet}: the fleet, its nodes, why some could not be launched, and what it has created."""
        return self._got(_fleet_path(fleet))

    def fleets(self, limit: int) -> list[dict[str, Any]]:
        """Up to ``limit`` standing fleets, newest first."""
        return self._listed("fleets", limit, "fleets")

    def _listed(self, name: str, limit: int, path: str) -> list[dict[str, Any]]:
        return listed(lambda page: self._got(path, page), name, limit, RUNS_PAGE)

    def _again(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[dict[str, Any], int]:
        """What a request that may be made any number of times is answered with, and whether with 200 or 202."""
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
        """There is no such run, or no such fleet: whether it is one of the other kind, and how to find the right id."""
        kind, id = path.split("/")[:2]
        mine, other = (_RUN, _FLEET) if kind == _RUN.path else (_FLEET, _RUN)
        shown = urllib.parse.unquote(id)
        # Who may not look there is told of the own kind alone.
        query = {"resources": "false"} if other is _RUN else None
        if self.calls.send("GET", f"{other.path}/{id}", query).status == 200:
            return CliError(
                Exit.NO_SUCH_UNIT, f"{shown} is {other.name}, and no {mine.noun}: `{other.command} status {shown}`"
            )
        return CliError(Exit.NO_SUCH_UNIT, f"there is no {mine.noun} {shown!r}: `{mine.command} list` tells them")


@dataclass(frozen=True)
class _Kind:
    """What the API calls runs, or standing fleets, and what people do."""

    path: str
    noun: str
    name: str
    command: str


_RUN = _Kind("benchmarks", "run", "a benchmark's run", "troop bench")
_FLEET = _Kind("fleets", "fleet", "a standing fleet", "troop fleet")


def _is_missing(answer: Answer) -> bool:
    return answer.status == 404 and answer.message.startswith(("there is no run ", "there is no fleet "))


def _run_path(run: str) -> str:
    return f"benchmarks/{urllib.parse.quote(run, safe='')}"


def _report_path(run: str) -> str:
    return f"{_run_path(run)}/report"


def _fleet_path(fleet: str) -> str:
    return f"fleets/{urllib.parse.quote(fleet, safe='')}"


def problem_of(document: Mapping[str, Any]) -> Problem:
    """One of an answer's problems."""
    allowed = str(document["allowed"])
    return Problem(tuple(document["loc"]), str(document["problem"]).removesuffix(f": must be {allowed}"), allowed)


def _moment(text: Any) -> datetime | None:
    try:
        return moments.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None
