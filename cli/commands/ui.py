"""Implements `troop ui`: serves the page of a deployment to a browser on this machine."""

from __future__ import annotations

import signal
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

import boto3
import typer

from cli.bench import report_source
from cli.client import everywhere
from cli.client.connection import Connection, connection
from cli.client.deployment import Deployment
from cli.client.deployments_file import ListedDeployment
from cli.forecasts import calendar_ahead, live_account
from cli.forecasts.calendar_ahead import Basis
from cli.shared import aws, context, show, times
from cli.shared.errors import CliError, Exit
from cli.shared.settings_files import TriedSettings
from cli.web.login_link import LoginLink
from cli.web.overview_reader import OverviewReader
from cli.web.page_benchmarks import PageBenchmarks
from cli.web.page_deployments import PageDeployments
from cli.web.page_server import MOST_WEEKS, PageServer
from cli.web.proxy import HOST, exit_code, stop_on_signals, unguessable_host
from troop.report.assets import MissingChartsError

_CACHE_SECONDS = 60.0
"""The time for which a forecast uses the facts of the account: a large account takes many calls."""

_SETTINGS_SECONDS = 600.0


def ui(
    ctx: typer.Context,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="The port of 127.0.0.1, for ssh -L; not where others use this machine. 0 for any free one, on Linux "
            "of a random address in 127.0.0.0/8.",
        ),
    ] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only print the link; open no browser.")] = False,
) -> None:
    """Show units, events, the calendar and benchmarks in your browser, only for you, until Ctrl-C."""
    options: context.Options = ctx.obj
    if every := everywhere.everywhere(ctx, {"--port": port}):
        every.sign_in()
        pages = PageDeployments(every.deployments, _listed_page)
        try:
            _serve(pages.first(), f"{len(every.deployments)} deployments", no_open, threading.Event().wait)
        finally:
            pages.close()
        return
    conn = connection(ctx)
    with _page(conn, lambda: aws.make_session(options.profile, options.region), port) as server:
        _serve(server, str(conn.deployment), no_open, lambda: server.serve_forever(poll_interval=0.2))


def _listed_page(listed: ListedDeployment) -> PageServer:
    make = partial(aws.make_session, listed.profile, listed.region, listed.role, listed.external_id, shared=True)
    return _page(everywhere.connect(listed), make, 0)


def _page(conn: Connection, make_session: Callable[[], boto3.Session], port: int) -> PageServer:
    """Creates the server of a deployment's page.

    Raises:
        CliError: the port is in use, or a file of the page is missing.
    """
    conn = replace(conn, client=replace(conn.client, tell=_quiet))  # the page itself shows what is malformed
    session = make_session()
    ahead = CachedForecast(lambda: read(session, conn.deployment))
    try:
        fetch = report_source.download if aws.is_local(session) else None
        overview = OverviewReader(
            conn.client,
            CachedSettings(lambda: live_account.deployed_settings(session, conn.deployment)),
            ahead.basis,
        )
        benchmarks = PageBenchmarks(conn.client.benchmarks, make_session, times.now)
        host = HOST if port else unguessable_host()
        return PageServer(
            conn.client, about(conn.deployment, session), ahead, overview, benchmarks, port, _quiet, fetch, host
        )
    except MissingChartsError as error:
        raise CliError(Exit.FAILED, str(error)) from None
    except OSError as error:
        raise CliError(Exit.FAILED, f"cannot listen on port {port}: {error.strerror}") from None


def _serve(server: PageServer, title: str, no_open: bool, wait: Callable[[], object]) -> None:
    """Prints the link, and serves until Ctrl-C."""
    stop_on_signals()
    try:
        with LoginLink() as login_link:
            server.used, opener = login_link.used, None if no_open else login_link
            show.say(f"{title}, only for you, until Ctrl-C. The link works once, in one browser:")
            _show(server, opener)
            if sys.stdin.isatty():
                signal.signal(signal.SIGTTIN, signal.SIG_IGN)  # it stops background jobs that read
                show.say("Press Enter for another link.")
                threading.Thread(target=_links, args=(server, opener), daemon=True).start()
            wait()
    except KeyboardInterrupt as stop:
        show.note("stopped")
        raise typer.Exit(exit_code(stop)) from None


def _show(server: PageServer, login_link: LoginLink | None) -> None:
    show.say(f"  {server.link()}")
    if login_link is None:
        return
    try:
        address = login_link.address(server.link())
    except OSError as error:
        show.note(f"cannot open a browser: {error}")
        return
    # In a thread: the call may wait for the browser, and the browser for this server.
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _links(server: PageServer, login_link: LoginLink | None) -> None:
    with suppress(OSError):  # a background job cannot read the terminal
        for _ in sys.stdin:
            _show(server, login_link)


def _quiet(_line: str) -> None:
    """Drops log lines: the page sends requests every few seconds, which would bury the link."""


def about(deployment: Deployment, session: boto3.Session) -> dict[str, Any]:
    """Returns what the page shows about a deployment."""
    return {
        "deployment": deployment.name,
        "account": deployment.account,
        "region": deployment.region,
        "local": aws.is_local(session),
    }


def read(session: boto3.Session, deployment: Deployment) -> Basis:
    """Reads the input of a forecast with the caller's credentials.

    Raises:
        CliError: something cannot be read. Without permission for the salt, the forecast has days only.
    """
    settings = live_account.deployed_settings(session, deployment)
    reader, now = live_account.reader(session, deployment, settings.chaos), times.now()
    account = live_account.account(reader, now, now + timedelta(weeks=MOST_WEEKS))
    return Basis(account, settings, *live_account.salt_or_why(session, deployment))


@dataclass
class CachedSettings:
    """The deployed settings, which it reads at most every ten minutes."""

    read: Callable[[], TriedSettings]
    clock: Callable[[], float] = time.monotonic
    _settings: tuple[float, TriedSettings] | None = None

    def __call__(self) -> TriedSettings:
        """Returns the settings.

        Raises:
            CliError: they cannot be read.
        """
        if self._settings is None or self.clock() - self._settings[0] > _SETTINGS_SECONDS:
            self._settings = self.clock(), self.read()
        return self._settings[1]


@dataclass
class CachedForecast:
    """A forecast from data that is at most a minute old; serves one request at a time."""

    read: Callable[[], Basis]
    now: Callable[[], datetime] = times.now
    clock: Callable[[], float] = time.monotonic
    _cache: tuple[float, int, Basis] | None = None
    _changes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, weeks: int, *, unleashed: bool) -> Mapping[str, Any]:
        basis = self.basis()
        with self._lock:
            return calendar_ahead.document(basis, self.now(), weeks, unleashed=unleashed)

    def basis(self) -> Basis:
        """Returns what was read of the account at most a minute ago.

        Raises:
            CliError: something cannot be read.
        """
        with self._lock:
            return self._basis()

    def _basis(self) -> Basis:
        changes = self._changes
        if self._cache is not None:
            at, known, basis = self._cache
            if known == changes and self.clock() - at <= _CACHE_SECONDS:
                return basis
        at, basis = self.clock(), self.read()
        self._cache = at, changes, basis
        return basis

    def forget(self) -> None:
        """Drops what was read before a change, and what is being read now."""
        self._changes += 1
