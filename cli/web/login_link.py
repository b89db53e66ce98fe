"""Passes a link to this user's browser only: other users of a machine can see all command lines on it."""

from __future__ import annotations

import html
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={link}">
<title>Troop</title>
<p><a href="{link}">Open the page</a></p>
"""


@dataclass
class LoginLink:
    """Files that redirect to links, in a folder that only this user can read. Leaving the context removes them.

    A link admits its first user. Other users could read it among the arguments of the browser's command, so the
    command gets the address of such a file instead.
    """

    _folder: tempfile.TemporaryDirectory[str] | None = None
    _files: dict[str, Path] = field(default_factory=dict)

    def address(self, link: str) -> str:
        """Creates a file that redirects to the link, and returns its address.

        Raises:
            OSError: the file cannot be written.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="troop-", ignore_cleanup_errors=True)  # mode 0700
        with tempfile.NamedTemporaryFile(  # mode 0600
            "w", encoding="utf-8", dir=self._folder.name, suffix=".html", delete=False
        ) as file:
            file.write(_PAGE.format(link=html.escape(link)))
        self._files[link] = Path(file.name)
        return self._files[link].as_uri()

    def used(self, link: str) -> None:
        """Removes the file of a link that was used."""
        if file := self._files.pop(link, None):
            with suppress(OSError):
                file.unlink()

    def __enter__(self) -> LoginLink:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()
