"""Prints tables and sentences for people, and JSON for programs; remarks go to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH_OF_PIPES = 200
_STYLES = {
    "ok": "green",
    "SUCCEEDED": "green",
    "PARTIAL": "yellow",
    "RUNNING": "yellow",
    "STOPPING": "yellow",
    "FAILED": "bold red",
    "INVALID": "bold red",
    "STOPPED": "magenta",
    "warn": "yellow",
    "fail": "bold red",
    "RECOVERED": "green",
    "LEASHED": "cyan",
    "CLAIMED": "yellow",
    "TERMINATED": "yellow",
    "UNRECOVERED": "bold red",
    "ABANDONED": "magenta",
    "yes": "green",
    "no": "cyan",
    "no (protected)": "cyan",
    "no (malformed)": "bold red",
    "no (unrecovered)": "bold red",
}
NOTHING = "-"


def _console(stderr: bool = False) -> Console:
    # Created each time, because the streams may have been replaced; a pipe gets whole lines.
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, width=None if terminal else _WIDTH_OF_PIPES, highlight=False, soft_wrap=False)


def console() -> Console:
    """Returns a console on stdout, for output that is updated."""
    return _console()


def is_terminal() -> bool:
    """Checks whether stdout is a terminal, rather than a file or a pipe."""
    return sys.stdout.isatty()


def document(value: Any) -> None:
    """Prints a JSON document on stdout."""
    sys.stdout.write(_escaped(json.dumps(value, indent=2, ensure_ascii=False)) + "\n")


def line(value: Any) -> None:
    """Prints a JSON object as one line on stdout, and flushes it."""
    sys.stdout.write(_escaped(json.dumps(value, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def _escaped(document: str) -> str:
    """Escapes unprintable characters on a terminal: the same JSON, but it cannot control the terminal."""
    if not is_terminal():
        return document
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in document)


def say(message: str, style: str = "") -> None:
    """Prints a sentence on stdout."""
    _console().print(Text(clean(message), style=style), soft_wrap=True)


def note(message: str, style: str = "") -> None:
    """Prints a sentence on stderr, so that it does not mix with output for programs."""
    _console(stderr=True).print(Text(clean(message), style=style), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Prints a table on stdout; known words (statuses, yes and no) are coloured."""
    grid = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        show_header=any(columns),
    )
    for column in columns:
        grid.add_column(column, header_style="bold", overflow="fold")
    for row in rows:
        grid.add_row(*(_cell(value) for value in row))
    _console().print(grid)


def _cell(value: Any) -> Text:
    text = clean(plain(value))
    return Text(text, style=_STYLES.get(text, ""))


def plain(value: Any) -> str:
    """Returns a JSON value as a person would write it."""
    if value is None or value == "" or value == []:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(plain(v) for v in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def first_line(text: str | None) -> str:
    """Returns the first line of a reason; the lines below it are output of a script."""
    return (text or "").partition("\n")[0]


def lines_below(text: str | None) -> str:
    """Returns the other lines of a reason, after a line break; "" without any."""
    _, newline, rest = (text or "").partition("\n")
    return newline + rest


def clean(text: str) -> str:
    """Replaces control characters: text of other people must not control this terminal."""
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def moment(text: Any) -> str:
    """Converts a moment of the API to local time, to the second; returns other text unchanged."""
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone():%Y-%m-%d %H:%M:%S %Z}"
    except ValueError:
        return plain(text)
