"""Defines the forms in which commands print lists: a table, or a document for programs; and their order."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import typer

from cli.shared import show
from cli.shared.errors import CliError, Exit

Record = Mapping[str, Any]
_Any = TypeVar("_Any")


class Form(StrEnum):
    """Forms of output."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


FORM = "FORM"
"""What the help calls the value of ``--output`` of a list."""
Output = Annotated[
    Form | None,
    typer.Option(
        "--output", "-o", metavar=FORM, case_sensitive=False, help="table, wide (nothing omitted), json, yaml or csv."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="The same as -o json: one JSON document.")]
Sort = Annotated[str | None, typer.Option("--sort", metavar="COLUMN", help="Sort by a column, as the table names it.")]
Reverse = Annotated[bool, typer.Option("--reverse", help="Reverse the order.")]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: its header.
        cell: returns the cell of a record.
        order: returns what to sort by; by default the cell.
        wide: shown only in the wide form.
    """

    name: str
    cell: Callable[[Any], Any]
    order: Callable[[Any], Any] | None = None
    wide: bool = False


def form_of(output: Form | None, as_json: bool) -> Form:
    """Returns the form that the options ask for.

    Raises:
        CliError: USAGE, if they contradict each other.
    """
    if as_json and output not in (None, Form.JSON):
        raise CliError(Exit.USAGE, f"--json and --output {output} contradict each other: use one of them")
    return Form.JSON if as_json else output or Form.TABLE


def ordered(records: Iterable[_Any], columns: Sequence[Column], sort: str | None, reverse: bool = False) -> list[_Any]:
    """Returns the records in the order of a column, those without a value last.

    Raises:
        CliError: USAGE, if there is no such column.
    """
    rows = list(records)
    if sort is not None:
        key = by(columns, sort)
        valued = sorted((row for row in rows if key(row) not in _EMPTY), key=key, reverse=reverse)
        return [*valued, *(row for row in rows if key(row) in _EMPTY)]
    return rows[::-1] if reverse else rows


_EMPTY = (None, "", show.NOTHING)


def by(columns: Sequence[Column], sort: str) -> Callable[[Any], Any]:
    """Returns what to sort records by, for the name of a column; text is compared without its case.

    Raises:
        CliError: USAGE, if there is no such column.
    """
    known = {_plain(column.name): column for column in columns if column.name}
    column = known.get(_plain(sort))
    if column is None:
        raise CliError(Exit.USAGE, f"--sort: there is no column {sort!r}: use one of {', '.join(known)}")
    order = column.order or column.cell

    def key(record: Any) -> Any:
        value = order(record)
        return value.casefold() if isinstance(value, str) else value

    return key


def _plain(name: str) -> str:
    return name.strip().casefold().replace(" ", "-").replace("_", "-")


SEARCHED = 1000
"""Entries that a filter looks at."""


def same(chosen: Mapping[str, Any]) -> Record:
    """Returns the values that entries must have: those that are not None."""
    return {key: str(value).casefold() for key, value in chosen.items() if value is not None}


def first(fetch: Callable[[int], list[dict[str, Any]]], chosen: Record, limit: int) -> list[dict[str, Any]]:
    """Returns the first entries of a listing with some values; says on stderr if it has not looked at all entries.

    Args:
        fetch: returns at most so many entries.
        chosen: values by key, as :func:`same` returns them.
    """
    if not chosen:
        return fetch(limit)
    entries = fetch(SEARCHED)
    if len(entries) == SEARCHED:
        show.note(f"only the newest {SEARCHED:,} were searched")
    return [e for e in entries if all(str(e[key]).casefold() == value for key, value in chosen.items())][:limit]


def tell(
    form: Form,
    columns: Sequence[Column],
    records: Sequence[Any],
    document: Record,
    *,
    drop: Sequence[str] = (),
    title: str = "",
    repeated: bool = False,
) -> None:
    """Prints records as a table, or the document in which they are.

    Args:
        records: CSV has a line for each, with the keys of JSON as its header.
        document: what JSON and YAML print.
        drop: see :func:`cli.shared.show.table`.
        repeated: whether more documents follow; each of JSON is then one line.
    """
    if form in (Form.TABLE, Form.WIDE):
        shown = [column for column in columns if form is Form.WIDE or not column.wide]
        rows = [[column.cell(record) for column in shown] for record in records]
        names = [column.name for column in shown]
        wide = form is Form.WIDE
        show.table(names, rows, title, drop=drop, whole=wide, hint="-o wide shows them")
    else:
        write(form, records, document, repeated=repeated)


def is_for_programs(form: Form) -> bool:
    """Checks whether a form is for programs rather than people."""
    return form not in (Form.TABLE, Form.WIDE)


def write(form: Form, records: Sequence[Record], document: Record, *, repeated: bool = False) -> None:
    """Prints a document in a form for programs; the arguments are those of :func:`tell`."""
    if form is Form.CSV:
        _write_csv(records)
    elif form is Form.YAML:
        import yaml  # only here: it takes a tenth of a second

        text = yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False, allow_unicode=True, width=1_000_000)
        sys.stdout.write(("---\n" if repeated else "") + show.escaped(text))
        sys.stdout.flush()
    elif repeated:
        show.line(document)
    else:
        show.document(document)


def _write_csv(records: Sequence[Record]) -> None:
    keys = list(dict.fromkeys(key for record in records for key in record))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if keys:
        writer.writerow(keys)
    for record in records:
        writer.writerow([_csv_cell(record.get(key)) for key in keys])
    sys.stdout.flush()


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return show.escaped(text)
