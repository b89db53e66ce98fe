"""Starts and compares benchmark runs for the page, with the code of `troop bench`.

A benchmark comes from the catalogue, or from files that the browser sends. No request names a path of this machine.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import tempfile
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cli.bench import checking, comparing, files, money, report_source, starting
from cli.bench.artifacts import Staging, in_question
from cli.bench.files import NAME, Source, WrongFileError, is_local
from cli.bench.pairing import Chosen, sides_of, succeeded
from cli.client.bench_client import BenchClient
from cli.shared.errors import CliError, Exit
from troop.bench.admission.units import units_of
from troop.bench.definition.definition import plain_parameter
from troop.bench.definition.keys import FILE
from troop.bench.definition.money import shown
from troop.bench.definition.names import RUN
from troop.report.assets import chart_script
from troop.report.html import comparison_page
from troop.shared.errors import TroopError
from troop.shared.version import VERSION


class RunRequest(BaseModel):
    """A run that a user describes on the page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str = Field("", description="The name of a benchmark in the catalogue; unused with files")
    files: dict[str, str] = Field(default_factory=dict, description="The benchmark's file and those beside it, base64")
    size: str | None = Field(None, description="Sizes of the file, separated by commas")
    changes: list[str] = Field(default_factory=list, description="Assignments, as in --set")
    accept_unknown_prices: bool = False
    is_fresh: bool = Field(True, description="Whether an estimate of the last minutes does not suffice")
    key: str = Field("", description="Starts no second run when repeated")

    def values(self) -> dict[str, Any]:
        """Returns the changes by key.

        Raises:
            CliError: USAGE; a change is not an assignment.
        """
        return checking.accepting(files.assignments(self.changes), self.accept_unknown_prices)


MOST_ESTIMATES = 64
ESTIMATE_SECONDS = 300
"""The number and the age of estimates that serve the choice of a size; a start needs a new one."""


