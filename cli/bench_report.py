"""`troop bench report`: a run's report, fetched or made anew, into a file and before somebody's eyes."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import show
from cli.context import connection
from cli.errors import CliError, Exit
from troop.bench.names import REPORT_HTML, REPORT_JSON, RUN
from troop.errors import TroopError

if TYPE_CHECKING:
    from troop.report.document import Report

STDOUT = "-"


def report(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|DIR", help="A run's id; or a folder with what is kept of a run: its report is made anew there."
        ),
    ],
    in_browser: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where it is written; - is stdout.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Have it made anew by the deployed version, of what is kept of the run.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of a page.")] = False,
) -> None:
    """The report of a run, as one page. Needs no rights to S3, and of a folder (`aws s3 sync s3://BUCKET/runs/RUN DIR`)
    no AWS at all.
    """
    from cli import report_source  # with the models of reports, which no other command waits for

    if in_browser and (as_json or output == STDOUT):
        raise CliError(Exit.USAGE, "--open shows a page in a file: leave out --json and -o -")
    if RUN.fullmatch(source):
        client = connection(ctx).client.benchmarks
        body = report_source.fetched(client, source, "json" if as_json else "html", again=again)
        usual = Path(f"troop-report-{source}.html")
    elif Path(source).is_dir():
        local_report = report_source.of_folder(Path(source))
        document = local_report.model_dump_json().encode()
        body = document if as_json else page(local_report)
        usual = Path(source, REPORT_HTML)
        if not as_json and output is None:
            _write(Path(source, REPORT_JSON), document, os.O_NOFOLLOW)
    else:
        raise CliError(
            Exit.USAGE, f"{source} is no run's id (`troop bench list` tells them), and there is no such folder"
        )
    if as_json and output in (None, STDOUT):
        show.document(json.loads(body))
        return
    if output == STDOUT:
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
        return
    path = usual if output is None else Path(output)
    _write(path, body, os.O_NOFOLLOW if output is None else 0)
    show.say(f"the report: {path}")
    if in_browser:
        _open(path)


def page(report: Report) -> bytes:
    """A report as HTML.

    Raises:
        CliError: FAILED, when this checkout has not all that it takes.
    """
    from troop.report.assets import chart_script
    from troop.report.html import report_page

    try:
        return report_page(report, chart_script()).encode()
    except TroopError as error:
        raise CliError(Exit.FAILED, str(error)) from None


def _write(path: Path, body: bytes, flags: int) -> None:
    """Writes a file. In a folder of somebody else's, flags keep it from going where a link leads."""
    try:
        with open(path, "wb", opener=lambda name, usual: os.open(name, usual | flags, 0o666)) as file:
            file.write(body)
    except OSError as error:
        raise CliError(Exit.FAILED, f"{path} cannot be written: {error.strerror or error}") from None


def _open(path: Path) -> None:
    address = path.resolve().as_uri()
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        show.note(f"there is no browser here; open it in one of your own: {address}")
