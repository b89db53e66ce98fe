"""What the commands of benchmarks and of standing fleets have in common before anything is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from cli import show
from cli.bench_files import Source, WrongFileError

Accept = Annotated[
    bool, typer.Option("--accept-unknown-prices", help="Also where the price of some nodes cannot be had.")
]


def checked(load: Callable[[], Source], as_json: bool) -> Source:
    """A file that is right; of another one the problems, as a document where that is wanted.

    Raises:
        WrongFileError: it is wrong.
        Exit: it is, and has been said to be.
    """
    try:
        return load()
    except WrongFileError as wrong:
        if as_json:
            show.document({"valid": False, "problems": [told.as_json() for told in wrong.told]})
            raise typer.Exit(int(wrong.code)) from None
        raise


def verdict(warnings: Sequence[str]) -> str:
    """On a file in which nothing is wrong."""
    return "in order, but not what it needs" if warnings else "in order"


def accepting(changes: Mapping[str, Any], accept: bool) -> dict[str, Any]:
    """The changes, and what --accept-unknown-prices says of the file."""
    return {**changes, **({"accept_unknown_prices": True} if accept else {})}