@dataclass(frozen=True)
class PageBenchmarks:
    """The benchmarks of a deployment, as the page needs them.

    Attributes:
        session: creates a session of boto3, for artifacts in S3.
        now: the current time.
    """

    client: BenchClient
    session: Callable[[], Any]
    now: Callable[[], datetime]
    _estimates: dict[str, tuple[datetime, dict[str, Any]]] = field(default_factory=dict)

    def catalogue(self) -> dict[str, Any]:
        """Lists the benchmarks that come with the command."""
        return {
            "benchmarks": [
                {
                    "name": path.parent.name,
                    "title": source.benchmark.name,
                    "description": source.benchmark.description,
                }
                for path, source in files.catalogue()
                if isinstance(source, Source)
            ]
        }

    def form(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what a user can choose of a benchmark: its sizes, and its parameters with the values they allow.

        Raises:
            CliError: as :meth:`estimate`.
        """
        with _source(_parse(body)) as source:
            names = source.document.get("sizes", {})
            return {
                "name": source.benchmark.name,
                "description": source.benchmark.description,
                "sizes": [{"name": name, "about": source.written.comment_at(("sizes", name))} for name in names],
                "parameters": [_parameter(source, name) for name in source.document.get("parameters", {})],
            }

    def estimate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Checks and estimates a run; starts nothing. States why the deployment would refuse it.

        Raises:
            CliError: the files or the changes are malformed, or the deployment does not answer.
        """
        request, now = _parse(body), self.now()
        key = hashlib.sha256(request.model_dump_json(exclude={"is_fresh", "key"}).encode()).hexdigest()
        at, known = self._estimates.get(key, (now, None))
        if known and not request.is_fresh and (now - at).total_seconds() < ESTIMATE_SECONDS:
            return known
        with _source(request) as source:
            answer = self._estimated(source, request)
        self._estimates[key] = now, answer
        for old in list(self._estimates)[:-MOST_ESTIMATES]:
            self._estimates.pop(old, None)
        return answer

    def _estimated(self, source: Source, request: RunRequest) -> dict[str, Any]:
        artifacts, folder = source.artifacts(), source.path.parent
        reasons = {artifact.name: list(in_question([artifact], folder)) for artifact in artifacts}
        warnings = [reason for each in reasons.values() for reason in each]
        document = {
            "what": starting.describe(source),
            "copied": source.copied(),
            "nodes": source.plan.nodes,
            "cells": len(source.plan.cells),
            "lacking": [name for name, each in reasons.items() if each],
            "parameters": {name: _text(value) for name, value in source.benchmark.parameters.items()},
        }
        if why := _forbidden(source):
            return document | {"refused": [why], "warnings": warnings, "cost": None}
        try:
            answer = starting.estimate(self.client, source, request.size or None, request.values())
        except CliError as error:
            if error.code is not Exit.REFUSED:
                raise
            problems = [str(one.problem) for one in error.problems] if isinstance(error, WrongFileError) else []
            return document | {"refused": problems or [str(error)], "warnings": warnings, "cost": None}
        return document | {
            "cost": money.line(answer),
            "warnings": [*warnings, *answer["warnings"]],
            "refused": [f"{one['where']} {one['problem']}" for one in answer["problems"]],
            **{key: answer.get(key) for key in ("seconds", "expected")},
            "amounts": [shown(answer[key], answer["currency"], up=True) for key in ("expected", "most")],
        }

    def start(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Stages the artifacts and starts a run. Returns the run.

        Raises:
            CliError: as :meth:`estimate`; or the deployment refuses the run.
        """
        request = _parse(body)
        if not request.key:
            raise CliError(Exit.USAGE, "the request has no key: reload the page")
        with _source(request) as source:
            if why := _forbidden(source):
                raise CliError(Exit.USAGE, why)
            staging = Staging(self.client, source.path.parent, self.session, lambda _line: None)
            for artifact in source.artifacts():
                staging.stage(artifact)
            return starting.start(self.client, source, request.size or None, request.values(), request.key)[0]

    def comparison(self, a: str, b: str) -> bytes:
        """Returns the comparison of two runs as a page; A is the baseline.

        Raises:
            CliError: a run has no report, or the two cannot be compared.
        """
        for run in (a, b):
            if not RUN.fullmatch(run):
                raise CliError(Exit.USAGE, f"{run!r} is not a run's id: choose two runs in the list of benchmarks")
        sides = [self._side(run) for run in (a, b)]
        try:
            comparison = comparing.compare(*sides, now=self.now(), version=VERSION)
            chosen = sides_of(*sides)
            return comparison_page(comparison, chart_script(), succeeded(chosen.a), succeeded(chosen.b)).encode()
        except TroopError as error:
            raise CliError(Exit.USAGE, str(error)) from None

    def _side(self, run: str) -> Chosen:
        body = report_source.fetched(self.client, run, "json")
        return Chosen(run, report_source.parsed(body, f"the report of {run}"))


def _text(value: Any) -> str:
    """Writes the value of a parameter as a user can type it."""
    plain = plain_parameter(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _parameter(source: Source, name: str) -> dict[str, Any]:
    rule = source.document.get("allowed", {}).get(name)
    artifacts = [artifact.get("name") for artifact in source.document.get("artifacts", [])]
    known = {"file": [*source.files, *artifacts], "target": source.document.get("targets", {})}
    value = source.benchmark.parameters[name]
    choices = (True, False) if isinstance(value, bool) else known.get(rule, ()) if isinstance(rule, str) else rule
    return {
        "name": name,
        "about": source.written.comment_at(("parameters", name)),
        "default": _text(value),
        "allowed": [] if isinstance(value, tuple) else [_text(one) for one in choices or ()],
    }


def _parse(body: Mapping[str, Any]) -> RunRequest:
    try:
        return RunRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CliError(Exit.USAGE, f"{place} of the request: {first['msg']}") from None


@contextmanager
def _source(request: RunRequest) -> Iterator[Source]:
    """Loads the benchmark; files of the browser exist in a folder for the time of the block."""
    if not request.files:
        if (folder := files.in_catalogue(request.benchmark)) is None:
            raise CliError(Exit.USAGE, f"the catalogue has no benchmark {request.benchmark!r}: choose one, or files")
        known = {artifact.source for artifact in files.load(folder / NAME, request.size or None, {}).artifacts()}
        source = files.load(folder / NAME, request.size or None, request.values())
        _refuse_paths(source, known)
        yield source
        return
    if NAME not in request.files:
        raise CliError(Exit.USAGE, f"the files lack {NAME}: choose it, and the files beside it that nodes need")
    with tempfile.TemporaryDirectory(prefix="troop-ui-") as name:
        for file, content in request.files.items():
            (Path(name) / _checked(file)).write_bytes(_decoded(file, content))
        try:
            source = files.load(Path(name) / NAME, request.size or None, request.values())
            _refuse_paths(source, request.files)
            yield source
        except CliError as error:  # a user does not know the folder
            raise CliError(error.code, str(error).replace(f"{name}/", "")) from None


def _refuse_paths(source: Source, known: Container[str]) -> None:
    """Raises CliError if an artifact is a file of this machine that is not known: it must not be read for a page."""
    for artifact in source.artifacts():
        if is_local(artifact) and artifact.source not in known:
            raise CliError(
                Exit.USAGE,
                f"the artifact {artifact.name} is {artifact.source}, a file of this machine, which the page does not "
                "read: choose it among the files, or use troop bench run",
            )


def _forbidden(source: Source) -> str | None:
    """Returns why the page starts no run of a benchmark: it terminates nothing of other owners, see
    :data:`cli.web.proxy_guard.PAGE_ROUTES`.
    """
    if units := units_of(source.plan):
        return f"the benchmark hits {', '.join(units)}, which the page does not permit: use troop bench run"
    return None


def _checked(name: str) -> str:
    if not FILE.accepts(name):
        raise CliError(Exit.USAGE, f"the file {name!r} cannot be copied to nodes: its name must be {FILE.allowed}")
    return name


def _decoded(name: str, content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error:
        raise CliError(Exit.USAGE, f"the content of {name} is not base64: reload the page") from None
