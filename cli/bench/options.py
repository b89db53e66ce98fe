"""Defines arguments and options that several commands of `troop bench` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(help="Benchmark file, its folder, or a name in the catalogue.")]
Sizes = Annotated[
    list[str] | None,
    typer.Option("--size", help="A size that the file defines; repeatable, and a later one wins."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value, such as parameters.threads=8; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, from `troop bench list`.")]
