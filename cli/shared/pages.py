"""Writes pages to files, and opens them in a browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

from cli.shared import show
from cli.shared.errors import CliError, Exit


def write(path: Path, body: bytes, *, through_links: bool = False) -> None:
    """Writes a file.

    Args:
        through_links: whether to follow a link at ``path``: only for a name that the caller has typed. A usual name can
            be a link in a folder that is another user's.

    Raises:
        CliError: FAILED.
    """
    flags = 0 if through_links else os.O_NOFOLLOW
    try:
        with open(path, "wb", opener=lambda name, usual: os.open(name, usual | flags, 0o666)) as file:
            file.write(body)
    except OSError as error:
        raise CliError(Exit.FAILED, f"{path} cannot be written: {error.strerror or error}") from None


def open_in_browser(path: Path) -> None:
    """Opens a page in a browser; prints its address if there is none."""
    address = path.resolve().as_uri()
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        show.note(f"no browser found; open the report yourself: {address}")
