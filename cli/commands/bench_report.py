"""Implements `troop bench report`: fetches or generates a run's report, writes it to a file and opens it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.bench import report_source
from cli.bench.faults import ENDING
from cli.client.connection import connection
from cli.shared import pages, show
from cli.shared.errors import CliError, Exit
from troop.bench.definition.names import REPORT_HTML, REPORT_JSON, RUN
from troop.bench.definition.phase_limits import FAILED
from troop.report.assets import chart_script
from troop.report.document import Report, worst
from troop.report.html import FAILED_PAGE, FAULT_PAGES, report_page
from troop.shared.errors import TroopError

STDOUT = "-"


def report(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|DIR", help="A run's id, or a folder with a run's files, from which the report is generated."
        ),
    ],
    in_browser: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; - is stdout.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Have the deployment generate the report again from the run's files.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a page.")] = False,
) -> None:
    """Write the report of a run as one page.

    Fails if the results do not hold the limits of the benchmark's file, or what it expects of faults.

    Needs no permissions for S3. For a folder (`aws s3 sync s3://BUCKET/runs/RUN DIR`) it needs no AWS at all.
    """
    if in_browser and (as_json or output == STDOUT):
        raise CliError(Exit.USAGE, "--open needs a page in a file: remove --json and -o -")
    if RUN.fullmatch(source):
        client = connection(ctx).client.benchmarks
        body = report_source.fetched(client, source, "json" if as_json else "html", again=again)
        usual = Path(f"troop-report-{source}.html")
    elif Path(source).is_dir():
        local_report = report_source.folder_report(Path(source))
        document = local_report.model_dump_json().encode()
        body = document if as_json else page(local_report)
        usual = Path(source, REPORT_HTML)
        if not as_json and output is None:
            pages.write(Path(source, REPORT_JSON), document)
    else:
        raise CliError(
            Exit.USAGE, f"{source} is not a run's id (`troop bench list` lists them), and there is no such folder"
        )
    if as_json and output in (None, STDOUT):
        show.document(json.loads(body))
    elif output == STDOUT:
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
    else:
        path = usual if output is None else Path(output)
        pages.write(path, body, through_links=output is not None)
        show.say(f"the report: {path}")
        if in_browser:
            pages.open_in_browser(path)
    verdict, fault_verdict = _verdicts(body, as_json)
    if verdict == FAILED:
        raise CliError(Exit.LIMITS_MISSED, f"{source} does not hold what its file demands: the report shows it")
    if fault_verdict in ENDING:
        code, text = ENDING[fault_verdict]
        raise CliError(code, f"{source} {text}: the report shows it")


def _verdicts(body: bytes, is_json: bool) -> tuple[str | None, str | None]:
    """Returns what a report says of limits and of planned faults; old reports do not say it."""
    if is_json:
        cells = json.loads(body).get("cells") or []
        verdicts = {cell.get(key) for key in ("verdict", "fault_verdict") for cell in cells}
    else:
        verdicts = {verdict for verdict, mark in FAULT_PAGES.items() if mark in body}
        verdicts |= {FAILED} if FAILED_PAGE in body else set()
    return FAILED if FAILED in verdicts else None, worst(verdicts)


def page(report: Report) -> bytes:
    """Renders a report as HTML.

    Raises:
        CliError: FAILED, if this checkout lacks the assets of reports.
    """
    try:
        return report_page(report, chart_script()).encode()
    except TroopError as error:
        raise CliError(Exit.FAILED, str(error)) from None
