"""Loads a report: of a run of the deployment, from the files of a run in a folder, or from a report's own file."""

from __future__ import annotations

import ssl
import time
import urllib.error
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

import typer
from botocore.httpsession import get_cert_path
from pydantic import ValidationError

from cli.bench.archive_folder import FolderArchive
from cli.client.bench_client import BenchClient, NoReportError, ReportLink
from cli.client.connection import connection
from cli.shared import aws, https
from cli.shared.errors import CliError, Exit
from troop.bench.definition.names import RUN
from troop.bench.records.archive import ReportError
from troop.report.build import build
from troop.report.document import FORMAT, Report
from troop.report.processors import without_iowait
from troop.shared.values import json_in
from troop.shared.version import VERSION

LARGEST = 256 * 1024 * 1024
"""Bytes of a report: many times the size of one with 200 cells."""

_SECONDS = 60
"""The longest silence of a connection to S3."""

_PATIENCE, _POLL_SECONDS = 90.0, 3.0
_KIND, _, _OURS = FORMAT.partition("/")


def load(ctx: typer.Context, text: str) -> Report:
    """Loads a report.

    Args:
        text: a run's id, a folder with the files of a run, or a report's JSON file. Text in the form of an id is an
            id; write ``./ID`` for a folder of that name.

    Raises:
        CliError: with what to do.
    """
    if RUN.fullmatch(text):
        body = fetched(connection(ctx).client.benchmarks, text, "json")
        return parsed(body, f"the report of {text}")
    path = Path(text)
    if path.is_dir():
        return folder_report(path)
    if not path.is_file():
        raise CliError(
            Exit.USAGE,
            f"{text} is not a run's id (see `troop bench list`), a folder, or a report's .json file",
        )
    try:
        return parsed(path.read_bytes(), text)
    except OSError as error:
        raise CliError(Exit.FAILED, f"{text} cannot be read: {error}") from None


def folder_report(folder: Path) -> Report:
    """Builds a report from the files of a run in a folder. Needs no AWS.

    Raises:
        CliError: FAILED.
    """
    name = folder.resolve().name
    try:
        return build(FolderArchive(folder), datetime.now(UTC), VERSION, name if RUN.fullmatch(name) else "")
    except ReportError as error:
        raise CliError(Exit.FAILED, f"{folder}: {error}") from None
    except OSError as error:
        raise CliError(Exit.FAILED, f"{folder} cannot be read: {error}") from None


def parsed(body: bytes, where: str) -> Report:
    """Parses a report's document.

    Raises:
        CliError: FAILED; it is not a report, or only a newer version can read it.
    """
    try:
        document = json_in(body.decode("utf-8-sig"))
    except ValueError:
        raise CliError(Exit.FAILED, f"{where} is not JSON: use the report.json of a run") from None
    format_name = document.get("format") if isinstance(document, dict) else None
    kind, _, version = str(format_name).partition("/")
    if kind == _KIND and version != _OURS:
        raise CliError(
            Exit.FAILED, f"{where} has the format {format_name}, which this version cannot read: update Troop"
        )
    if format_name != FORMAT:
        raise CliError(Exit.FAILED, f"{where} is not a report: its format must be {FORMAT}")
    try:
        return without_iowait(Report.model_validate(document))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CliError(Exit.FAILED, f"{where} is damaged at {place} ({first['msg']}): create it again") from None


def fetched(
    client: BenchClient,
    run: str,
    form: str,
    *,
    again: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> bytes:
    """Downloads a run's report; waits for that of a run that has just ended.

    Args:
        form: ``html`` or ``json``.
        again: have the deployed version create it again first.

    Raises:
        CliError: with what to do.
    """
    return download(_link(client, run, form, again, sleep, clock).address)


def _link(
    client: BenchClient, run: str, form: str, again: bool, sleep: Callable[[float], None], clock: Callable[[], float]
) -> ReportLink:
    before = requested_at = None
    if again:
        with suppress(NoReportError):  # if the run does not exist, the next request raises
            before = client.report(run, form).etag
        requested_at = client.make_report(run)
    until = clock() + _PATIENCE
    while True:
        try:
            link = client.report(run, form)
        except NoReportError as missing:
            if not (missing.soon or again) or clock() >= until:
                raise
        else:
            # A request less than a minute after another one gets its report, which may exist already.
            late = requested_at and link.created_at and link.created_at > requested_at
            if not again or link.etag != before or late:
                return link
            if clock() >= until:
                raise CliError(
                    Exit.FAILED,
                    f"the new report of {run} does not exist yet: fetch it in a few minutes, without --again. "
                    "If it is still the old one, the log of the function Report says why",
                )
        sleep(_POLL_SECONDS)


def download(address: str) -> bytes:
    """Downloads what is at a presigned address; no message contains the address, which lets anyone read the report.

    Raises:
        CliError: FAILED or UNREACHABLE.
    """
    trusted: Any = get_cert_path(True)
    context = ssl.create_default_context(cafile=aws.ca_bundle() or trusted)
    try:
        with https.opened(address, _SECONDS, context) as answer:
            body: bytes = answer.read(LARGEST + 1)
            length = int(answer.headers.get("Content-Length", len(body)))
    except https.NoTlsError as error:
        raise CliError(Exit.API_FAILED, f"the report has no safe address ({error}): nothing was fetched") from None
    except urllib.error.HTTPError as error:
        error.close()
        raise CliError(
            Exit.FAILED, f"S3 refused the report ({error.code} {error.reason}): try again in a minute"
        ) from None
    except (OSError, HTTPException) as error:
        # Messages of HTTPException can contain the address.
        reason = type(error).__name__ if isinstance(error, HTTPException) else str(getattr(error, "reason", error))
        raise CliError(Exit.UNREACHABLE, f"cannot fetch the report from S3: {reason}") from None
    if len(body) < length <= LARGEST:
        raise CliError(Exit.UNREACHABLE, "the download of the report from S3 was incomplete: try again")
    if len(body) > LARGEST:
        raise CliError(Exit.FAILED, f"the report is larger than {LARGEST:,} bytes: nothing was saved")
    return body
