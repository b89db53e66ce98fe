"""Prints tables and sentences for people, and JSON for programs; remarks go to stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cli.shared import tables
from troop.shared import formatting

if TYPE_CHECKING:  # neither help nor documents for programs need it, and its import takes as long as all of help
    from rich.console import Console
    from rich.text import Text

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
    "HELD": "green",
    "BROKEN": "bold red",
    "UNKNOWN": "yellow",
    "yes": "green",
    "no": "cyan",
    "no (protected)": "cyan",
    "no (malformed)": "bold red",
    "no (unrecovered)": "bold red",
    "no (broken)": "bold red",
}
NOTHING = "-"

_LEAST_FOLDED = 20
"""The narrowest column that text is folded in."""


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    # Created each time, because the streams may have been replaced. What a program reads is never coloured.
    stream = sys.stderr if stderr else sys.stdout
    colour: Any = "auto" if stream.isatty() else None
    return Console(stderr=stderr, highlight=False, soft_wrap=False, color_system=colour)


def _text(words: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(words, style=style)


def console() -> Console:
    """Returns a console on stdout, for output that is updated."""
    return _console()


def is_terminal() -> bool:
    """Checks whether stdout is a terminal, rather than a file or a pipe."""
    return sys.stdout.isatty()


def has_reader() -> bool:
    """Checks whether a person reads the remarks: stderr is a terminal."""
    return sys.stderr.isatty()


def fresh_screen(heading: str) -> None:
    """Clears the terminal, and prints a heading; does nothing where stdout is none."""
    if is_terminal():
        console().clear()
        note(heading, style="dim")


def document(value: Any) -> None:
    """Prints a JSON document on stdout."""
    sys.stdout.write(escaped(json.dumps(value, indent=2, ensure_ascii=False)) + "\n")


def line(value: Any) -> None:
    """Prints a JSON object as one line on stdout, and flushes it."""
    sys.stdout.write(escaped(json.dumps(value, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def escaped(document: str) -> str:
    """Escapes unprintable characters as JSON does where stdout is a terminal, which they could control."""
    if not is_terminal():
        return document
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in document)


def say(message: str, style: str = "") -> None:
    """Prints a sentence on stdout."""
    _console().print(_text(clean(message), style), soft_wrap=True)


def note(message: str, style: str = "") -> None:
    """Prints a sentence on stderr, so that it does not mix with output for programs."""
    _console(stderr=True).print(_text(clean(message), style), soft_wrap=True)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str = "",
    *,
    drop: Sequence[str] = (),
    whole: bool = False,
    hint: str = "a wider terminal shows them",
) -> None:
    """Prints a table on stdout. A row is one line; on a terminal, known words (statuses, yes and no) are coloured.

    A terminal that is too narrow omits columns, says so on stderr, and truncates long cells. Without names of columns,
    the table is a list of facts, whose last column is folded at words.

    Args:
        drop: the columns that a narrow terminal omits, the first one first; then it omits from the right.
        whole: omit and truncate nothing.
        hint: how to see omitted columns.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    if title:
        say("\n".join(line.rstrip() for line in title.split("\n")), style="bold")
    screen = _console()
    if not any(columns):
        _facts(screen, cells)
        return
    headers = [_text(name, "bold") for name in columns]
    widths = tables.widths([headers, *cells])
    if is_terminal() and not whole:
        widths, omitted = tables.fit(columns, widths, tables.floors(cells, widths), screen.width, drop)
        if omitted:
            note(f"not shown: {', '.join(name or 'the last column' for name in omitted)}; {hint}", style="dim")
    for row in (headers, *cells):
        _print(screen, tables.line(row, widths))


def _facts(screen: Console, rows: Sequence[Sequence[Text]]) -> None:
    """Prints facts; folds the last column at words on a terminal."""
    widths = tables.widths(rows)
    first = tables.before_last(widths)
    for row in rows:
        if not is_terminal() or first + _LEAST_FOLDED > screen.width:
            _print(screen, tables.line(row, widths))
            continue
        for number, part in enumerate(row[-1].wrap(screen, screen.width - first)):
            part.rstrip()
            before = row[:-1] if number == 0 else [_text("") for _ in row[:-1]]
            _print(screen, tables.line([*before, part], widths))


def _print(screen: Console, line: Text) -> None:
    if is_terminal():
        screen.print(line, soft_wrap=True)
    else:
        sys.stdout.write(line.plain + "\n")


def _cell(value: Any) -> Text:
    text = " ".join(clean(timed(plain(value))).splitlines()) or NOTHING
    text = NOTHING if text == formatting.NOTHING else text
    return _text(text, _STYLES.get(text, ""))


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
    text = text.replace(formatting.SPACE, " ")  # so that programs and people can search for what they type
    return "".join(c if c == "\n" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def moment(text: Any) -> str:
    """Converts a moment of the API to local time, to the second; returns other text unchanged."""
    try:
        return f"{datetime.fromisoformat(str(text)).astimezone():%Y-%m-%d %H:%M:%S %Z}"
    except ValueError:
        return plain(text)


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def timed(sentence: str) -> str:
    """Converts the moments in a sentence of the API to local time, as :func:`moment` does."""
    return _MOMENT.sub(lambda match: moment(match[0]), sentence)


def clocks(now: datetime, **moments: datetime | None) -> str:
    """Returns moments by their names: ``last 11:26, next 11:27 UTC``; with the day if it is not today. Omits None."""
    today, parts = now.astimezone().date(), []
    for name, at in moments.items():
        if at is not None:
            local = at.astimezone()
            parts.append(f"{name} {local:%H:%M}" if local.date() == today else f"{name} {local:%a %Y-%m-%d %H:%M}")
    return f"{', '.join(parts)} {now.astimezone():%Z}" if parts else ""
