"""Implements `troop bench copy`: a benchmark of the catalogue as a folder of your own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from cli.bench import files
from cli.shared import show
from cli.shared.errors import CliError, Exit, why


def copy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A benchmark, as `troop bench list --catalogue` shows.")],
    folder: Annotated[Path | None, typer.Argument(help="New folder; by default NAME in the current folder.")] = None,
) -> None:
    """Copy a benchmark of the catalogue into a folder of your own, to change it or to add artifacts."""
    source = files.in_catalogue(name)
    if source is None:
        known = ", ".join(files.catalogue_names())
        raise CliError(Exit.USAGE, f"the catalogue has no benchmark {name!r}: must be one of {known}")
    target = folder or Path(name)
    try:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "build"))
    except FileExistsError:
        raise CliError(Exit.USAGE, f"{target} exists already: name another folder") from None
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise CliError(Exit.FAILED, f"{target} cannot be written: {why(error)}") from None
    show.say(f"{target}: run it with `troop bench run {target}`")
