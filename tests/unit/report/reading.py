"""A page as its reader has it: elements, tables, blocks of data."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = {"meta", "link", "img", "input", "br"}


@dataclass
class Read(HTMLParser):
    """What a parser finds in a page.

    Attributes:
        elements: all, with their attributes.
        rows: of all tables, the text of each row's cells.
        scripts: attributes and text of each script.
    """

    page: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    scripts: list[tuple[dict[str, str | None], str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    _inside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        elif tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
            return
        if self._inside and self._inside[-1] != "style":
            self.text.append(data)
        if {"td", "th"} & set(self._inside):
            self.rows[-1][-1] += data

    def row(self, *cells: str) -> list[str]:
        """The first row that begins with these cells."""
        plain = [[re.sub(r"\s+", " ", text).strip() for text in row] for row in self.rows]
        return next(row for row in plain if tuple(row[: len(cells)]) == cells)

    def data(self) -> dict[str, Any]:
        """Of the charts."""
        document: dict[str, Any] = json.loads(next(t for a, t in self.scripts if a.get("id") == "chart-data"))
        return document

    def over_time(self) -> list[dict[str, Any]]:
        """Of the charts over time."""
        packed = [text for attributes, text in self.scripts if attributes.get("class") == "over-time"]
        return [json.loads(zlib.decompress(base64.b64decode(text))) for text in packed]
