"""Implements `troop bench new` and `troop bench copy`: a folder of your own with a benchmark that runs as it is."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from cli.bench import files
from cli.shared import show
from cli.shared.errors import CliError, Exit, why

TEMPLATES = files.CATALOGUE / "new"
"""For each kind ``KIND.yaml`` and its script ``KIND.*``, and a README.md for all. ``$name`` stands for the name."""
Folder = Annotated[
    Path | None, typer.Argument(metavar="FOLDER", help="New folder; by default NAME in the current folder.")
]


class Kind(StrEnum):
    """What a new benchmark shows how to measure."""

    CLOSED_LOOP = "closed-loop"
    OPEN_LOOP = "open-loop"
    TOOL = "tool"


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the benchmark.")],
    folder: Folder = None,
    kind: Annotated[
        Kind,
        typer.Option(
            help="A Python script in a closed loop, one in an open loop at a fixed rate, or a shell script "
            "that runs a tool."
        ),
    ] = Kind.CLOSED_LOOP,
) -> None:
    """Write a small benchmark of your own, which runs as it is, and whose operation you replace."""
    from troop.bench.file.models import BENCHMARK  # here: pydantic is slow to import

    if not BENCHMARK.accepts(name):
        raise CliError(Exit.USAGE, f"a benchmark cannot have the name {name!r}: must be {BENCHMARK.allowed}")
    target = folder or Path(name)
    stem = kind.value.replace("-", "_")
    (script,) = (path for path in TEMPLATES.glob(f"{stem}.*") if path.suffix != ".yaml")
    typed = shlex.quote(str(target))
    words = {"name": name, "script": f"measure{script.suffix}", "folder": typed}

    def write() -> None:
        target.mkdir(parents=True)
        shutil.copy(script, target / words["script"])
        for source, file in ((f"{stem}.yaml", files.NAME), ("README.md", "README.md")):
            text = Template((TEMPLATES / source).read_text(encoding="utf-8")).substitute(words)
            (target / file).write_text(text, encoding="utf-8")

    _create(target, write)
    show.say(f"{target}: try it on local AWS with `troop bench run {typed} --size local`; README.md has the next steps")


def copy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A benchmark, as `troop bench list --catalogue` shows.")],
    folder: Folder = None,
) -> None:
    """Copy a benchmark of the catalogue into a folder of your own, to change it or to add artifacts."""
    source = files.in_catalogue(name)
    if source is None:
        known = ", ".join(files.catalogue_names())
        raise CliError(Exit.USAGE, f"the catalogue has no benchmark {name!r}: must be one of {known}")
    target = folder or Path(name)
    _create(target, lambda: shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "build")))
    show.say(f"{target}: run it with `troop bench run {shlex.quote(str(target))}`")


def _create(target: Path, write: Callable[[], object]) -> None:
    """Writes a new folder, all of it or nothing."""
    try:
        write()
    except FileExistsError:
        raise CliError(Exit.USAGE, f"{target} exists already: name another folder") from None
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise CliError(Exit.FAILED, f"{target} cannot be written: {why(error)}") from None
