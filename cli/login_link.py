"""The way into a page for this user's browser alone: other users of a machine may see every command line on it."""

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
class Doorway:
    """Files that lead to links, in a folder that only this user can look into; a context, at whose end all are gone.

    A link lets in whoever has it first. As an argument of the browser's command it would be everybody's: what the
    command is given is the address of such a file.
    """

    _folder: tempfile.TemporaryDirectory[str] | None = None
    _files: dict[str, Path] = field(default_factory=dict)

    def address(self, link: str) -> str:
        """Of a new file that leads to the link.

        Raises:
            OSError: it cannot be written.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="troop-", ignore_cleanup_errors=True)  # made with 0700
        with tempfile.NamedTemporaryFile(  # made with 0600
            "w", encoding="utf-8", dir=self._folder.name, suffix=".html", delete=False
        ) as file:
            file.write(_PAGE.format(link=html.escape(link)))
        self._files[link] = Path(file.name)
        return self._files[link].as_uri()

    def used(self, link: str) -> None:
        """It is good no more: nor is its file."""
        if file := self._files.pop(link, None):
            with suppress(OSError):
                file.unlink()

    def __enter__(self) -> Doorway:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()
