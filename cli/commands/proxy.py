"""Implements `troop proxy`: serves the signed API on 127.0.0.1 to curl and other programs."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from cli.client.connection import connection
from cli.shared import show
from cli.shared.errors import CliError, Exit
from cli.web.proxy import Proxy, exit_code, stop_on_signals, token_file


def proxy(
    ctx: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")] = 0,
) -> None:
    """Serve the API on 127.0.0.1, signed with your credentials, to your programs until Ctrl-C."""
    conn = connection(ctx)
    try:
        server = Proxy(conn.client.api, port, show.note)
    except OSError as error:
        raise CliError(Exit.FAILED, f"cannot listen on 127.0.0.1:{port}: {error.strerror}") from None
    stop_on_signals()
    try:
        with server, token_file(_folder(), server.server_address[1], server.token) as file:
            show.say(f"{conn.deployment}, only for you, at {server.address} until Ctrl-C. Try:")
            show.say(f"  curl -H @{shlex.quote(str(file))} {server.address}/events")
            server.serve_forever(poll_interval=0.2)
    except OSError as error:
        raise CliError(Exit.FAILED, f"cannot write the token file: {error}") from None
    except KeyboardInterrupt as stop:
        show.note("stopped")
        raise typer.Exit(exit_code(stop)) from None


def _folder() -> Path:
    """Returns the folder for this user's runtime files, or one in the home directory."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "troop" if runtime and Path(runtime).is_dir() else Path.home() / ".troop"
